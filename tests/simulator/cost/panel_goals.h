// The calls of `attest measure --panel` as a GPU's counters saw them, cold caches, beside the models: each mechanism
// keeps the goals of panel_goals.cpp, or is named with what is reached and why.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "attest/simulator/comparison.h"
#include "attest/simulator/measured_call.h"

namespace attest {

/// Of a file, whose calls it expects to be those that `measure --panel` makes, each counted as often as the others.
MeasuredFile counted_file(const std::string& path);

/// The same beside the models of a device, which takes half a minute.
using CountedPanel = std::vector<Comparison>;
CountedPanel counted_panel(const std::string& path, const DeviceSpec& device);

/// Of all calls, in per cent: what was reached, rounded up.
struct ReachedByAll {
  const char* figure;
  double mean, most;
};
void expect_reached(const CountedPanel& panel, std::span<const ReachedByAll> reached);

/// A mechanism that does not keep a goal, and what bounds it instead, in per cent: what was reached, rounded up.
struct Beyond {
  const char *mechanism, *figure;
  double mean, most;
  const char* why;
};

/// Expects the goals of each mechanism, and prints all errors.
void expect_goals(const CountedPanel& panel, std::span<const Beyond> beyond);

}  // namespace attest
