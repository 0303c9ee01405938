#include "attest/fuzz/mask_report.h"
#include "property_parts.h"

namespace attest {

Verdict mask(Trial& trial) {
  if (trial.kernel().unsupported(mask_case(trial.the_case()))) return {};
  MaskOptions options;
  options.refine = !trial.kernel().capability().offers_lse;  // nothing is read without an LSE but key by key
  options.checks = mask_property_checks;
  const RecoveredMask measured = recover_mask(trial, options);
  if (measured.memory) return *measured.memory;
  Verdict verdict;
  verdict.rule = "the keys that each row sees";
  verdict.numerics = trial.kernel().numerics(trial.the_case()).name;
  const MaskComparison comparison = compare_mask(trial.problem(), measured);
  if (comparison.same()) return verdict;
  const MaskRowDifference& first = comparison.first.front();
  verdict.status = Status::wrong_values;
  verdict.channel = "o";
  verdict.element = {first.b, first.i, first.h, 0};
  verdict.error_over_budget = static_cast<double>(1 + comparison.wrong_rows);
  verdict.detail = to_string(first);
  return verdict;
}

}  // namespace attest
