// Two measurements of the same calls beside each other.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "attest/simulator/comparison.h"

namespace attest {
namespace {

struct Agreement {
  int calls = 0;
  double sum = 0, most = 0;
  double mean() const { return sum / calls; }
};

struct Agreements {
  int calls = 0;  // of one launch
  std::map<std::string, Agreement> counters;
};

const MeasuredCall* same_call(const MeasuredCall& call, const std::vector<MeasuredCall>& others) {
  const auto found = std::find_if(others.begin(), others.end(),
                                  [&](const MeasuredCall& o) { return o.kernel == call.kernel && o.c == call.c; });
  return found == others.end() ? nullptr : &*found;
}

/// Whether agreements() has a counter of them; what is yet to be counted has all of them.
bool are_comparable(const MeasuredCall& call, const MeasuredCall& other) {
  if (other.launches.size() != 1 || call.launches.size() > 1) return false;
  if (call.launches.empty()) return true;
  const auto& counters = call.launches[0].counters;
  return std::any_of(other.launches[0].counters.begin(), other.launches[0].counters.end(),
                     [&](const auto& counter) { return counters.contains(counter.first); });
}

std::vector<MeasuredCall> means_of(const std::vector<MeasuredCall>& counts) {
  std::vector<MeasuredCall> means;
  for (const std::vector<MeasuredCall>& of_call : counts_by_call(counts)) means.push_back(mean_of(of_call));
  return means;
}

Agreements agreements(const std::vector<MeasuredCall>& counts, const std::vector<MeasuredCall>& other_counts) {
  Agreements all;
  const std::vector<MeasuredCall> others = means_of(other_counts);
  for (const MeasuredCall& call : means_of(counts)) {
    const MeasuredCall* const other = same_call(call, others);
    if (other == nullptr || call.launches.size() != 1 || other->launches.size() != 1) continue;
    ++all.calls;
    for (const auto& [name, value] : call.launches[0].counters) {
      const auto found = other->launches[0].counters.find(name);
      if (found == other->launches[0].counters.end()) continue;
      const double larger = std::max(std::abs(value), std::abs(found->second));
      const double off = larger == 0 ? 0 : std::abs(value - found->second) / larger;
      Agreement& a = all.counters[name];
      ++a.calls, a.sum += off, a.most = std::max(a.most, off);
    }
  }
  return all;
}

}  // namespace

bool have_a_call_in_common(const std::vector<MeasuredCall>& calls, const std::vector<MeasuredCall>& others) {
  return std::any_of(calls.begin(), calls.end(), [&](const MeasuredCall& call) {
    const MeasuredCall* const other = same_call(call, others);
    return other != nullptr && are_comparable(call, *other);
  });
}

std::string agreement_table(const std::vector<MeasuredCall>& calls, const std::vector<MeasuredCall>& others) {
  const Agreements all = agreements(calls, others);
  std::string text =
      fmt::format("two measurements of {} calls of one launch: difference in %, mean and most\n", all.calls);
  for (const auto& [name, a] : all.counters)
    text += fmt::format("{:<68}{:>8.2f}{:>8.2f}\n", name, 100 * a.mean(), 100 * a.most);
  return text;
}

nlohmann::ordered_json agreement_json(const std::vector<MeasuredCall>& calls, const std::vector<MeasuredCall>& others) {
  const Agreements all = agreements(calls, others);
  nlohmann::ordered_json counters = nlohmann::ordered_json::array();
  for (const auto& [name, a] : all.counters)
    counters.push_back({{"counter", name}, {"calls", a.calls}, {"mean", a.mean()}, {"most", a.most}});
  return {{"calls", all.calls}, {"differences", counters}};
}

}  // namespace attest
