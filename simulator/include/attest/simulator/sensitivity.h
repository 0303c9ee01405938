// Which of a device's estimates a prediction hangs on, by moving each of them and predicting again.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attest/simulator/report.h"

namespace attest {

/// A figure that moves by no more of itself than this stands still.
inline constexpr double least_move = 0.01;

/// The fields of the report's device that are marked estimated and, with half or twice their value (device_scaled()),
/// move a number of to_json(report) or of its unfused path, the one that moves most first; then those of which neither
/// direction that could be predicted moves any, and the other is refused. Case, plan and effort are the report's: a
/// kernel stays what it is. Two predictions a field, on all cores; `progress`, one call at a time, hears of each.
std::vector<Estimate> estimates_behind(const SimulationReport& report,
                                       const std::function<void(std::size_t done, std::size_t of)>& progress = {});

}  // namespace attest
