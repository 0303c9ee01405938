#include "spill_trace.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>

#include "l1_cache.h"

namespace attest {

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

double driven_out(int words, int warps, std::span<const PassingTurns> of_sms, int uses, int lines,
                  const FramePlaces& places) {
  constexpr int placements = 96, sms_apart = 5;
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
