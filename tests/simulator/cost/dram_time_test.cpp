// How long DRAM takes, and when.
#include <gtest/gtest.h>

#include <algorithm>

#include "attest/simulator/report.h"
#include "attest/simulator/tile_walk.h"
#include "attest/simulator/utilisation.h"

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
