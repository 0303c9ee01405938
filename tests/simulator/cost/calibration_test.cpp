#include "attest/simulator/calibration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "attest/problem/error.h"
#include "attest/problem/splitmix64.h"
#include "attest/simulator/l2_cache.h"
#include "measured_rows.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

TEST(Calibration, EveryDeviceIsWhatItsTextSays) {
  for (const std::string& name : device_names()) {
    SCOPED_TRACE(name);
    const DeviceSpec device = load_device(name);
    std::ifstream file(ATTEST_DEVICES "/" + name + ".json");
    EXPECT_EQ(nlohmann::json(to_json(device)), nlohmann::json::parse(file));  // in whatever order
  }
}

TEST(Calibration, AGpuIsCalledByWholeWordsOfItsName) {
  const auto called = [](std::string_view gpu) {
    const auto device = device_called(gpu);
    return device ? device->name : std::string();
  };
  EXPECT_EQ(called("NVIDIA H200"), "h200");
  EXPECT_EQ(called("NVIDIA H100 80GB HBM3"), "h100");
  EXPECT_EQ(called("NVIDIA A100-SXM4-80GB"), "a100");
  EXPECT_EQ(called("NVIDIA GeForce RTX 4090"), "rtx4090");
  EXPECT_EQ(called("MTT S4000"), "mtt-s4000");
  EXPECT_EQ(called("NVIDIA GH200 480GB"), "");
  EXPECT_EQ(called("NVIDIA RTX A1000"), "");
  EXPECT_EQ(called("NVIDIA GeForce RTX 4090 D"), "rtx4090");  // its SMs say that it is another one
  EXPECT_EQ(called("Ascend 910B"), "");                       // no GPU
  EXPECT_EQ(called(""), "");
}

TEST(Calibration, TheNearestDeviceHasTheArchitectureThenTheSizeThenTheMemory) {
  constexpr std::int64_t gb = 1'000'000'000;
  EXPECT_EQ(nearest_device(80, 108, 85 * gb).name, "a100");
  EXPECT_EQ(nearest_device(89, 76, 16 * gb).name, "rtx4090");
  EXPECT_EQ(nearest_device(86, 84, 24 * gb).name, "rtx3090");
  EXPECT_EQ(nearest_device(100, 148, 180 * gb).name, "b200");
  EXPECT_EQ(nearest_device(90, 132, 85 * gb).name, "h100");
  EXPECT_EQ(nearest_device(90, 132, 150 * gb).name, "h200");
}

TEST(Calibration, WhatWasMeasuredIsASourceAndTheRestAnEstimate) {
  const DeviceSpec nearest = load_device("a100");
  DeviceSpec measured;
  measured.num_sms = 84, measured.exp_per_clock = 15.5;
  measured.origins = {{"num_sms", "asked"}, {"exp_per_clock", "measured"}};
  const DeviceSpec device = calibrated_device("mine", "A GPU", measured, nearest);
  EXPECT_EQ(device.name, "mine");
  EXPECT_EQ(device.num_sms, 84);
  EXPECT_EQ(device.exp_per_clock, 15.5);
  EXPECT_EQ(device.l2_bytes, nearest.l2_bytes);
  for (const FieldOrigin& origin : device.origins) {
    const bool given = origin.field == "num_sms" || origin.field == "exp_per_clock";
    EXPECT_EQ(origin.estimated, !given) << origin.field;
    if (!given) {
      EXPECT_NE(origin.text.find("as a100 has it"), std::string::npos) << origin.text;
    }
  }
}

TEST(Calibration, WhatNoDeviceCanHaveIsRefusedByName) {
  DeviceSpec measured;
  measured.origins = {{"num_sms", "asked"}};
  try {
    calibrated_device("mine", "A GPU", measured, load_device("a100"));
    ADD_FAILURE() << "no SMs";
  } catch (const InvalidInput& error) {
    EXPECT_EQ(error.field(), "num_sms.value");
  }
}

// What a driver says of L2 need not fit the slices, nor the GPCs that were found the clocks, of the nearest device.
TEST(Calibration, EstimatesFitWhatWasMeasured) {
  for (const std::int64_t mib : {32, 36, 48, 50, 64, 96}) {
    SCOPED_TRACE(mib);
    DeviceSpec measured;
    measured.l2_bytes = mib << 20, measured.gpc_sides = {0, 0, 0};
    measured.origins = {{"l2_bytes", "asked"}, {"gpc_sides", "measured"}};
    const DeviceSpec device = calibrated_device("mine", "A GPU", measured, load_device("rtx4090"));
    EXPECT_EQ(device.l2_bytes, measured.l2_bytes);
    EXPECT_EQ(device.gpc_clocks, std::vector<double>(3, 1));
    EXPECT_TRUE(device.origin("l2_slices_per_partition").estimated);
    EXPECT_GE(device.l2_slices_per_partition, 8);
  }
}

// The simulator's cache, whose ways are known, goes through what calibrate has the GPU do.
TEST(Calibration, WaysAreThoseOfTheCacheThatWasRead) {
  constexpr int sets = 2048;
  for (const int ways : {4, 8, 16, 32}) {
    std::vector<CyclicWalk> walks;
    for (const double filled : {0.5, 0.75, 0.9}) {
      L2Cache cache(1, sets, ways, ways);
      const auto lines = static_cast<std::uint32_t>(filled * sets * ways);
      std::int64_t missed = 0;
      for (int walk = 0; walk < 2; ++walk) {
        missed = 0;
        for (std::uint32_t line = 0; line < lines; ++line)
          missed +=
              cache.read({.tag = line, .set = static_cast<std::uint16_t>(mix(line) % sets), .home = 0, .sectors = 15},
                         0) == L2Cache::Outcome::miss;
      }
      walks.push_back({filled, static_cast<double>(missed) / lines});
    }
    EXPECT_EQ(l2_ways_of(walks, 1), ways);
    for (CyclicWalk& walk : walks) walk.filled /= 2;  // of an L2 whose halves hold the same
    EXPECT_EQ(l2_ways_of(walks, 2), ways);
  }
}

TEST(Calibration, PartitionsAreOneOrTwoOrNothingIsSaidOfThem) {
  const auto misses_from = [](double edge) {
    std::vector<CyclicWalk> walks;
    for (int n = 4; n < 16; ++n) walks.push_back({n / 16.0, n / 16.0 > edge ? 0.9 : 0.1});
    return walks;
  };
  EXPECT_EQ(l2_partitions_of(misses_from(0.5)), 2);
  EXPECT_EQ(l2_partitions_of(misses_from(0.45)), 2);
  EXPECT_EQ(l2_partitions_of(misses_from(0.9)), 1);
  EXPECT_EQ(l2_partitions_of(misses_from(1)), 1);
  EXPECT_THROW(l2_partitions_of(misses_from(0.1)), EnvironmentError);
  EXPECT_THROW(l2_partitions_of(misses_from(0.35)), EnvironmentError);
  EXPECT_THROW(l2_partitions_of({}), EnvironmentError);
  EXPECT_THROW(l2_ways_of({}, 1), EnvironmentError);
  EXPECT_THROW(l2_ways_of({{0.3, 0.9}, {0.6, 0.1}}, 1), EnvironmentError);
}

TEST(Calibration, DirtyWaysAreTheWholeNumberBelow) {
  EXPECT_EQ(l2_dirty_ways_of(28.3 / 60, 16), 7);
  EXPECT_EQ(l2_dirty_ways_of(8.0 / 16, 16), 8);
  EXPECT_EQ(l2_dirty_ways_of(0.01, 16), 1);
  EXPECT_EQ(l2_dirty_ways_of(0.99, 16), 16);
}

// One partition has no sides, whatever the nearest device has; of two, SMs are on both.
TEST(Calibration, SidesFitThePartitionsThatWereFound) {
  for (const char* nearest : {"a100", "rtx4090", "h200"})
    for (const std::int64_t partitions : {1, 2}) {
      SCOPED_TRACE(nearest + std::to_string(partitions));
      DeviceSpec measured;
      measured.l2_partitions = partitions;
      measured.origins = {{"l2_partitions", "measured"}};
      const DeviceSpec device = calibrated_device("mine", "A GPU", measured, load_device(nearest));
      const auto [least, most] = std::minmax_element(device.gpc_sides.begin(), device.gpc_sides.end());
      EXPECT_EQ(*least, 0);
      EXPECT_EQ(*most, partitions - 1);
      EXPECT_TRUE(device.origin("gpc_sides").estimated);
    }
}

TEST(Calibration, AChipHasItsOwnSides) {
  const DeviceSpec h200 = load_device("h200");
  const std::vector<double> sides = {0, 0, 1, 1, 1, 0, 1, 0};
  EXPECT_EQ(device_of_chip(h200, sides).gpc_sides, sides);
  EXPECT_EQ(device_of_chip(h200, {}).gpc_sides, h200.gpc_sides);
  const DeviceSpec rtx4090 = load_device("rtx4090");  // of one partition
  EXPECT_EQ(device_of_chip(rtx4090, sides).gpc_sides, rtx4090.gpc_sides);
  const auto refused = [&](const std::vector<double>& wrong) -> std::string {
    try {
      device_of_chip(h200, wrong);
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refused({0, 1, 0, 1, 0, 1, 0}), "gpc_sides: 7 GPCs must be as many as h200 has, 8");
  EXPECT_EQ(refused(std::vector<double>(8, 1)), "gpc_sides: 8 GPCs on side 1 must be on both sides of h200's L2");
}

TEST(Calibration, EveryMemberHasItsName) {
  EXPECT_EQ(device_field_name(&DeviceSpec::num_sms), "num_sms");
  EXPECT_EQ(device_field_name(&DeviceSpec::exp_per_clock), "exp_per_clock");
  EXPECT_EQ(device_field_name(&DeviceSpec::gpc_sides), "gpc_sides");
  DeviceSpec copy;
  copy_device_field("gpc_sides", load_device("h200"), copy);
  EXPECT_EQ(copy.gpc_sides, load_device("h200").gpc_sides);
}

TEST(Calibration, AFieldsRangeIsWhatADeviceFileMayHave) {
  const auto [low, high] = device_field_range(&DeviceSpec::dram_efficiency);
  const DeviceSpec h100 = load_device("h100");
  EXPECT_GT(low, 0);
  EXPECT_EQ(device_with(h100, "dram_efficiency", high, "test").dram_efficiency, high);
  EXPECT_THROW(device_with(h100, "dram_efficiency", 1.01 * high, "test"), InvalidInput);
  EXPECT_THROW(device_with(h100, "dram_efficiency", 0.99 * low, "test"), InvalidInput);
}

// CTAs whose key tiles vary by themselves: how much is found again, whatever the pace of their group.
TEST(Calibration, StepDeviationIsWhatAKeyTilesTimeVariesBy) {
  constexpr double step = 3000;
  constexpr int groups = 16, ctas_a_group = 16, tiles = 320;
  for (const double deviation : {0.006, 0.027}) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> vary(0, deviation * step);
    std::vector<WalkedTiles> ctas;
    for (int cta = 0; cta < groups * ctas_a_group; ++cta) {
      WalkedTiles& walked = ctas.emplace_back(cta % groups);
      double now = 1e4 * cta;  // and wherever they begin
      for (int t = 0; t < tiles; ++t) {
        walked.asked.push_back(now);
        now += step * (1 + 0.02 * walked.group / groups) + vary(random);
      }
    }
    EXPECT_NEAR(step_deviation_of(ctas) / deviation, 1, 0.03);
  }
  std::vector<WalkedTiles> alone(2);
  for (WalkedTiles& cta : alone) cta.asked.assign(tiles, 0);
  alone[1].group = 1;
  EXPECT_THROW(step_deviation_of(alone), EnvironmentError);
  EXPECT_THROW(step_deviation_of({{0, {1, 2}}, {0, {1, 2}}}), EnvironmentError);
}

TEST(Calibration, ClocksOfGpcsAreOverTheirMeanInEachLaunch) {
  const GpcClocks clocks = gpc_clocks_of({{1800, 1800, 1854}, {1818, 1818, 1818}});
  EXPECT_NEAR(clocks.over_mean.at(0), (1800 / 1818.0 + 1) / 2, 1e-12);
  EXPECT_NEAR(clocks.over_mean.at(2), (1854 / 1818.0 + 1) / 2, 1e-12);
  EXPECT_NEAR(clocks.deviation, std::sqrt((2 * 18.0 * 18 + 36 * 36) / 3) / 1818 / 2, 1e-12);
  EXPECT_THROW(gpc_clocks_of({}), EnvironmentError);
  EXPECT_THROW(gpc_clocks_of({{}}), EnvironmentError);
}

// Lines that are asked for together by each of 32 CTAs of docs/results/h200-sm/first_use.csv.
TEST(Calibration, LatencyIsWhatVariesAndWhatDoesNot) {
  const auto times = [](const char* what) {
    std::vector<LinesTime> all;
    for (const MeasuredRow& row : measured_rows(ATTEST_H200_SM "/first_use.csv"))
      if (row.at("what") == what && row.at("ctas") == "32")
        all.push_back({std::stoi(row.at("uses")), std::stod(row.at("first"))});
    EXPECT_EQ(all.size(), 15U);
    return all;
  };
  const Latency dram = latency_of(times("lines in DRAM"));
  EXPECT_NEAR(dram.cycles, 560, 1);
  EXPECT_NEAR(dram.tail_cycles, 155, 1);
  EXPECT_NEAR(latency_tail_of(times("lines in L2"), 296), 76, 1);
  EXPECT_EQ(latency_tail_of({{1, 200}}, 296), 0);
  EXPECT_EQ(latency_tail_of({}, 296), 0);
  const Latency exact = latency_of({{1, 110}, {2, 115}});  // the slower of two is 1 + 1/2 times as late
  EXPECT_NEAR(exact.cycles, 100, 1e-9);
  EXPECT_NEAR(exact.tail_cycles, 10, 1e-9);
  for (const std::vector<LinesTime>& none : {std::vector<LinesTime>{}, {{4, 100}, {4, 120}}, {{1, 100}, {2, 90}}})
    EXPECT_THROW(latency_of(none), EnvironmentError);
}

}  // namespace
}  // namespace attest
