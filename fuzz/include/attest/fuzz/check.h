// One case under one kernel, every property that applies to it.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "attest/fuzz/mask_report.h"
#include "attest/fuzz/properties.h"

namespace attest {

struct CheckOptions {
  std::string kernel = "cpu";
  Case the_case;
  std::string property;    // empty: all that apply
  std::int64_t diffs = 0;  // how many of the elements worst for their bound to list
  bool dry_run = false;    // say what would be done
  bool mask = false;       // read the mask and draw it beside the truth
  MaskOptions mask_options;

  /// Throws InvalidInput naming the case's field, kernel, property, diffs, mask, mask_batch or mask_head.
  void validate() const;
};

/// An element of O or LSE beside the truth.
struct Difference {
  std::string channel;
  std::array<std::int64_t, 4> element{};
  double value = 0, expected = 0, bound = 0, error_over_budget = 0;
};

/// The mask that the kernel was measured to see.
struct MaskReport {
  RecoveredMask mask;
  MaskComparison comparison;
  std::string svg;
};

struct CheckResult {
  std::optional<std::string> unsupported;                 // why the kernel refuses the case
  std::vector<std::pair<std::string, Verdict>> verdicts;  // by property
  std::vector<Difference> differences;                    // the worst first
  std::optional<MaskReport> mask;
};

CheckResult run_check(Kernel& kernel, const CheckOptions& options);

/// "attest/check/1".
nlohmann::ordered_json to_json(const CheckOptions& options, const CheckResult& result);
std::string to_text(const CheckOptions& options, const CheckResult& result);

}  // namespace attest
