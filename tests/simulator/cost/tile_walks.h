// Calls, times and plans that tests walk.
#pragma once
#include "attest/plan/catalog.h"
#include "attest/simulator/report.h"
#include "attest/simulator/tile_walk.h"

namespace attest {

inline Case case_of(std::int64_t batch, std::int64_t nheads, std::int64_t nheads_k, std::int64_t seqlen,
                    std::int64_t headdim, Causal causal = Causal::none) {
  Case c;
  c.problem = {batch, nheads, nheads_k, seqlen, seqlen, headdim, headdim, Dtype::bf16, {}, causal, -1, -1};
  return c;
}

inline TileWalkOptions times(double cycles = 3000) {
  TileWalkOptions options;
  for (int n = 1; n <= 8; ++n) options.cycles_per_key_tile.push_back(cycles * n);
  options.cycles_per_cta = 4000;
  return options;
}

inline KernelPlan plan_for(const Case& c) {
  KernelPlan plan = fa2_plan(c.problem, 232448);
  plan.spill_words_per_key_tile = plan.spill_words_per_cta = plan.spill_words_entering = 0;
  return plan;
}

}  // namespace attest
