// How many splits suit a problem on a device. Launches take what their case says; who would rather not say asks here
// first: `predict --auto-splits`, and through sm80::choose_splits() the library that bench/gpu times.
#pragma once
#include <algorithm>
#include <cstdint>

#include "attest/plan/launch.h"

namespace attest {

/// What the choice depends on: the grid without splits, and how much of it runs at once.
struct SplitProblem {
  std::int64_t ctas = 0, key_tiles = 0;  // key tiles that the longest CTA visits
  std::int64_t num_sms = 0, ctas_per_sm = 1;
};

/// Time of a grid in key tiles' worth of an SM: CTAs start in waves, an SM's CTAs of a wave share it, and a CTA alone
/// on its SM leaves a fifth of it idle, waiting; each CTA's start, end and part in combine() cost as much as 5 tiles.
/// On an H200, a decode of 32 heads of 65,536 keys in 4 to 32 splits takes this within 8%, but in 10 splits 12% less
/// (docs/results/h200-sm80/decode_splits.txt).
constexpr double split_time(const SplitProblem& s, std::int64_t splits) {
  constexpr double alone = 1.25, cta_tiles = 5;
  const std::int64_t ctas = s.ctas * splits, slots = s.num_sms * s.ctas_per_sm;
  const auto wave = [&](std::int64_t of) {
    const std::int64_t on_busiest = (of + s.num_sms - 1) / s.num_sms;
    return std::max(alone, static_cast<double>(on_busiest));
  };
  const std::int64_t full_waves = ctas / slots, rest = ctas % slots, share = (s.key_tiles + splits - 1) / splits;
  const double shares = static_cast<double>(full_waves) * wave(slots) + (rest > 0 ? wave(rest) : 0.0);
  return shares * (static_cast<double>(share) + cta_tiles);
}

/// 1 where the grid alone fills the device to four fifths, else the number with the least time; never so many that a
/// split has no tile.
constexpr int choose_num_splits(const SplitProblem& s) {
  if (s.ctas == 0 || s.num_sms == 0 || 5 * s.ctas >= 4 * s.num_sms * s.ctas_per_sm) return 1;
  std::int64_t best = 1;
  for (std::int64_t splits = 2; splits <= std::min<std::int64_t>(s.key_tiles, 256); ++splits) {
    const std::int64_t share = (s.key_tiles + splits - 1) / splits;
    if (share * (splits - 1) >= s.key_tiles) continue;
    if (split_time(s, splits) < split_time(s, best)) best = splits;
  }
  return static_cast<int>(best);
}

/// The choice for a problem whose kernel is of `plan`.
inline int choose_num_splits(const KernelPlan& plan, const Problem& p, std::int64_t num_sms, std::int64_t ctas_per_sm) {
  const Work last = make_work(p, std::max(0, num_q_tiles(plan, p) - 1), plan.packed_heads);
  return choose_num_splits({p.batch * (p.nheads / plan.packed_heads) * num_q_tiles(plan, p),
                            plan.has_rows(last) ? plan.range(last).size() : 0, num_sms, ctas_per_sm});
}

}  // namespace attest
