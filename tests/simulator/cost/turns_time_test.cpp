#include "turns_time.h"

#include <gtest/gtest.h>

#include "attest/plan/catalog.h"
#include "step_demands.h"

namespace attest {
namespace {

KernelPlan taking_turns(int n, int stages = 4) {
  KernelPlan plan = of_warpgroups(n);
  plan.stages = stages, plan.overlap = Overlap::between_warpgroups;
  return plan;
}

TEST(TurnsTime, AWarpgroupAloneNeedsTheSumOfItsPhases) {
  const DeviceSpec device = undisturbed();
  const StepDemand d = demand_of(4000, 3000, 1000);
  EXPECT_NEAR(turns_time(d, taking_turns(1), device, 1).key_tile, 8000 + 2 * device.wgmma_latency_cycles, 1);
  StepDemand more = d;
  more.fixed = 100, more.copy_gate = 40, more.turn_gate = 30;
  EXPECT_NEAR(turns_time(more, taking_turns(1), device, 1).key_tile, 8210 + 2 * device.wgmma_latency_cycles, 1);
}

TEST(TurnsTime, TheRestOfASoftmaxStandsAmongExponentialsWhileThereIsRoom) {
  const DeviceSpec device = undisturbed();
  StepDemand d = demand_of(4000, 3000, 1000);
  d.sums = 900, d.rescaling = 1000, d.packing = 1100;
  EXPECT_NEAR(turns_time(d, taking_turns(1), device, 1).key_tile, 8000 + 2 * device.wgmma_latency_cycles, 1);
  d.packing += 200;
  EXPECT_NEAR(turns_time(d, taking_turns(1), device, 1).key_tile, 8200 + 2 * device.wgmma_latency_cycles, 1);
}

TEST(TurnsTime, WhatModifiesScoresStandsBeforeTheirMaxima) {
  const DeviceSpec device = undisturbed();
  StepDemand d = demand_of(4000, 3000, 1000);
  d.modifiers = 200, d.sums = 300;
  EXPECT_NEAR(turns_time(d, taking_turns(1), device, 1).key_tile, 8200 + 2 * device.wgmma_latency_cycles, 1);
}

// Another warpgroup's exponentials go on while a copy's gate is passed, and wait while a turn's is.
TEST(TurnsTime, AGateHoldsItsOwnWarpgroup) {
  StepDemand d = demand_of(1000, 5000, 300);
  const double before = turns_time(d, taking_turns(2), undisturbed(), 1).key_tile;
  d.copy_gate = 40;
  EXPECT_NEAR(turns_time(d, taking_turns(2), undisturbed(), 1).key_tile, before, 1);  // turns are what binds
  d.turn_gate = 30;
  EXPECT_NEAR(turns_time(d, taking_turns(2), undisturbed(), 1).key_tile, before + 2 * 30, 1);
}

TEST(TurnsTime, WhatIsShortOfTheOthersHidesUnderTurns) {
  for (const int n : {2, 3}) {
    const TurnsTime time = turns_time(demand_of(1000, 5000, 300), taking_turns(n), undisturbed(), 1);
    EXPECT_NEAR(time.key_tile, n * 5000, 1) << n << " warpgroups, one at exponentials at a time";
    EXPECT_GT(time.begin, 500 + 300);  // the first scores and maxima run under nothing
  }
}

TEST(TurnsTime, ProductsAreOneAfterTheOtherAtMost) {
  const DeviceSpec device = undisturbed();
  const StepDemand d = demand_of(6000, 500, 100);
  const double two = turns_time(d, taking_turns(2), device, 1).key_tile;
  EXPECT_GE(two, 12000 - 1);
  EXPECT_LE(two, 12000 + 500 + 100 + 2 * device.wgmma_latency_cycles);
}

TEST(TurnsTime, CtasShareTheTensorPipeAndNotTheirTurns) {
  const StepDemand d = demand_of(1000, 5000, 300);
  EXPECT_LT(turns_time(d, taking_turns(1), undisturbed(), 2).key_tile, 1.3 * 6300);
  EXPECT_GT(turns_time(d, taking_turns(2), undisturbed(), 1).key_tile, 1.5 * 6300);
}

TEST(TurnsTime, ProductsBesideThemMakeInstructionsSlower) {
  DeviceSpec device = undisturbed();
  const StepDemand d = demand_of(3000, 3000, 1500);
  const double before = turns_time(d, taking_turns(2), device, 1).key_tile;
  device.scaled_exp_beside_wgmma = 1.5;
  EXPECT_GT(turns_time(d, taking_turns(2), device, 1).key_tile, before + 500);
}

// With one slot a copy begins when the last warpgroup has released it: its trip and its bytes stand between two tiles.
TEST(TurnsTime, OneSlotExposesACopy) {
  DeviceSpec device = undisturbed();
  device.l2_latency_cycles = 400;  // so that a copy takes longer than there is to hide it under
  KernelPlan one = taking_turns(1, 1);
  one.headdim = one.headdim_v = 256;
  KernelPlan two = one;
  two.stages = 2;
  const StepDemand d = demand_of(1000, 100, 50);
  const double copy = device.l2_latency_cycles + one.tile_bytes(Operand::k) / l2_bytes_per_clock(device);
  ASSERT_GT(copy, 500 + 100 + 50 + 2 * device.wgmma_latency_cycles);  // longer than K's slot is free for
  EXPECT_GT(turns_time(d, one, device, 1).key_tile, turns_time(d, two, device, 1).key_tile);
  EXPECT_GE(turns_time(d, one, device, 1).key_tile, 500 + copy);
}

// A copy is asked for when K's slot is released, which is behind the end of the scores, and no V as long stands
// between.
TEST(TurnsTime, KsSlotIsFreeOnceItsScoresAreSeen) {
  const DeviceSpec device = undisturbed();
  KernelPlan plan = taking_turns(1, 1);
  plan.headdim = 256, plan.headdim_v = 64;
  const StepDemand d = demand_of(1000, 10, 10);
  const double copy = device.l2_latency_cycles + plan.tile_bytes(Operand::k) / l2_bytes_per_clock(device);
  EXPECT_NEAR(turns_time(d, plan, device, 1).key_tile, 1000 * 256 / 320.0 + device.wgmma_latency_cycles + copy, 1);
}

TEST(TurnsTime, ThePathFromL2CarriesOneCopyAfterTheOther) {
  DeviceSpec device = undisturbed();
  device.l2_bytes_per_second /= 16;
  const KernelPlan plan = taking_turns(1);
  const double copies = (plan.tile_bytes(Operand::k) + plan.tile_bytes(Operand::v)) / l2_bytes_per_clock(device);
  EXPECT_NEAR(turns_time(demand_of(100, 10, 10), plan, device, 1).key_tile, copies, 1);
  EXPECT_NEAR(turns_time(demand_of(100, 10, 10), plan, device, 2).key_tile, 2 * copies, 1);
}

TEST(TurnsTime, NamedPlansTakeTurnsWhereTheySay) {
  const DeviceSpec device = load_device("h200");
  Problem p;
  p.headdim = p.headdim_v = 128;
  const KernelPlan cudnn = cudnn_plan(p, device.smem_bytes_per_cta_max);
  KernelPlan within = cudnn;
  within.overlap = Overlap::within_warpgroup;
  StepDemand d = demand_of(1024, 528, 153);
  d.fixed = 200;
  EXPECT_EQ(cycles_per_key_tile(d, cudnn, device, 1), turns_time(d, cudnn, device, 1).key_tile);
  EXPECT_NE(cycles_per_key_tile(d, within, device, 1), turns_time(d, cudnn, device, 1).key_tile);
}

}  // namespace
}  // namespace attest
