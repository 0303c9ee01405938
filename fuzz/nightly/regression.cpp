#include "attest/nightly/regression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attest/nightly/rank_test.h"

namespace attest {

std::string figure_words(double value, const std::string& unit) {
  if (unit != "B") {
    const char* const clock = unit == cpu_seconds_unit ? "CPU " : "";
    if (value < 1e-3) return fmt::format("{:.4g} {}us", 1e6 * value, clock);
    return value < 1 ? fmt::format("{:.4g} {}ms", 1e3 * value, clock) : fmt::format("{:.4g} {}s", value, clock);
  }
  if (value < 1e3) return fmt::format("{:.4g} B", value);
  if (value < 1e6) return fmt::format("{:.4g} kB", 1e-3 * value);
  return value < 1e9 ? fmt::format("{:.4g} MB", 1e-6 * value) : fmt::format("{:.4g} GB", 1e-9 * value);
}

Judgement judge(const Series& tonight, const std::vector<Figures>& before, const Gate& gate) {
  Judgement judgement;
  judgement.median = median(tonight.values);
  std::vector<double> others;
  double slowest = 0;
  int nights = 0;
  for (const Figures& night : before) {
    if (night.red || night.values.empty()) continue;
    others.insert(others.end(), night.values.begin(), night.values.end());
    slowest = std::max(slowest, median(night.values));
    ++nights;
  }
  judgement.words = figure_words(judgement.median, tonight.unit);
  if (others.empty() || tonight.begins) {
    judgement.words += tonight.begins ? ", a new baseline" : ", the first of its kind here";
    return judgement;
  }
  judgement.baseline = median(others);
  judgement.chance = larger_by_chance(tonight.values, others);
  judgement.worse = judgement.median >= gate.least_ratio * judgement.baseline && judgement.median > slowest &&
                    judgement.chance <= gate.most_chance;
  judgement.words += fmt::format(", {:.3g} times the {} of {} night{} before", judgement.median / judgement.baseline,
                                 figure_words(judgement.baseline, tonight.unit), nights, nights == 1 ? "" : "s");
  if (gate.most_chance < 1) judgement.words += fmt::format(" (p = {:.1g})", judgement.chance);
  return judgement;
}

}  // namespace attest
