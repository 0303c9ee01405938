#include "panel_goals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "attest/problem/file.h"
#include "attest/simulator/calibration.h"

namespace attest {
namespace {

/// Of the errors of a mechanism's calls, in per cent: what is wanted; and how far the mean of all calls
/// that keep it may be too high or too low, which is what was reached on an H200, rounded up, and holds on an H100, but
/// for occupancy: there it is what was reached on an H100, whose last waves end sooner in the model since CTAs alone
/// take their time.
struct Goal {
  const char* figure;
  double mean, most, bias;
};
constexpr double any = 1e9;

// At the SM 0.2 is wanted of every call too.
constexpr Goal goals[] = {
    {"registers_per_thread", 0, 0, 0},
    {"smem_wavefronts", 0.2, 0.2, 0.1},
    {"sm_read_bytes", 0.2, 0.2, 0.1},
    {"sm_write_bytes", 0.2, 0.2, 0.1},
    {"spill_store_bytes", 0.2, 0.2, 0.1},
    {"l2_read_bytes", 5, any, 0.5},
    {"spill_load_bytes", 10, 10, 0.9},
    {"dram_read_bytes", 2, 6, 0.6},
    {"cycles", 6, 12, 1.1},
    {"l2_crossing_bytes", 5, any, 1.8},
    {"dram_write_bytes", 10, 10, 2.2},
    {"occupancy_percent", 5, 10, 1.05},
    {"xu_instructions", 0.02, 0.02, 0.002},
    {"spill_store_instructions", 10, 10, 0.9},
    {"spill_load_instructions", 10, 10, 0.9},
};

const Beyond* beyond_of(std::span<const Beyond> beyond, std::string_view mechanism, std::string_view figure) {
  const auto found = std::find_if(beyond.begin(), beyond.end(),
                                  [&](const Beyond& b) { return mechanism == b.mechanism && figure == b.figure; });
  return found == beyond.end() ? nullptr : &*found;
}

}  // namespace

MeasuredFile counted_file(const std::string& path) {
  MeasuredFile counted = measured_from_csv(read_file("panel", path, 8 << 20), path);
  const std::vector<std::vector<MeasuredCall>> calls = counts_by_call(counted.calls);
  const std::vector<MeasuredCall> made = measurement_panel();
  EXPECT_EQ(calls.size(), made.size());
  for (std::size_t i = 0; i < std::min(made.size(), calls.size()); ++i) {
    EXPECT_EQ(calls[i].size(), calls[0].size());
    EXPECT_EQ(calls[i][0].mechanism, made[i].mechanism);
    EXPECT_EQ(calls[i][0].kernel, made[i].kernel);
    EXPECT_EQ(calls[i][0].c, made[i].c) << command_line(made[i].c);
  }
  return counted;
}

CountedPanel counted_panel(const std::string& path, const DeviceSpec& device) {
  CountedPanel panel;
  const MeasuredFile counted = counted_file(path);
  const DeviceSpec chip = device_of_chip(device, counted.how.gpc_sides);
  for (const std::vector<MeasuredCall>& counts : counts_by_call(counted.calls))
    panel.push_back(compare(counts, chip, nullptr, counted.how));
  return panel;
}

void expect_reached(const CountedPanel& panel, std::span<const ReachedByAll> reached) {
  for (const auto& [figure, mean, most] : reached) {
    const MeanAndMost e = errors_of(panel, figure);
    ASSERT_GT(e.calls, 0) << figure;
    std::printf("%-22s %5.2f %6.2f\n", figure, 100 * e.mean, 100 * e.most);
    EXPECT_LE(100 * e.mean, mean) << figure;
    EXPECT_LE(100 * e.most, most) << figure << command_line(e.worst->call.c);
  }
}

void expect_goals(const CountedPanel& panel, std::span<const Beyond> beyond) {
  std::fputs(to_table(panel).c_str(), stdout);
  for (const Goal& goal : goals) {
    double too_high = 0;
    int calls = 0;
    for (const std::string& mechanism : mechanisms_of(panel)) {
      const MeanAndMost e = errors_of(panel, goal.figure, mechanism);
      if (e.calls == 0) continue;
      const double mean = 100 * e.mean, most = 100 * e.most;
      SCOPED_TRACE(mechanism + ", " + goal.figure + ", most: " + command_line(e.worst->call.c));
      const Beyond* const b = beyond_of(beyond, mechanism, goal.figure);
      EXPECT_LE(mean, b != nullptr ? b->mean : goal.mean);
      EXPECT_LE(most, b != nullptr ? b->most : goal.most);
      if (b != nullptr) {
        std::printf("%-17s %-21s %6.2f / %-6.2f %s\n", b->mechanism, b->figure, mean, most, b->why);
        EXPECT_FALSE(mean <= goal.mean && most <= goal.most) << "strike it off the list";
        continue;
      }
      for (const Comparison& c : panel)
        for (const ComparedFigure& f : c.figures) {
          if (c.call.mechanism != mechanism || f.name != goal.figure || !f.error()) continue;
          too_high += *f.predicted < *f.measured ? -*f.error() : *f.error();
          ++calls;
        }
    }
    ASSERT_GT(calls, 0) << goal.figure;
    std::printf("%-21s %3d calls keep %.4g / %.4g, too high by %.2f\n", goal.figure, calls, goal.mean, goal.most,
                100 * too_high / calls);
    EXPECT_LE(100 * std::abs(too_high / calls), goal.bias) << goal.figure;
  }
  for (const Beyond& b : beyond) EXPECT_GT(errors_of(panel, b.figure, b.mechanism).calls, 0) << b.mechanism;
}

}  // namespace attest
