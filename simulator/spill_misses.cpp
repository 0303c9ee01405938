#include "spill_misses.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <set>

#include "noise.h"
#include "warp_paces.h"

namespace attest {
namespace {

// How far the CTA that began later is in its key tile where the other one of its SM begins one, by eighths of a key
// tile: mean of the `apart` of docs/results/h200-sm/warp_paces.csv and h100/warp_paces.csv
constexpr std::array<double, 8> later_cta_at = {0.166, 0.271, 0.171, 0.056, 0.056, 0.102, 0.103, 0.075};

/// Words that a turn loads before it stores them.
std::vector<int> outliving_words(const SpillTrace& trace) {
  std::set<int> seen;
  std::vector<int> words;
  for (const SpillAccess& a : trace.accesses)
    if (seen.insert(a.word).second && a.kind != SpillAccess::Kind::store) words.push_back(a.word);
  return words;
}

}  // namespace

double waits_for(const SpillTrace& trace, const std::vector<bool>& missed) {
  struct Load {
    double waited, arrives;
    bool operator<(const Load& other) const { return waited > other.waited; }
  };
  std::priority_queue<Load> on_their_way;
  double late = 0;
  const auto wait_until = [&](double at) {
    for (; !on_their_way.empty() && on_their_way.top().waited <= at; on_their_way.pop())
      late = std::max(late, on_their_way.top().arrives - on_their_way.top().waited);
  };
  for (std::size_t i = 0; i < trace.accesses.size(); ++i) {
    const SpillAccess& a = trace.accesses[i];
    wait_until(a.at);
    if (missed[i]) on_their_way.push({static_cast<double>(a.waited), a.at + late + l1_miss_cycles});
  }
  wait_until(HUGE_VAL);
  return late;
}

double part_missing(const SpillTrace& trace, std::span<const double> of_access) {
  const auto loads = std::ranges::count_if(trace.accesses, [](const SpillAccess& a) {
    return a.kind == SpillAccess::Kind::load || a.kind == SpillAccess::Kind::last_load;
  });
  return loads == 0 ? 0 : std::accumulate(of_access.begin(), of_access.end(), 0.0) / static_cast<double>(loads);
}

SpillMisses spill_misses(const SpillTrace& trace, int warps, int ctas, int lines, const FramePlaces& places) {
  constexpr int distances = L1Sample::distances;
  // what a CTA alone has in L1 takes as many turns to settle as two CTAs go through in all
  const int settled = ctas == 1 ? L1Sample::turns : L1Sample::settled,
            turns = ctas == 1 ? 2 * L1Sample::turns : L1Sample::turns;
  int words = 0;
  for (const SpillAccess& a : trace.accesses) words = std::max(words, a.word + 1);
  struct Event {
    double at;
    int warp, turn;
    std::size_t access;
  };
  const std::vector<int> outliving = outliving_words(trace);
  const auto all_warps = static_cast<std::size_t>(ctas) * static_cast<std::size_t>(warps);
  SpillMisses of;
  of.of_access.resize(trace.accesses.size());
  Noise noise;
  WarpPaces paces(static_cast<std::size_t>(warps));
  double waited = 0, ended = 0, gone_after = 0;  // cycles of so many warps' turns as far as they were gone through
  for (int d = 0; d < distances; ++d) {
    const double behind = (2 * d + 1) / (2.0 * distances);
    // this distance's weight: 1 on average
    const double as_often =
        later_cta_at.size() * later_cta_at.at(static_cast<std::size_t>(later_cta_at.size() * (1 - behind)));
    std::vector<Event> events;
    for (int cta = 0; cta < ctas; ++cta) {
      double begins = cta * trace.cycles * behind;
      for (int turn = 0; turn < turns + ctas; ++turn) {  // the last ones beside those that are behind, not counted
        paces.draw(noise);
        for (int warp = 0; warp < warps; ++warp) {
          const double pace = paces.of(static_cast<std::size_t>(warp));
          for (std::size_t i = 0; i < trace.accesses.size(); ++i)
            events.push_back({begins + pace * trace.accesses[i].at, cta * warps + warp, turn, i});
        }
        begins += paces.slowest() * trace.cycles;
      }
    }
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.at < b.at; });
    const Frames frames(places, d * L1Sample::sms_apart, words, ctas * warps);
    L1Cache cache(lines, frames.rows());
    std::vector<std::vector<bool>> missed(all_warps, std::vector<bool>(trace.accesses.size()));
    for (const Event& e : events) {
      cache.advance(e.at);
      const SpillAccess& a = trace.accesses[e.access];
      const bool last = a.kind == SpillAccess::Kind::last_load;
      const int line = frames.line(e.warp, a.word);
      std::vector<bool>& of_warp = missed[static_cast<std::size_t>(e.warp)];
      if (a.kind == SpillAccess::Kind::store) {
        cache.store(line);
      } else {
        // meanwhile its warp may wait, and the others go on as far as a warp does that waits as often as until now
        const double others_go_on = ended == 0 ? 1 : trace.cycles / (trace.cycles + waited / ended);
        of_warp[e.access] = !cache.load(line, last, l1_miss_cycles * others_go_on);
      }
      if (e.access + 1 < trace.accesses.size() || e.turn >= turns) continue;
      const double waits = waits_for(trace, of_warp);
      waited += waits, ++ended;
      if (e.turn < settled) continue;
      of.waits += as_often * waits;
      for (std::size_t i = 0; i < of_warp.size(); ++i) of.of_access[i] += of_warp[i] ? as_often : 0;
      for (const int word : outliving) gone_after += cache.holds(frames.line(e.warp, word)) ? 0 : as_often;
    }
  }
  const double times = distances * (turns - settled) * ctas * warps;
  of.waits /= times;
  if (!outliving.empty()) of.after = gone_after / (times * static_cast<double>(outliving.size()));
  for (double& missed : of.of_access) missed /= times;
  of.part = part_missing(trace, of.of_access);
  return of;
}

double driven_out(int words, int warps, std::span<const PassingTurns> of_sms, int uses, int lines,
                  const FramePlaces& places) {
  constexpr int placements = 96, sms_apart = 4;
  constexpr std::size_t settled = 4;
  if (words == 0 || of_sms.empty()) return 0;
  std::int64_t used = 0, gone = 0;
  for (int placement = 0; placement < placements; ++placement) {
    const PassingTurns& turns = of_sms[static_cast<std::size_t>(placement) % of_sms.size()];
    const Frames frames(places, placement * sms_apart, words, warps);
    AddressedLines addressed(frames.rows());
    const std::int64_t buffer = buffer_at_random(static_cast<std::uint64_t>(placement));
    std::vector<std::vector<int>> passing;  // lines, tile by tile, turn after turn
    for (const std::vector<PassingTile>& tiles : turns)
      for (const PassingTile& tile : tiles) {
        passing.emplace_back();
        for (int row = 0; row < tile.rows; ++row)
          addressed.for_lines(buffer + tile.first_byte + row * tile.stride_bytes, tile.row_bytes,
                              [&](int line) { passing.back().push_back(line); });
      }
    L1Cache cache(lines, addressed.rows());
    double now = 0;
    auto lines_of_tile = passing.begin();
    for (std::size_t turn = 0; turn < turns.size(); ++turn) {
      for (int use = 0; use < uses; ++use)
        for (int word = 0; word < words; ++word)
          for (int warp = 0; warp < warps; ++warp) {
            const bool held = cache.load(frames.line(warp, word), false);
            if (turn >= settled && use == 0) ++used, gone += held ? 0 : 1;
          }
      for (const PassingTile& tile : turns[turn]) {
        for (const int line : *lines_of_tile++) tile.loaded ? cache.load(line, false, 1) : cache.store(line);
        cache.advance(++now);
      }
    }
  }
  return used == 0 ? 0 : static_cast<double>(gone) / static_cast<double>(used);
}

double missing_part(int words, int warps, int ctas, int lines) {
  const int all = words * warps * ctas;
  return all <= lines ? 0 : 1 - static_cast<double>(lines) / all;
}

}  // namespace attest
