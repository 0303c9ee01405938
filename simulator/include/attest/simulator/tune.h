// Which plan is best for a case on a device: a space of plans, ranked roughly by a short walk each, and the best of
// them walked in full.
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "attest/simulator/plan_file.h"
#include "attest/simulator/report.h"

namespace attest {

/// Of times: below it the noise of a walk decides.
inline constexpr double tune_resolution = 0.005;

struct TuneOptions {
  std::vector<PlanCondition> where = {};  // plans that lack one of these are skipped, the named ones too
  int full = 12;                          // plans that are walked in full, the named ones apart; at least 2
  /// How much of a plan is walked before that: enough to see waves and which resource binds, not what L2 evicts.
  std::int64_t rough_events = 10'000, rough_line_accesses = 40'000;
};

struct TunedPlan {
  DescribedPlan plan;
  SimulationReport report;   // in full where walked_in_full, else of the short walk
  double rough_time_us = 0;  // of the short walk
  bool walked_in_full = false;
  bool named = false;  // one of `attest plans`
};

struct SkippedPlan {
  DescribedPlan plan;
  std::string reason;      // "shared memory", "registers", "cannot exist", "not asked for", ...: a few, to be counted
  std::string detail;      // field, value and limit
  std::string case_field;  // where another value of that of the case would do; else empty
};

struct TuneResult {
  Case c;
  DeviceSpec device;
  /// Walked in full by time, then the others by their rough time. Of those within 0.5% of the best, which the model
  /// cannot tell apart, the one that spills least, then has the fewest stages and extras, goes first.
  std::vector<TunedPlan> ranked;
  std::vector<SkippedPlan> skipped;
  std::vector<std::string> why;  // sentences: why the first of `ranked` wins over the second and over named plans

  const TunedPlan& winner() const { return ranked.front(); }
  std::map<std::string, int> skipped_by_reason() const;
};

/// The plans that are tried for a case: tiles of 1 to 8 warps of 16 or 32 rows and 32 to 128 keys (16 for wide heads),
/// 1 to 3 stages, and what the kernels can do otherwise; on devices with wgmma also warp-specialised ones. Some of them
/// cannot exist or will not fit; the named plans are not among them.
std::vector<DescribedPlan> plan_space(const Case& c, const DeviceSpec& device);

/// Throws InvalidInput where unpredicted() says why, or where no plan fits the device.
TuneResult tune(const Case& c, const DeviceSpec& device, const TuneOptions& options = {});

/// {"schema": "attest/tune/1", ...}: `top` plans with all their figures, the others by name and time.
nlohmann::ordered_json to_json(const TuneResult& result, int top);
std::string to_table(const TuneResult& result, int top);

}  // namespace attest
