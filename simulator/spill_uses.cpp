#include "spill_uses.h"

#include <algorithm>
#include <map>
#include <set>

namespace attest {

using Kind = SpillUse::Kind;

std::vector<SpillUse> traced_spill_uses(const SpillTrace& trace, const std::vector<double>& missed) {
  std::set<int> stored;
  for (const SpillAccess& a : trace.accesses)
    if (a.kind == SpillAccess::Kind::store) stored.insert(a.word);
  std::map<int, int> of_tile, parked;  // a word's number among those of its kind
  std::vector<SpillUse> uses;
  for (std::size_t i = 0; i < trace.accesses.size(); ++i) {
    const SpillAccess& a = trace.accesses[i];
    if (a.kind == SpillAccess::Kind::call) continue;
    const bool store = a.kind == SpillAccess::Kind::store, of_cta = !stored.contains(a.word);
    std::map<int, int>& numbers = of_cta ? parked : of_tile;
    const int word = numbers.try_emplace(a.word, static_cast<int>(numbers.size())).first->second;
    const Kind kind = store ? Kind::store : a.kind == SpillAccess::Kind::last_load ? Kind::last_load : Kind::load;
    uses.push_back({static_cast<double>(a.at) / trace.cycles, kind, word, of_cta, store ? 1 : missed[i]});
  }
  return uses;
}

std::vector<SpillUse> untraced_spill_uses(int words, int of_tile, double parked, double missed) {
  constexpr double after = 0.5;
  std::vector<SpillUse> uses;
  for (int word = 0; word < words; ++word) uses.push_back({0, Kind::store, word % of_tile, false, 1});
  if (missed == 0) return uses;
  for (int word = 0; word < words; ++word) uses.push_back({after, Kind::last_load, word % of_tile, false, missed});
  for (int word = 0; word < parked; ++word)
    uses.push_back({after, Kind::load, word, true, missed * std::min(1.0, parked - word)});
  return uses;
}

}  // namespace attest
