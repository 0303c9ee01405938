#include "spill_uses.h"

#include <algorithm>

namespace attest {

using Kind = SpillUse::Kind;

namespace {

/// `when`: by an access' cycle, in parts of the key tile.
template <class When, class Missed>
std::vector<SpillUse> uses_of(const SpillTrace& trace, When&& when, Missed&& missed) {
  std::vector<SpillUse> uses;
  for (std::size_t i = 0; i < trace.accesses.size(); ++i) {
    const SpillAccess& a = trace.accesses[i];
    if (a.kind == SpillAccess::Kind::call) continue;
    const bool store = a.kind == SpillAccess::Kind::store;
    const Kind kind = store ? Kind::store : a.kind == SpillAccess::Kind::last_load ? Kind::last_load : Kind::load;
    uses.push_back({when(a.at), kind, a.word, store ? 1 : missed(i)});
  }
  return uses;
}

}  // namespace

SpillUses traced_spill_uses(const SpillTraces& traces, const TracedMisses& missed) {
  const auto all_at_begin = [](const SpillTrace& trace, double part) {
    return uses_of(
        trace, [](int) { return 0.0; }, [&](std::size_t) { return part; });
  };
  /// Of a key tile, with what a branch does on top of it.
  const auto tile = [&](const SpillTrace& turn, const std::vector<double>& of_access, const SpillTrace& branch) {
    const double cycles = std::max(1, turn.cycles + branch.cycles);
    std::vector<SpillUse> of = uses_of(
        turn, [&](int at) { return branch.later(at) / cycles; }, [&](std::size_t i) { return of_access[i]; });
    for (const SpillUse& use : uses_of(
             branch, [&](int at) { return (branch.place + at) / cycles; }, [&](std::size_t) { return missed.rescale; }))
      of.push_back(use);
    std::ranges::stable_sort(of, {}, &SpillUse::at);
    return of;
  };
  SpillUses uses;
  uses.whole = tile(traces.whole, missed.whole, {});
  uses.masked = tile(traces.masked, missed.masked, {});
  uses.first_whole = tile(traces.whole, missed.whole, traces.whole_rescale);
  uses.first_masked = tile(traces.masked, missed.masked, traces.masked_rescale);
  uses.begin = all_at_begin(traces.begin, 1);
  uses.end = all_at_begin(traces.end, missed.end);
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
