// A plan by the fields that registers hang on.
#pragma once
#include "attest/plan/kernel_plan.h"

namespace attest {

inline KernelPlan plan_of(int headdim, int tile_m, int tile_n, int warps, int stages = 1) {
  KernelPlan plan;
  plan.headdim = plan.headdim_v = headdim;
  plan.tile_m = tile_m, plan.tile_n = tile_n, plan.num_warps = warps, plan.stages = stages;
  return plan;
}

}  // namespace attest
