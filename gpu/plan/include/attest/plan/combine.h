// The second kernel of a forward with splits: each row's partial results, weighted by exp(LSE of the split - LSE).
//
// `Ops` supplies, for one warp and its rows of a query tile:
//   Output, Weights                   registers: O, and one weight a split and row
//   weigh(o, w)                       LSEs of all splits from the workspace: LSE and weights; O = 0
//   add_partial(o, w, split)          O += weight * partial O
//   store_combined(o, w, limit)       rows below the limit of O and LSE
// Rows are independent, and a warp has its own: nothing goes through shared memory.
#pragma once
#include "attest/plan/kernel_plan.h"

namespace attest {

template <class Plan, class Ops>
ATTEST_ROLE void combine(const Plan& plan, const Work& work, Ops& ops) {
  if (!plan.has_rows(work)) return;
  typename Ops::Output o;
  typename Ops::Weights w;
  ops.weigh(o, w);
  ATTEST_NO_UNROLL
  for (int split = 0; split < plan.num_splits; ++split) ops.add_partial(o, w, split);
  ops.store_combined(o, w, plan.row_limit(Operand::o, work));
}

}  // namespace attest
