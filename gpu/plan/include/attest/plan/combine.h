// The second kernel of a forward with splits: each row's partial results, weighted by exp(LSE of the split - LSE).
//
// `Ops` supplies, for one warp and its rows of a query tile:
//   Output, Weights                   registers: O, and one weight a split and row
//   weigh(o, w)                       LSEs of all splits from the workspace: LSE and weights; O = 0
//   add_partial(o, w, split)          O += weight * partial O
//   store_combined(o, w, limit)       rows below the limit of O and LSE
// Rows are independent, and a warp has its own: nothing goes through shared memory. Loads of combine_splits_a_turn
// splits go together.
#pragma once
#include "attest/plan/combine_shape.h"
#include "attest/plan/kernel_plan.h"

namespace attest {

/// From a row of partial O to the next, in fp32 numbers: whole sectors of 32 bytes, which the pairs that four lanes
/// hold fill. Of an odd headdim_v the last pair has one number that nobody reads.
constexpr std::int64_t partial_columns(std::int64_t headdim_v) { return (headdim_v + 7) / 8 * 8; }

template <class Plan, class Ops>
ATTEST_ROLE void combine(const Plan& plan, const Work& work, Ops& ops) {
  if (!plan.has_rows(work)) return;
  typename Ops::Output o;
  typename Ops::Weights w;
  ops.weigh(o, w);
  ATTEST_UNROLL_BY(combine_splits_a_turn)
  for (int split = 0; split < plan.num_splits; ++split) ops.add_partial(o, w, split);
  ops.store_combined(o, w, plan.row_limit(Operand::o, work));
}

}  // namespace attest
