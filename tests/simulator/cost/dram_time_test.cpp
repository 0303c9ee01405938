// How long DRAM takes, and when.
#include <gtest/gtest.h>

#include <algorithm>

#include "attest/simulator/report.h"
#include "attest/simulator/step_time.h"
#include "attest/simulator/tile_walk.h"
#include "attest/simulator/utilisation.h"
#include "measured_rows.h"

namespace attest {
namespace {

TEST(DramTime, ReadsAloneGoAtTheirOwnRate) {
  const DeviceSpec device = load_device("h200");
  const double clock = device.dram_bytes_per_second / device.sm_clock_hz;
  EXPECT_DOUBLE_EQ(dram_cycles(1e9, 0, device), 1e9 / (device.dram_read_efficiency * clock));
  EXPECT_DOUBLE_EQ(dram_cycles(1e9, 1e9, device), 2e9 / (device.dram_efficiency * clock));
  EXPECT_DOUBLE_EQ(dram_cycles(3e9, 1e9, device), dram_cycles(1e9, 1e9, device) + dram_cycles(2e9, 0, device));
  EXPECT_DOUBLE_EQ(dram_cycles(0, 1e9, device), dram_cycles(1e9, 1e9, device) / 2);
}

// Lines of different pages that a warp of each of 32 CTAs asks for together.
TEST(DramTime, OfSeveralLinesTheSlowestIsTheLast) {
  const DeviceSpec device = load_device("h200");
  int rows = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_SM "/first_use.csv")) {
    const int lines = std::stoi(row.at("uses"));
    const bool in_l2 = row.at("what") == "lines in L2";
    if ((!in_l2 && row.at("what") != "lines in DRAM") || row.at("ctas") != "32") continue;
    const double ratio = (in_l2 ? cycles_from_l2 : cycles_from_dram)(lines, device) / std::stod(row.at("first"));
    EXPECT_NEAR(ratio, 1, in_l2 ? 0.1 : 0.03) << row.at("what") << ", " << lines;
    ++rows;
  }
  EXPECT_EQ(rows, 2 * 5 * 3);
  DeviceSpec far = device;  // the way through L2 is a part of it
  far.l2_latency_cycles = far.dram_latency_cycles;
  EXPECT_EQ(cycles_from_dram(8, far), cycles_from_dram(8, device));
}

// A warp's turn is eight lines of as many rows, or two of two rows.
TEST(DramTime, OfATurnTooAndSoDoesItVary) {
  const DeviceSpec device = load_device("h200");
  int rows = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_SM "/waits.csv")) {
    const int ctas = std::stoi(row.at("ctas")), lines = row.at("row_bytes") == "64" ? 8 : 4;
    if (row.at("source") != "dram" || row.at("share") != "1" || ctas == 2112) continue;  // more than DRAM gives
    EXPECT_NEAR(cycles_from_dram(lines, device) / std::stod(row.at("turn")), 1, 0.1) << lines << ", " << ctas;
    if (ctas == 64) {
      EXPECT_NEAR(deviation_from_dram(lines, device) / std::stod(row.at("deviation")), 1, 0.12) << lines;
    }
    ++rows;
  }
  EXPECT_EQ(rows, 6);
}

// CTAs of one warp, three an SM, are bound by DRAM; the 116 of a second wave by their own steps.
TEST(DramTime, ALastWaveThatDoesNotFillDramTakesItsOwn) {
  const DeviceSpec device = load_device("h200");
  const auto decoding = [&](std::int64_t batch) {
    Case c;
    c.problem = {batch, 32, 32, 4, 8192, 128, 128, Dtype::bf16, {}, Causal::none, -1, -1};
    return simulate(c, plan_named("attest", c, device), device, "attest");
  };
  const SimulationReport one = decoding(12), two = decoding(16);
  const auto of_dram = [&](const SimulationReport& r) { return dram_cycles(r.dram_read_bytes, 0, device); };
  ASSERT_EQ(one.ctas_per_sm, 3);
  EXPECT_NEAR(one.walk.cycles / of_dram(one), 1, 0.05);
  const double more = two.walk.cycles - one.walk.cycles;
  EXPECT_GT(more, 1.3 * (of_dram(two) - of_dram(one)));
  constexpr double key_tiles = 8192 / 64;
  EXPECT_GT(more, key_tiles * two.walk_options.cycles_per_key_tile[0]);
}

// CTAs that begin late find DRAM idle: what it could have read meanwhile is not read sooner.
TEST(DramTime, IdleTimeIsNotSavedUp) {
  DeviceSpec device = load_device("h200");
  std::fill(device.gpc_clocks.begin(), device.gpc_clocks.end(), 1.0);
  Case c;
  c.problem = {132, 1, 1, 64, 4096, 128, 128, Dtype::bf16, {}, Causal::none, -1, -1};
  TileWalkOptions options;
  options.cycles_per_key_tile = {1};
  for (const double idle : {0.0, 1e7}) {
    options.cycles_per_cta = idle;
    const TileWalk walk = walk_tiles(c, {}, device, 1, options);
    const double keys = 2.0 * 132 * 4096 * 128 * 2;
    EXPECT_NEAR((walk.cycles - idle) / dram_cycles(keys, 0, device), 1, 0.02) << idle;
  }
}

}  // namespace
}  // namespace attest
