// What the steps that compare figures with those of before share.
#pragma once
#include "attest/nightly/regression.h"
#include "steps.h"

namespace attest {

/// Adds the series and the check that judges it, under the series' name.
inline void add_judged(const StepWork& work, Series series, const Gate& gate, const std::string& more,
                       const std::string& repro, Part& part) {
  series.begins = work.options.new_baseline;
  const Judgement judgement = judge(series, work.history.before(work.night.id, series, baseline_nights), gate);
  part.checks.push_back({series.name, judgement.worse ? CheckState::regressed : CheckState::passed,
                         judgement.words + more, judgement.worse ? repro : ""});
  part.series.push_back(std::move(series));
}

}  // namespace attest
