#include "attest/nightly/regression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attest {
namespace {

using testing::HasSubstr;

std::vector<double> around(double middle) {
  std::vector<double> values;
  for (int i = -4; i <= 4; ++i) values.push_back(middle * (1 + 0.002 * i));
  return values;
}
Figures night(double middle, bool red = false) { return {"2026-11-01T00:00:00Z", around(middle), red}; }
Judgement time_of(double middle, const std::vector<Figures>& before) {
  return judge({"time/k/case", "s", around(middle), false}, before, device_time_gate);
}

TEST(Regression, OneNightIsBaselineEnough) {
  EXPECT_TRUE(time_of(1.06e-3, {night(1e-3)}).worse);
  EXPECT_FALSE(time_of(1.04e-3, {night(1e-3)}).worse) << "below the least ratio";
  EXPECT_FALSE(time_of(0.5e-3, {night(1e-3)}).worse);
  EXPECT_FALSE(time_of(1e-3, {}).worse);
}

TEST(Regression, WhatNightsDriftByIsNoSlowDown) {
  EXPECT_TRUE(time_of(1.1e-3, {night(1e-3), night(1.01e-3)}).worse);
  EXPECT_FALSE(time_of(1.1e-3, {night(1e-3), night(1.12e-3)}).worse) << "a good night was slower";
}

TEST(Regression, RedNightsAreNoBaseline) {
  const std::vector<Figures> before = {night(1e-3), night(2e-3, true), night(2e-3, true)};
  const Judgement judgement = time_of(2e-3, before);
  EXPECT_TRUE(judgement.worse);
  EXPECT_NEAR(judgement.baseline, 1e-3, 1e-6);
}

TEST(Regression, FewRepeatsProveNothing) {
  const Series two{"t", "s", {2, 2}, false};
  EXPECT_FALSE(judge(two, {{"", {1, 1}, false}}, device_time_gate).worse) << "1 of 6 by chance";
}

TEST(Regression, NoiseBeyondTheRatioIsNotEnough) {
  // Median 1.3 times as large, but the values mix.
  const Series noisy{"t", "s", {1, 1.1, 1.3, 2, 0.9}, false};
  EXPECT_FALSE(judge(noisy, {{"", {1, 1, 0.8, 1.9, 1.2}, false}}, device_time_gate).worse);
}

TEST(Regression, BytesAreHeldToABandOfOneFigure) {
  const auto bytes = [](double tonight) {
    return judge({"b", "B", {tonight}, false}, {{"", {1000}, false}}, bytes_gate);
  };
  EXPECT_FALSE(bytes(1019).worse);
  EXPECT_TRUE(bytes(1021).worse);
  EXPECT_FALSE(bytes(10).worse);
}

TEST(Regression, ANewBaselineIsComparedWithNothing) {
  const Judgement judgement = judge({"t", "s", around(2), true}, {night(1)}, device_time_gate);
  EXPECT_FALSE(judgement.worse);
  EXPECT_THAT(judgement.words, HasSubstr("a new baseline"));
}

TEST(Regression, FiguresReadWithTheirUnit) {
  EXPECT_EQ(figure_words(1.5e-5, "s"), "15 us");
  EXPECT_EQ(figure_words(0.25, "s"), "250 ms");
  EXPECT_EQ(figure_words(0.25, cpu_seconds_unit), "250 CPU ms");
  EXPECT_EQ(figure_words(1.5e9, "B"), "1.5 GB");
}

}  // namespace
}  // namespace attest
