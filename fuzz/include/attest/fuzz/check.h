// One case under one kernel, every property that applies to it.
#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "attest/fuzz/mask_report.h"
#include "attest/fuzz/properties.h"
#include "attest/fuzz/worker.h"

namespace attest {

struct CheckOptions {
  std::string kernel = "cpu";
  Case the_case;
  std::string property;      // empty: all that apply
  std::int64_t diffs = 0;    // how many of the elements worst for their bound to list
  bool dry_run = false;      // say what would be done
  bool mask = false;         // read the mask and draw it beside the truth
  double hang_seconds = 60;  // a run of the kernel that takes longer is ended; 0: never. In a worker only
  bool progress = false;     // a line to stderr every few seconds. In a worker only
  MaskOptions mask_options;
  std::string truth = "cpu";  // of O and LSE: truth_named()

  /// Throws what truth_named() does, and InvalidInput naming the case's field, property, diffs, timeout, mask,
  /// mask_batch or mask_head.
  void validate() const;
};

/// An element of O or LSE beside the truth.
struct Difference {
  std::string channel;
  std::array<std::int64_t, 4> element{};
  double value = 0, expected = 0, bound = 0, error_over_budget = 0;
};

/// The mask that the kernel was measured to see beside the true one, in the words of mask_report.h.
struct MaskReport {
  bool same = true;
  std::string text, json, svg;
};

struct CheckResult {
  std::optional<std::string> unsupported;                 // why the kernel refuses the case
  std::vector<std::pair<std::string, Verdict>> verdicts;  // by property
  std::vector<Difference> differences;                    // the worst first
  std::optional<MaskReport> mask;
  bool interrupted = false;
};

/// Tells `each` of every verdict as it is made.
using EachVerdict = std::function<void(const Property&, const Verdict&)>;

/// The property under which a kernel is to blame that fails before any began: the one that was asked for, or the first.
const Property& first_property(const CheckOptions& options);

/// In this process. What the kernel throws, in `unsupported` and while the mask or the differences are read too, is a
/// verdict: `crashed`.
CheckResult run_check(Kernel& kernel, const CheckOptions& options, const EachVerdict& each = {});
/// In a worker; its crash or hang is the last verdict, and what comes after it is not run. Throws KernelCrashed, and
/// what making the kernel throws. request_stop() ends it at once: `interrupted`.
CheckResult run_check(const WorkerProgram& program, const CheckOptions& options);

/// "attest/check/1".
nlohmann::ordered_json to_json(const CheckOptions& options, const CheckResult& result);
std::string to_text(const CheckOptions& options, const CheckResult& result);

}  // namespace attest
