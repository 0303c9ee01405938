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

/// Means of calls' counts, found by kernel and case.
class Means {
 public:
  explicit Means(const std::vector<MeasuredCall>& counts) {
    for (const std::vector<MeasuredCall>& of_call : counts_by_call(counts)) {
      calls_.push_back(mean_of(of_call));
      numbers_.emplace(key(calls_.back()), calls_.size() - 1);
    }
  }
  const std::vector<MeasuredCall>& calls() const { return calls_; }
  /// One of its mechanism that makes as many launches, if there is one; null where there is none at all.
  const MeasuredCall* find(const MeasuredCall& call) const {
    const MeasuredCall* found = nullptr;
    const auto [first, last] = numbers_.equal_range(key(call));
    for (auto at = first; at != last; ++at) {
      const MeasuredCall& other = calls_[at->second];
      if (found == nullptr) found = &other;
      if (other.mechanism == call.mechanism && other.launches.size() == call.launches.size()) return &other;
    }
    return found;
  }

 private:
  static std::string key(const MeasuredCall& call) { return call.kernel + "\n" + to_json(call.c).dump(); }
  std::vector<MeasuredCall> calls_;
  std::multimap<std::string, std::size_t> numbers_;
};

/// Whether agreements() has a counter of them; what is yet to be counted has all of them.
bool are_comparable(const MeasuredCall& call, const MeasuredCall& other) {
  if (other.launches.size() != 1 || call.launches.size() > 1) return false;
  if (call.launches.empty()) return true;
  const auto& counters = call.launches[0].counters;
  return std::any_of(other.launches[0].counters.begin(), other.launches[0].counters.end(),
                     [&](const auto& counter) { return counters.contains(counter.first); });
}

Agreements agreements(const std::vector<MeasuredCall>& calls, const std::vector<MeasuredCall>& others) {
  Agreements all;
  const Means means(others);
  const Means own(calls);
  for (const MeasuredCall& call : own.calls()) {
    const MeasuredCall* const other = means.find(call);
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
  const Means means(calls), other_means(others);
  return std::any_of(means.calls().begin(), means.calls().end(), [&](const MeasuredCall& call) {
    const MeasuredCall* const other = other_means.find(call);
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
