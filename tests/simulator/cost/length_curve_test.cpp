#include "attest/simulator/length_curve.h"

#include <gmock/gmock.h>

namespace attest {
namespace {

SimulationReport report_of(Problem p) {
  Case c;
  c.problem = std::move(p);
  const DeviceSpec device = load_device("a100");
  return simulate(c, plan_named("attest", c, device), device, "attest");
}

std::vector<std::int64_t> keys(const LengthCurve& curve) {
  std::vector<std::int64_t> result;
  for (const LengthPoint& p : curve.points) result.push_back(p.seqlen_k);
  return result;
}

TEST(LengthCurve, HoldsTheCaseItselfAndPowersOfTwoAroundIt) {
  const SimulationReport report =
      report_of({1, 4, 4, 1024, 1024, 64, 64, Dtype::fp16, {}, Causal::bottom_right, -1, -1});
  const LengthCurve curve = length_curve(report);
  EXPECT_THAT(keys(curve), testing::ElementsAre(64, 128, 256, 512, 1024, 2048, 4096));
  const LengthPoint& own = curve.points[4];
  EXPECT_EQ(own.seqlen_q, 1024);
  EXPECT_DOUBLE_EQ(own.dram_bytes, report.dram_read_bytes + report.dram_write_bytes);
  EXPECT_DOUBLE_EQ(own.unfused_time_us / own.time_us, report.unfused_speedup);
  for (std::size_t i = 1; i < curve.points.size(); ++i) {
    EXPECT_GT(curve.points[i].time_us, curve.points[i - 1].time_us);
    EXPECT_GT(curve.points[i].unfused_dram_bytes, curve.points[i - 1].unfused_dram_bytes);
  }
}

TEST(LengthCurve, EachPointIsThePredictionOfThatLength) {
  const LengthCurve curve = length_curve(report_of({1, 4, 4, 256, 256, 64, 64, Dtype::fp16, {}, Causal::none, -1, -1}));
  const SimulationReport longer = report_of({1, 4, 4, 512, 512, 64, 64, Dtype::fp16, {}, Causal::none, -1, -1});
  const auto at = std::find_if(curve.points.begin(), curve.points.end(), [](auto& p) { return p.seqlen_k == 512; });
  ASSERT_NE(at, curve.points.end());
  EXPECT_DOUBLE_EQ(at->unfused_time_us, longer.unfused.time_us);
  EXPECT_DOUBLE_EQ(at->dram_bytes, longer.dram_read_bytes + longer.dram_write_bytes);
}

TEST(LengthCurve, KeepsTheQueriesOfADecode) {
  const LengthCurve curve = length_curve(report_of({2, 4, 4, 1, 4096, 64, 64, Dtype::fp16, {}, Causal::none, -1, -1}));
  ASSERT_GE(curve.points.size(), 5U);
  for (const LengthPoint& p : curve.points) EXPECT_EQ(p.seqlen_q, 1);
  EXPECT_THAT(keys(curve), testing::Contains(8192));
}

TEST(LengthCurve, HalvesNoLengthThatIsOdd) {
  const SimulationReport report = report_of({1, 4, 4, 1002, 1002, 64, 64, Dtype::fp16, {}, Causal::none, -1, -1});
  EXPECT_THAT(keys(length_curve(report, 6.0 * static_cast<double>(report.walk.key_tiles))),
              testing::ElementsAre(501, 1002, 2004));
}

TEST(LengthCurve, WalksNoMoreThanItsBudget) {
  const SimulationReport report = report_of({1, 4, 4, 1024, 1024, 64, 64, Dtype::fp16, {}, Causal::none, -1, -1});
  const auto own = static_cast<double>(report.walk.key_tiles);
  EXPECT_THAT(keys(length_curve(report, 0)), testing::ElementsAre(1024));
  EXPECT_THAT(keys(length_curve(report, 0.4 * own)), testing::ElementsAre(64, 128, 256, 512, 1024));
  // one query's tiles are as many more as there are keys
  const SimulationReport decode = report_of({1, 4, 4, 1, 256, 64, 64, Dtype::fp16, {}, Causal::none, -1, -1});
  EXPECT_THAT(keys(length_curve(decode, 2.8 * static_cast<double>(decode.walk.key_tiles))),
              testing::ElementsAre(64, 128, 256, 512));
}

TEST(LengthCurve, SaysWhyThereIsNone) {
  const LengthCurve curve = length_curve(report_of({1, 1, 1, 8, 0, 64, 64, Dtype::fp16, {}, Causal::none, -1, -1}));
  EXPECT_TRUE(curve.points.empty());
  EXPECT_EQ(curve.why_none, "there is nothing to compute");
}

}  // namespace
}  // namespace attest
