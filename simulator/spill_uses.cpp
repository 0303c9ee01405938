#include "spill_uses.h"

#include <algorithm>

#include "in_branch.h"

namespace attest {

using Kind = SpillUse::Kind;

namespace {

template <class Missed>
std::vector<SpillUse> uses_of(const SpillTrace& trace, Missed&& missed) {
  std::vector<SpillUse> uses;
  for (std::size_t i = 0; i < trace.accesses.size(); ++i) {
    const SpillAccess& a = trace.accesses[i];
    if (a.kind == SpillAccess::Kind::call) continue;
    const bool store = a.kind == SpillAccess::Kind::store;
    const Kind kind = store ? Kind::store : a.kind == SpillAccess::Kind::last_load ? Kind::last_load : Kind::load;
    const double at = trace.cycles == 0 ? 0 : static_cast<double>(a.at) / trace.cycles;
    uses.push_back({at, kind, a.word, store ? 1 : missed(i)});
  }
  return uses;
}

}  // namespace

SpillUses traced_spill_uses(const SpillTraces& traces, const TracedMisses& missed) {
  const auto each = [](const SpillTrace& trace, const std::vector<double>& of_access) {
    return uses_of(trace, [&](std::size_t i) { return of_access[i]; });
  };
  const auto all = [](const SpillTrace& trace, double part) {
    return uses_of(trace, [&](std::size_t) { return part; });
  };
  SpillUses uses;
  uses.whole = each(traces.whole, missed.whole);
  uses.masked = each(traces.masked, missed.masked);
  uses.first_whole = in_branch(all(traces.whole_rescale, missed.rescale), uses.whole, &SpillUse::at);
  uses.first_masked = in_branch(all(traces.masked_rescale, missed.rescale), uses.masked, &SpillUse::at);
  uses.begin = all(traces.begin, 1);
  uses.end = all(traces.end, missed.end);
  return uses;
}

SpillUses untraced_spill_uses(int words, const LocalFrame& frame, double parked, double missed) {
  constexpr double after = 0.5;
  std::vector<SpillUse> of_tile;
  for (int word = 0; word < words; ++word) of_tile.push_back({0, Kind::store, word % frame.of_tile, 1});
  for (int word = 0; missed > 0 && word < words; ++word)
    of_tile.push_back({after, Kind::last_load, word % frame.of_tile, missed});
  for (int word = 0; missed > 0 && word < parked; ++word)
    of_tile.push_back({after, Kind::load, frame.words - 1 - word, missed * std::min(1.0, parked - word)});
  return {of_tile, of_tile, of_tile, of_tile, {}, {}};
}

std::vector<double> live_parts(const std::vector<SpillUse>& of_tile, int words) {
  std::vector<double> parts(static_cast<std::size_t>(words)), live = parts, since = parts;
  for (const bool counts : {false, true}) {  // the key tile before leaves some
    const auto until = [&](std::size_t word, double at) {
      if (counts) parts[word] += live[word] * (at - since[word]);
      since[word] = at;
    };
    std::ranges::fill(since, 0);
    for (const SpillUse& use : of_tile) {
      const auto word = static_cast<std::size_t>(use.word);
      until(word, use.at);
      if (use.kind == Kind::store) live[word] = 1;
      if (use.kind == Kind::last_load) live[word] *= 1 - use.part;
    }
    for (std::size_t word = 0; word < parts.size(); ++word) until(word, 1);
  }
  return parts;
}

}  // namespace attest
