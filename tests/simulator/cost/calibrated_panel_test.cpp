// Predictions from what `attest calibrate` writes within seconds, beside the counters of our own kernels.
#include <gtest/gtest.h>

#include <cstdio>
#include <initializer_list>
#include <string>

#include "attest/simulator/calibration.h"
#include "panel_goals.h"

namespace attest {
namespace {

/// What calibrate measured of a GPU, or asked of its driver, and all else as `known` has it.
DeviceSpec calibrated(const std::string& file, const char* known) {
  DeviceSpec measured = load_device(ATTEST_CALIBRATED "/" + file);
  std::erase_if(measured.origins, [](const FieldOrigin& o) { return o.estimated; });
  EXPECT_GE(measured.origins.size(), 38U);
  return calibrated_device(measured.name, measured.description, measured, load_device(known));
}

// The panel was counted in the minute after.
TEST(Calibration, AnH200IsPredictedFromWhatSecondsMeasureOfIt) {
  constexpr ReachedByAll reached[] = {{"cycles", 2.1, 10.5},
                                      {"dram_read_bytes", 0.54, 5.9},
                                      {"l2_read_bytes", 2.5, 23},
                                      {"l2_crossing_bytes", 1.5, 9.7}};
  expect_reached(counted_panel(ATTEST_H200_MEASURE "/panel_20261130.csv", calibrated("h200_6.json", "h200")), reached);
}

// of the H100's own file nothing is used, as of a GPU that has none
TEST(Calibration, AnH100IsPredictedFromSecondsAndAnH200sFile) {
  constexpr ReachedByAll reached[] = {{"cycles", 2.5, 13.4},
                                      {"dram_read_bytes", 1.2, 16.9},
                                      {"l2_read_bytes", 2.5, 23.2},
                                      {"l2_crossing_bytes", 1.9, 12.6}};
  expect_reached(counted_panel(ATTEST_MEASURED "/h100_panel.csv", calibrated("h100.json", "h200")), reached);
}

}  // namespace
}  // namespace attest
