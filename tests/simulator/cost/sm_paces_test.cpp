// SMs that L2 gives more than others, where it is asked for all that it has.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "attest/simulator/report.h"
#include "measured_rows.h"
#include "reached.h"
#include "step_demands.h"
#include "tile_walks.h"

namespace attest {
namespace {

/// Of eight warps on an SM, which need 1000 cycles of a tile for themselves and `l2` of L2's an SM's equal share, where
/// such a part of all ask for it, and such a part of `l2` where nobody else does.
std::vector<double> paces(double l2, const DeviceSpec& device, double asking = 1, double alone = 1) {
  StepDemand d = demand_of(100, 0, 0);
  d.waits = 1000, d.l2 = d.l2_waited = l2 / 8;
  d.l2_alone = alone * d.l2;
  const std::vector<std::vector<double>> all = sm_paces(d, warps(4), device, 2, l2_busy(d, warps(4), device, 2));
  if (all.empty()) return {};
  return all.at(static_cast<std::size_t>(std::lround(asking * static_cast<double>(all.size() - 1))));
}

TEST(SmPaces, AreAlikeWhereL2IsNotBusyOrGivesAllAsMuch) {
  DeviceSpec device = load_device("h100");
  EXPECT_TRUE(paces(0, device).empty());
  EXPECT_TRUE(paces(2, device).empty());
  EXPECT_FALSE(paces(2000, device).empty());
  for (const double pace : paces(2000, device, 0)) EXPECT_NEAR(pace, 1, 1e-6);  // of a CTA alone
  const auto slowest = [&](double asking) { return std::ranges::min(paces(2000, device, asking)); };
  for (const double asking : {0.25, 0.5, 1.}) EXPECT_LT(slowest(asking), slowest(asking / 2));
  device.l2_shares = {1};
  EXPECT_TRUE(paces(2000, device).empty());
}

// What an SM waits for in L2 is what the others ask for, but for its own way there.
TEST(SmPaces, OfAnSmWhoseNeighboursHaveNoCtaLeftIsThatOfItsOwnWay) {
  DeviceSpec device = load_device("h100");
  device.l2_shares = {1};
  const auto pace = [&](double asking, double alone) {
    const std::vector<double> of_sms = paces(2000, device, asking, alone);
    EXPECT_TRUE(std::ranges::all_of(of_sms, [&](double x) { return x == of_sms.front(); }));
    return of_sms.empty() ? 1 : of_sms.front();
  };
  for (const double asking : {0., 0.5, 1.}) EXPECT_EQ(pace(asking, 1), 1);
  StepDemand d = demand_of(100, 0, 0);
  d.waits = 1000, d.l2 = d.l2_waited = 2000. / 8;
  const double whole = cycles_per_key_tile(d, warps(4), device, 2);
  d.l2 = d.l2_waited = 0.6 * 2000. / 8;
  EXPECT_NEAR(pace(0, 0.6), whole / cycles_per_key_tile(d, warps(4), device, 2), 1e-9);
  EXPECT_GT(pace(0, 0.6), pace(0.5, 0.6));
  EXPECT_GT(pace(0.5, 0.6), 1.05);
  EXPECT_NEAR(pace(1, 0.6), 1, 1e-9);
  EXPECT_NEAR(l2_alone_cycles(3, 0), 3 * 1.74, 0.01);
  EXPECT_NEAR(l2_alone_cycles(0, 2), 2 * 3.90, 0.01);
}

TEST(SmPaces, AreSpreadOverAsManySmsAsThereAre) {
  DeviceSpec device = load_device("h100");
  device.l2_shares = {1, 3}, device.num_sms = 6;
  const std::vector<double> of_sms = paces(8000, device);
  ASSERT_EQ(of_sms.size(), 6U);
  for (std::size_t sm = 0; sm < 6; ++sm) EXPECT_NEAR(of_sms[sm], sm < 3 ? 0.5 : 1.5, 0.03);
}

// However far shares lie apart.
TEST(SmPaces, TogetherAreAsFastAtTheLimits) {
  DeviceSpec device = load_device("h100");
  for (const double few : {0.1, 0.5, 5., 10.}) {
    device.l2_shares.assign(132, 0.1), device.l2_shares[7] = device.l2_shares[60] = few;
    for (const double l2 : {100., 2000.}) {
      const std::vector<double> of_sms = paces(l2, device);
      EXPECT_EQ(of_sms.empty(), few == 0.1);
      if (few != 0.1) {
        EXPECT_NEAR(std::accumulate(of_sms.begin(), of_sms.end(), 0.0), 132, 0.2) << few;
      }
    }
  }
}

// A cluster goes at its slowest SM's pace, whichever of its SMs that is.
TEST(SmPaces, OfAClusterTheSlowestCounts) {
  const DeviceSpec device = load_device("h100");
  const Case c = case_of(1, 66, 66, 512, 64);
  KernelPlan plan = plan_for(c);
  plan.cluster = 2;
  TileWalkOptions options = times();
  options.noise = 0;
  const auto cycles = [&](double even, double odd) {
    options.paces = {{{}}};
    for (int sm = 0; sm < 132; ++sm) options.paces.front().front().push_back(sm % 2 == 0 ? even : odd);
    return walk_tiles(c, plan, device, 1, options).cycles;
  };
  EXPECT_DOUBLE_EQ(cycles(1, 0.5), cycles(0.5, 1));
  // with a CTA of each cluster on each SM L2 is as busy as it can be
  options.paces = {{std::vector<double>(132, 4), std::vector<double>(132, 2), std::vector<double>(132, 1)}};
  options.l2_busy = {0.7};
  EXPECT_DOUBLE_EQ(walk_tiles(c, plan, device, 1, options).cycles, cycles(1, 1));
  EXPECT_GT(cycles(1, 0.5), 1.5 * cycles(1, 1));
}

TEST(SmPaces, WhoGetsMoreGoesFasterAndAllTogetherAsFast) {
  const DeviceSpec device = load_device("h100");
  double before = 1;
  for (const double l2 : {500., 1000., 2000., 8000.}) {
    const std::vector<double> of_sms = paces(l2, device);
    ASSERT_EQ(of_sms.size(), 132U);
    EXPECT_NEAR(std::accumulate(of_sms.begin(), of_sms.end(), 0.0), 132, 0.01);
    for (std::size_t a = 0; a < of_sms.size(); ++a)
      for (std::size_t b = 0; b < a; ++b)
        if (device.l2_shares[a] > device.l2_shares[b]) {
          EXPECT_GE(of_sms[a], of_sms[b]);
        }
    const auto [slowest, fastest] = std::ranges::minmax(of_sms);
    EXPECT_GT(fastest / slowest, before);  // the busier L2 is
    before = fastest / slowest;
  }
  const auto [least, most] = std::ranges::minmax(device.l2_shares);
  EXPECT_NEAR(before, most / least, 0.02 * before);
}

TEST(SmPaces, AnH100sFileHasWhatWasCounted) {
  std::map<int, std::vector<double>> of_gpcs;
  double sum = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_H100 "/l2_shares.csv"))
    if (row.at("who") == "all" && row.at("kind") == "local_store") {
      of_gpcs[std::stoi(row.at("gpc"))].push_back(std::stod(row.at("bytes_a_clock")));
      sum += of_gpcs[std::stoi(row.at("gpc"))].back();
    }
  std::vector<double> counted;
  for (const auto& [gpc, a_clock] : of_gpcs) counted.insert(counted.end(), a_clock.begin(), a_clock.end());
  const std::vector<double> shares = load_device("h100").l2_shares;
  ASSERT_EQ(shares.size(), counted.size());
  for (std::size_t sm = 0; sm < shares.size(); ++sm) EXPECT_NEAR(shares[sm], counted[sm] * 132 / sum, 0.006) << sm;
}

// Of a GPC of 16 SMs four get half as much again as the others, whom six share what those four do; of one of 18 none.
// An SM alone gets its port's 32 bytes a clock.
TEST(SmPaces, L2GivesGroupsOfFourSmsAsMuchAsGroupsOfSix) {
  std::map<std::string, std::map<int, std::vector<double>>> of_gpcs;  // by kind
  double alone = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_H100 "/l2_shares.csv")) {
    const double a_clock = std::stod(row.at("bytes_a_clock"));
    if (row.at("who") == "all") of_gpcs[row.at("kind")][std::stoi(row.at("gpc"))].push_back(a_clock);
    if (row.at("who") == "one" && row.at("kind") == "local_store") alone = a_clock;
  }
  EXPECT_NEAR(alone, 32, 0.2);
  for (const char* kind : {"local_store", "cp_async"}) {
    int short_gpcs = 0;
    for (auto& [gpc, a_clock] : of_gpcs.at(kind)) {
      std::ranges::sort(a_clock, std::greater<>());
      const auto mean = [&](std::ptrdiff_t from, std::ptrdiff_t to) {
        const auto begin = a_clock.begin();
        return std::accumulate(begin + from, begin + to, 0.0) / static_cast<double>(to - from);
      };
      if (a_clock.size() == 18) {
        EXPECT_LT(a_clock.front(), 1.25 * a_clock.back()) << kind << gpc;
        continue;
      }
      ASSERT_EQ(a_clock.size(), 16U);
      EXPECT_GT(a_clock[3], 1.25 * a_clock[4]) << kind << gpc;
      EXPECT_GT(mean(0, 4) / mean(4, 16), 1.35) << kind << gpc;
      EXPECT_LT(mean(0, 4) / mean(4, 16), 1.55) << kind << gpc;
      ++short_gpcs;
    }
    EXPECT_EQ(short_gpcs, 6);
  }
}

/// What DRAM reads and writes of calls of the forced spill, by heads of 8448 keys, of which four fill the SMs once.
struct Wave {
  double read = 0, written = 0;
};
std::map<std::int64_t, Wave> counted_waves(const char* path) {
  std::map<std::int64_t, Wave> counted;
  std::ifstream file(path);
  std::string line, of_case;
  for (; std::getline(file, line);) {
    if (line.starts_with("# {")) of_case = line.substr(2);
    constexpr std::string_view reads = "sm80-spill,dram__bytes_read.sum,", writes = "sm80-spill,dram__bytes_write.sum,";
    const bool read = line.starts_with(reads);
    if (!read && !line.starts_with(writes)) continue;
    const Problem p = case_from_json_text(of_case).problem;
    if (p.seqlen_k != 8448) continue;
    Wave& wave = counted[p.nheads];
    (read ? wave.read : wave.written) = std::stod(line.substr(read ? reads.size() : writes.size()));
  }
  return counted;
}

/// Each call's reads over what is counted, at least and at most.
struct Range {
  double least, most;
};
void expect_waves(const char* device, const char* path, const std::map<std::int64_t, Range>& reached,
                  const Range& written) {
  const DeviceSpec d = load_device(device);
  const std::map<std::int64_t, Wave> counted = counted_waves(path);
  EXPECT_EQ(counted.size(), reached.size());
  for (const auto& [nheads, wave] : counted) {
    const Case c = case_of(1, nheads, nheads, 8448, 128);
    const SimulationReport r = simulate(c, plan_named("sm80-spill", c, d), d, "sm80-spill");
    const double reads = r.dram_read_bytes / wave.read, writes = r.dram_write_bytes / wave.written;
    std::printf("%s, %2ld heads: %6.1f MB read, predicted over counted %.3f; %7.1f written, %.3f\n", device,
                static_cast<long>(nheads), wave.read / 1e6, reads, wave.written / 1e6, writes);
    EXPECT_GT(reads, reached.at(nheads).least) << nheads;
    EXPECT_LT(reads, reached.at(nheads).most) << nheads;
    EXPECT_GT(writes, written.least) << nheads;
    EXPECT_LT(writes, written.most) << nheads;
  }
}

// SMs that go at paces of their own come to a head's keys ever later, until L2 has evicted them. With equal paces the
// last of these is 0.68.
TEST(SmPaces, ForcedSpillIsReadWaveByWaveAsOnAnH100) {
  constexpr Range near{1.0, 1.12};
  expect_waves("h100", ATTEST_H100 "/spill_waves.csv", {{4, near}, {8, near}, {16, near}, {32, near}, {64, near}},
               {0.945, 1.06});
}
// The shares are another H200's.
TEST(SmPaces, ForcedSpillIsReadWaveByWaveAsOnAnH200) {
  constexpr Range near{0.97, 1.11};
  expect_waves("h200", ATTEST_H200_MEASURE "/spill_waves.csv",
               {{4, near}, {8, near}, {16, near}, {32, near}, {64, near}}, {0.92, 1.03});
}

/// Calls of the forced spill by an H200, each at its own clock.
void expect_spill(const char* path, int calls, Reached reached) {
  DeviceSpec device = load_device("h200");
  for (const MeasuredRow& row : measured_rows(path)) {
    const auto number = [&](const char* name) { return std::stoll(row.at(name)); };
    Case c = case_of(number("batch"), number("nheads"), number("nheads_k"), number("seqlen_q"), 128,
                     number("causal") != 0 ? Causal::bottom_right : Causal::none);
    c.problem.seqlen_k = number("seqlen_k");
    if (row.contains("window_left") && number("window_left") >= 0)
      c.problem.window_left = number("window_left"), c.problem.window_right = 0;
    device.sm_clock_hz = std::stod(row.at("cycles")) / std::stod(row.at("time_us")) * 1e6;
    const SimulationReport r = simulate(c, plan_named("sm80-spill", c, device), device, "sm80-spill");
    reached.add(command_line(c), {r.cycles, r.l2_read_bytes, r.dram_read_bytes, r.dram_write_bytes}, row);
  }
  reached.expect(calls);
}

// The furthest are calls of a wave that is not quite full, which end with the SM that gets least.
TEST(SmPaces, SpillOfAnH200sFewWaves) {
  expect_spill(ATTEST_H200_MEASURE "/spill_tails.csv", 40,
               Reached({{"cycles", 3.6, 11.1},
                        {"l2_read_bytes", 2.6, 8.7},
                        {"dram_read_bytes", 5.1, 23.3},
                        {"dram_write_bytes", 10.6, 79}}));
}

// Many waves of few and of many keys, with masks and without, counted when all else was as it is: the furthest cycles
// are of 256 keys, of which CTAs have two key tiles.
TEST(SmPaces, SpillOfAnH200CountedAfterwards) {
  expect_spill(ATTEST_H200_MEASURE "/spill_blind.csv", 12,
               Reached({{"cycles", 4.5, 13.9},
                        {"l2_read_bytes", 0.4, 1.3},
                        {"dram_read_bytes", 1.9, 4},
                        {"dram_write_bytes", 2.4, 4.6}}));
}

}  // namespace
}  // namespace attest
