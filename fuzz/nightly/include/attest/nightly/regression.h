// Is a figure worse than it was?
#pragma once
#include <string>
#include <vector>

#include "attest/nightly/history.h"

namespace attest {

/// How many nights a figure is compared with: the newest ones that were not red for it.
inline constexpr int baseline_nights = 20;

/// What a figure is held to.
struct Gate {
  double least_ratio;  // of tonight's median over the baseline's, below which nothing is worse
  double most_chance;  // of larger_by_chance(), above which nothing is worse
};

/// Kernel times by the device's clock. Medians of 9 repeats on an idle GPU differed by up to 3.1 % from one night to
/// the next (docs/results/h200-nightly.md); 5 % is beyond that and below any slow-down worth a night. A chance of
/// 1/1000 takes 9 repeats against one night of 9, all but a few of them slower, and gives ten figures a false alarm in
/// 100 nights at most.
inline constexpr Gate device_time_gate{1.05, 1e-3};
/// CPU seconds of a process: neighbours share its caches and its clock. Campaigns of one program differed by 17 % on a
/// loaded machine (docs/fuzzing.md, "How fast"); twice that is beyond it.
inline constexpr Gate cpu_time_gate{1.35, 1e-3};
/// Bytes: a prediction repeats exactly, so one figure is enough; a counted one gets the same band.
inline constexpr Gate bytes_gate{1.02, 1};

struct Judgement {
  bool worse = false;
  double median = 0, baseline = 0;  // baseline: the median of all values of the good nights of before; 0: none
  double chance = 1;
  std::string words;  // one line: the figure beside what it was
};

/// Worse where three things hold: the median is at least gate.least_ratio times the baseline, it is above the median of
/// every good night of before (nights drift; a rank test of repeats alone cannot see that they do), and
/// larger_by_chance() of tonight's values over those of before is at most gate.most_chance. Nights that were red for
/// this figure are no baseline, so a slow-down stays red until it is mended, or accepted by a new baseline.
Judgement judge(const Series& tonight, const std::vector<Figures>& before, const Gate& gate);

/// "1.23 ms", "45.6 MB".
std::string figure_words(double value, const std::string& unit);

}  // namespace attest
