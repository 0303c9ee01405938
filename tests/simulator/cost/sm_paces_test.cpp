// SMs that L2 gives more than others, where it is asked for all that it has.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "attest/simulator/report.h"
#include "measured_rows.h"
#include "step_demands.h"
#include "tile_walks.h"

namespace attest {
namespace {

/// Of eight warps on an SM, which need 1000 cycles of a tile for themselves and `l2` of L2's an SM's equal share.
std::vector<double> paces(double l2, const DeviceSpec& device) {
  StepDemand d = demand_of(100, 0, 0);
  d.waits = 1000, d.l2 = d.l2_waited = l2 / 8;
  return sm_paces(d, warps(4), device, 2);
}

TEST(SmPaces, AreAlikeWhereL2IsNotBusyOrGivesAllAsMuch) {
  DeviceSpec device = load_device("h100");
  EXPECT_TRUE(paces(0, device).empty());
  EXPECT_TRUE(paces(2, device).empty());
  EXPECT_FALSE(paces(2000, device).empty());
  device.l2_shares = {1};
  EXPECT_TRUE(paces(2000, device).empty());
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
      const auto mean = [&](std::size_t from, std::size_t to) {
        return std::accumulate(&a_clock[from], &a_clock[to], 0.0) / static_cast<double>(to - from);
      };
      if (a_clock.size() == 18) {
        EXPECT_LT(a_clock.front(), 1.25 * a_clock.back()) << kind << gpc;
        continue;
      }
      ASSERT_EQ(a_clock.size(), 16U);
      EXPECT_GT(a_clock[3], 1.25 * a_clock[4]) << kind << gpc;
      EXPECT_NEAR(mean(0, 4) / mean(4, 16), 1.5, 0.11) << kind << gpc;
      ++short_gpcs;
    }
    EXPECT_EQ(short_gpcs, 6);
  }
}

/// What DRAM reads of calls of the forced spill, by heads of 8448 keys, of which four fill the SMs once.
std::map<std::int64_t, double> counted_waves(const char* path) {
  std::map<std::int64_t, double> counted;
  std::ifstream file(path);
  std::string line, of_case;
  for (; std::getline(file, line);) {
    if (line.starts_with("# {")) of_case = line.substr(2);
    constexpr std::string_view reads = "sm80-spill,dram__bytes_read.sum,";
    if (!line.starts_with(reads)) continue;
    const Problem p = case_from_json_text(of_case).problem;
    if (p.seqlen_k == 8448) counted[p.nheads] = std::stod(line.substr(reads.size()));
  }
  return counted;
}

/// Each call's reads over what is counted, at most so far from 1.
void expect_waves(const char* device, const char* path, double below, double above) {
  const DeviceSpec d = load_device(device);
  const std::map<std::int64_t, double> counted = counted_waves(path);
  EXPECT_EQ(counted.size(), 5U);
  for (const auto& [nheads, reads] : counted) {
    const Case c = case_of(1, nheads, nheads, 8448, 128);
    const double predicted = simulate(c, plan_named("sm80-spill", c, d), d, "sm80-spill").dram_read_bytes;
    std::printf("%s, %2ld heads: %6.1f of %6.1f MB, %.3f\n", device, static_cast<long>(nheads), predicted / 1e6,
                reads / 1e6, predicted / reads);
    EXPECT_GT(predicted / reads, below) << nheads;
    EXPECT_LT(predicted / reads, above) << nheads;
  }
}

// SMs that go at paces of their own come to a head's keys ever later, until L2 has let go of them. With equal paces the
// last of these is 0.68.
TEST(SmPaces, ForcedSpillIsReadWaveByWaveAsOnAnH100) {
  expect_waves("h100", ATTEST_H100 "/spill_waves.csv", 0.96, 1.09);
}
TEST(SmPaces, ForcedSpillIsReadWaveByWaveAsOnAnH200) {
  expect_waves("h200", ATTEST_H200_MEASURE "/spill_waves.csv", 0.71, 1);
}

}  // namespace
}  // namespace attest
