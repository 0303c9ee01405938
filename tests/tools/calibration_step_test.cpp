#include "calibration_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attest::tools {
namespace {

using testing::ElementsAre, testing::IsEmpty;

const auto usable = [] { return true; };
const auto lost = [] { return false; };

TEST(CalibrationStep, WhatFailsIsMissingAndTheNextIsDone) {
  std::vector<std::string> missing;
  int done = 0;
  calibration_step(
      "pipes", missing, [&] { ++done; }, lost);
  EXPECT_THAT(missing, IsEmpty());
  calibration_step(
      "DRAM", missing, [] { throw std::runtime_error("cudaMalloc: out of memory"); }, usable);
  calibration_step(
      "code", missing, [] { throw EnvironmentError("no loop was measured"); }, usable);
  calibration_step(
      "launches", missing, [&] { ++done; }, usable);
  EXPECT_THAT(missing, ElementsAre("DRAM: cudaMalloc: out of memory", "code: no loop was measured"));
  EXPECT_EQ(done, 2);
}

TEST(CalibrationStep, AGpuThatIsLostEndsThemAll) {
  std::vector<std::string> missing;
  try {
    calibration_step(
        "pipes", missing, [] { throw std::runtime_error("cudaErrorIllegalAddress"); }, lost);
    ADD_FAILURE() << "it went on";
  } catch (const EnvironmentError& error) {
    EXPECT_STREQ(error.what(), "pipes: cudaErrorIllegalAddress");
  }
}

TEST(CalibrationStep, AMistakeOfOursIsNoMeasurementThatFailed) {
  std::vector<std::string> missing;
  EXPECT_THROW(calibration_step(
                   "pipes", missing, [] { throw std::logic_error("no such pipe"); }, usable),
               std::logic_error);
  EXPECT_THAT(missing, IsEmpty());
}

}  // namespace
}  // namespace attest::tools
