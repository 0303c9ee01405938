// Predictions from what `attest calibrate` writes within seconds, beside the counters of our own kernels.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "attest/simulator/calibration.h"
#include "panel_goals.h"

namespace attest {
namespace {

/// What calibrate measured of a GPU, or asked of its driver, and all else as `known` has it.
DeviceSpec calibrated(const std::string& file, const char* known) {
  DeviceSpec measured = load_device(ATTEST_CALIBRATED "/" + file);
  std::erase_if(measured.origins, [](const FieldOrigin& o) { return o.estimated; });
  EXPECT_GE(measured.origins.size(), 39U);
  return calibrated_device(measured.name, measured.description, measured, load_device(known));
}

void expect_goals_of_all(const CountedPanel& panel) {
  struct Goal {
    const char* figure;
    double mean, most;  // per cent
  };
  constexpr double any = 100;  // what panel_test.cpp bounds by mechanism, and says why
  for (const auto& [figure, mean, most] :
       {Goal{"cycles", 6, 12}, Goal{"dram_read_bytes", 2, any}, Goal{"l2_read_bytes", 5, any},
        Goal{"l2_crossing_bytes", 5, any}, Goal{"smem_wavefronts", 0.2, 0.6}, Goal{"registers_per_thread", 0, 0}}) {
    const FigureErrors e = errors_of(panel.compared, figure);
    std::printf("%-22s %5.2f %6.2f\n", figure, 100 * e.mean, 100 * e.most);
    EXPECT_LE(100 * e.mean, mean) << figure;
    EXPECT_LE(100 * e.most, most) << figure;
  }
}

TEST(Calibration, AnH200IsPredictedFromWhatSecondsMeasureOfIt) {
  expect_goals_of_all(counted_panel("h200_panel.csv", calibrated("h200.json", "h200")));
}

// of the H100's own file nothing is used, as of a GPU that has none
TEST(Calibration, AnH100IsPredictedFromSecondsAndAnH200sFile) {
  expect_goals_of_all(counted_panel("h100_panel.csv", calibrated("h100.json", "h200")));
}

}  // namespace
}  // namespace attest
