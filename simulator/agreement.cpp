// Two measurements of the same calls beside each other.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "attest/simulator/comparison.h"

namespace attest {
namespace {

struct Agreement {
  int calls = 0;
  double mean = 0, most = 0;
};

const MeasuredCall* same_call(const MeasuredCall& call, const std::vector<MeasuredCall>& others) {
  const auto found = std::find_if(others.begin(), others.end(),
                                  [&](const MeasuredCall& o) { return o.kernel == call.kernel && o.c == call.c; });
  return found == others.end() ? nullptr : &*found;
}

}  // namespace

bool have_a_call_in_common(const std::vector<MeasuredCall>& calls, const std::vector<MeasuredCall>& others) {
  return std::any_of(calls.begin(), calls.end(),
                     [&](const MeasuredCall& c) { return same_call(c, others) != nullptr; });
}

std::string agreement_table(const std::vector<MeasuredCall>& calls, const std::vector<MeasuredCall>& others) {
  std::map<std::string, Agreement> counters;
  int compared = 0;
  for (const MeasuredCall& call : calls) {
    const MeasuredCall* const other = same_call(call, others);
    if (other == nullptr || call.launches.size() != 1 || other->launches.size() != 1) continue;
    ++compared;
    for (const auto& [name, value] : call.launches[0].counters) {
      const auto found = other->launches[0].counters.find(name);
      if (found == other->launches[0].counters.end()) continue;
      const double larger = std::max(std::abs(value), std::abs(found->second));
      const double off = larger == 0 ? 0 : std::abs(value - found->second) / larger;
      Agreement& a = counters[name];
      ++a.calls, a.mean += off, a.most = std::max(a.most, off);
    }
  }
  std::string text =
      fmt::format("two measurements of {} calls of one launch: difference in %, mean and most\n", compared);
  for (const auto& [name, a] : counters)
    text += fmt::format("{:<68}{:>8.2f}{:>8.2f}\n", name, 100 * a.mean / a.calls, 100 * a.most);
  return text;
}

}  // namespace attest
