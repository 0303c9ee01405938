// How many splits suit a problem on a device. Launches take what their case says; who would rather not say asks here
// first: `predict --auto-splits`, and through sm80::choose_splits() the library that bench/gpu times.
#pragma once
#include <algorithm>
#include <cstdint>

#include "attest/plan/launch.h"

namespace attest {

/// What the choice depends on: the grid without splits, and how much of it runs at once.
struct SplitProblem {
  std::int64_t longest_ctas = 0, key_tiles = 0;  // the work, in CTAs as long as the longest, and that one's key tiles
  std::int64_t num_sms = 0, ctas_per_sm = 1;
};

/// In key tiles' worth of an SM whose slots are all taken: what a CTA that has its SM to itself takes for a tile, and
/// what each CTA's start, end and part in combine() cost. NumSplits.ChoosesWithinNoiseOfTheFastestMeasured holds them
/// to an H200's times of decoding in 1 to 64 splits (docs/results/h200-sm80.md, "Decoding").
struct SplitCosts {
  double alone = 1.25, per_cta = 5;
};

/// Time of a grid: CTAs start in waves, and an SM's CTAs of a wave share it.
constexpr double split_time(const SplitProblem& s, std::int64_t splits, const SplitCosts& costs = {}) {
  const std::int64_t ctas = s.longest_ctas * splits, slots = s.num_sms * s.ctas_per_sm;
  const auto wave = [&](std::int64_t of) {
    const std::int64_t on_busiest = (of + s.num_sms - 1) / s.num_sms;
    return std::max(costs.alone, static_cast<double>(on_busiest));
  };
  const std::int64_t full_waves = ctas / slots, rest = ctas % slots, share = (s.key_tiles + splits - 1) / splits;
  const double shares = static_cast<double>(full_waves) * wave(slots) + (rest > 0 ? wave(rest) : 0.0);
  return shares * (static_cast<double>(share) + costs.per_cta);
}

/// 1 where the grid alone fills the device, else the number with the least time; never so many that a split has no
/// tile.
constexpr int choose_num_splits(const SplitProblem& s, const SplitCosts& costs = {}) {
  if (s.longest_ctas == 0 || s.longest_ctas >= s.num_sms * s.ctas_per_sm) return 1;
  std::int64_t best = 1;
  for (std::int64_t splits = 2; splits <= std::min<std::int64_t>(s.key_tiles, 256); ++splits) {
    const std::int64_t share = (s.key_tiles + splits - 1) / splits;
    if (share * (splits - 1) >= s.key_tiles) continue;
    if (split_time(s, splits, costs) < split_time(s, best, costs)) best = splits;
  }
  return static_cast<int>(best);
}

/// The grid of a problem without splits, for a kernel of `plan`: the key tiles that each CTA visits by its own lengths
/// and its own mask.
inline SplitProblem split_problem(const KernelPlan& plan, const Problem& p, std::int64_t num_sms,
                                  std::int64_t ctas_per_sm) {
  const LengthArrays lengths(p);
  const Launch launch = make_launch(p, lengths.document_ends, plan.packed_heads);
  const ForwardArgs args = lengths.args();
  const bool alike = p.varlen_q.empty() && p.varlen_k.empty() && p.seqused_k.empty();
  const int q_tiles = num_q_tiles(plan, p);
  std::int64_t longest = 0, all = 0;
  for (std::int64_t batch = 0; batch < (alike ? 1 : p.batch); ++batch)
    for (int q_tile = 0; q_tile < q_tiles; ++q_tile) {
      const Work work = make_work(launch, args, batch, q_tile, 0);
      const std::int64_t tiles = plan.has_rows(work) ? plan.range(work).size() : 0;
      longest = std::max(longest, tiles);
      all += tiles;
    }
  all *= (alike ? p.batch : 1) * (p.nheads / plan.packed_heads);
  return {longest == 0 ? 0 : (all + longest - 1) / longest, longest, num_sms, ctas_per_sm};
}

/// The choice for a problem whose kernel is of `plan`, of which an SM takes `ctas_per_sm` CTAs.
inline int choose_num_splits(const KernelPlan& plan, const Problem& p, std::int64_t num_sms, std::int64_t ctas_per_sm) {
  return choose_num_splits(split_problem(plan, p, num_sms, ctas_per_sm));
}

}  // namespace attest
