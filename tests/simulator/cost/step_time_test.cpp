#include "attest/simulator/step_time.h"

#include <gtest/gtest.h>

namespace attest {
namespace {

KernelPlan warps(int n) {
  KernelPlan plan;
  plan.num_warps = n;
  plan.tile_m = 16 * n;
  return plan;
}

TEST(StepTime, AWarpAloneNeedsTheSumOfItsDemands) {
  const DeviceSpec device = load_device("h100");
  EXPECT_NEAR(cycles_per_key_tile({400, 300, 200, 100}, warps(1), device, 1), 1000, 1e-3);
}

TEST(StepTime, ManyWarpsAreBoundByTheBusiestResource) {
  const DeviceSpec device = load_device("h100");
  const StepDemand demand{400, 10, 10, 1};
  // 64 warps, 16 a scheduler: the tensor pipe does one after the other
  EXPECT_NEAR(cycles_per_key_tile(demand, warps(4), device, 16), 16 * 400, 0.01 * 16 * 400);
}

TEST(StepTime, MoreCtasTakeLongerButLessThanOneAfterTheOther) {
  const DeviceSpec device = load_device("h100");
  const StepDemand demand{500, 200, 400, 100};
  for (int ctas = 1; ctas < 8; ++ctas) {
    const double here = cycles_per_key_tile(demand, warps(4), device, ctas),
                 more = cycles_per_key_tile(demand, warps(4), device, ctas + 1);
    EXPECT_GT(more, here);
    EXPECT_LT(more / (ctas + 1), here / ctas);
  }
}

TEST(StepTime, EveryDemandCosts) {
  const DeviceSpec device = load_device("h100");
  const StepDemand base{500, 200, 400, 100};
  for (double StepDemand::*member : {&StepDemand::tensor, &StepDemand::exp, &StepDemand::issue, &StepDemand::smem}) {
    StepDemand more = base;
    more.*member += 50;
    EXPECT_GT(cycles_per_key_tile(more, warps(4), device, 2), cycles_per_key_tile(base, warps(4), device, 2) + 25);
  }
}

}  // namespace
}  // namespace attest
