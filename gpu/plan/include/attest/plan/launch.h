// From a problem to the numbers that a CTA is launched with: the kernels' own reading of a mask.
#pragma once
#include "attest/plan/kernel_plan.h"
#include "attest/problem/problem.h"

namespace attest {

constexpr int num_q_tiles(const KernelPlan& plan, const Problem& p) {
  return static_cast<int>((p.seqlen_q + plan.tile_m - 1) / plan.tile_m);
}

/// The work of query tile `q_tile`. Windows that reach past both sequences become unlimited, so that no sum overflows.
constexpr Work make_work(const Problem& p, int q_tile) {
  const auto window = [&](std::int64_t w) { return w < 0 || w >= p.seqlen_q + p.seqlen_k ? -1 : static_cast<int>(w); };
  Work work;
  work.q_tile = q_tile;
  work.seqlen_q = static_cast<int>(p.seqlen_q);
  work.seqlen_k = static_cast<int>(p.seqlen_k);
  work.diagonal = p.causal == Causal::top_left ? 0 : work.seqlen_k - work.seqlen_q;
  work.left = window(p.window_left);
  work.right = p.causal != Causal::none ? 0 : window(p.window_right);
  work.causal = p.causal != Causal::none;
  return work;
}

}  // namespace attest
