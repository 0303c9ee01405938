#include "ahead_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "attest/simulator/report.h"
#include "measured_rows.h"
#include "queueing_network.h"
#include "step_demands.h"

namespace attest {
namespace {

KernelPlan issuing_ahead(int n, int tile_n = 64, int ahead = 2000) {
  KernelPlan plan = of_warpgroups(n, tile_n);
  plan.softmax_ahead = ahead;
  return plan;
}

// Of each compiled kernel the loop over key tiles without a mask, the one of the fewest instructions.
TEST(AheadTime, FlashAttention3sPlanWaitsWhereItsLoopsDo) {
  struct Loop {
    int instructions = 0, ahead = 0;
  };
  std::map<std::pair<int, bool>, Loop> loops;  // by headdim and mask
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_SM "/fa3_loops.csv")) {
    const std::string& name = row.at("kernel");
    const int headdim = name.find("ELi64ENS_10bfloat16") != std::string::npos ? 64 : 128;
    Loop& shortest = loops[{headdim, name.find("Sm90ELb1E") != std::string::npos}];
    const int instructions = std::stoi(row.at("instructions"));
    if (shortest.instructions == 0 || instructions < shortest.instructions)
      shortest = {instructions, std::stoi(row.at("ahead"))};
  }
  EXPECT_EQ(loops.size(), 4u);
  for (const auto& [kernel, loop] : loops) {
    Case c;
    c.problem.headdim = c.problem.headdim_v = kernel.first;
    c.problem.seqlen_q = c.problem.seqlen_k = 4096;
    c.problem.causal = kernel.second ? Causal::bottom_right : Causal::none;
    EXPECT_EQ(plan_named("fa3", c, load_device("h200")).softmax_ahead, loop.ahead) << kernel.first << kernel.second;
  }
}

TEST(AheadTime, ASoftmaxBehindTheScoresHidesTheOutput) {
  const DeviceSpec device = undisturbed();
  const double latency = device.wgmma_latency_cycles;
  StepDemand d = demand_of(1000, 700, 300);
  d.exchange = 40, d.fixed = 90, d.among_products = 20;
  EXPECT_NEAR(ahead_time(d, issuing_ahead(1), device, 1), 500 + latency + 300 + 40 + 700 + 30, 1);
  d.copy_gate = 45, d.turn_gate = 33;  // of the next tile
  EXPECT_NEAR(ahead_time(d, issuing_ahead(1), device, 1), 500 + latency + 300 + 40 + 700 + 30 + 78, 1);
  d.copy_gate = d.turn_gate = 0;
  d.exp = 50;  // the output is what it waits for: 500 behind the scores
  EXPECT_NEAR(ahead_time(d, issuing_ahead(1), device, 1), 1000 + latency + 30, 1);
}

TEST(AheadTime, WhatModifiesScoresStandsBeforeTheirMaxima) {
  const DeviceSpec device = undisturbed();
  StepDemand d = demand_of(1000, 700, 300);
  for (const int ahead : {0, 2000}) {
    d.modifiers = 0;
    const double plain = ahead_time(d, issuing_ahead(1, 64, ahead), device, 1);
    d.modifiers = 200;
    EXPECT_GT(ahead_time(d, issuing_ahead(1, 64, ahead), device, 1), plain + 199) << ahead;
  }
}

TEST(AheadTime, SharedMemoryIsNoFasterThanItsWavefronts) {
  StepDemand d = demand_of(1000, 700, 300);
  d.smem = 500, d.operands = 100;
  EXPECT_EQ(ahead_time(d, issuing_ahead(2), undisturbed(), 1), 8 * 600);
}

TEST(AheadTime, WhatStandsAfterTheWaitHidesNothing) {
  const DeviceSpec device = undisturbed();
  const StepDemand d = demand_of(1000, 600, 300);
  const double latency = device.wgmma_latency_cycles;
  EXPECT_NEAR(ahead_time(d, issuing_ahead(1, 64, 0), device, 1), 1000 + latency + 900, 1);
  EXPECT_NEAR(ahead_time(d, issuing_ahead(1, 64, 500), device, 1), 1000 + latency + 750, 1);
  EXPECT_NEAR(ahead_time(d, issuing_ahead(1, 64, 1500), device, 1), 500 + latency + 900, 1);
  StepDemand exchanging = d;  // of maxima, behind the last of them
  exchanging.exchange = exchanging.fixed = 40;
  EXPECT_NEAR(ahead_time(exchanging, issuing_ahead(1, 64, 500), device, 1), 1000 + latency + 750 + 40, 1);
  EXPECT_NEAR(ahead_time(exchanging, issuing_ahead(1, 64, 1000), device, 1), 1000 + latency + 600, 1);
}

TEST(AheadTime, PackingAndRescalingStandAmongExponentialsAfterTheWait) {
  const DeviceSpec device = undisturbed();
  StepDemand d = demand_of(1000, 600, 300);
  d.packing = 200, d.rescaling = 100;
  const double among = ahead_time(d, issuing_ahead(1, 64, 1000), device, 1);
  EXPECT_NEAR(ahead_time(d, issuing_ahead(1, 64, 2000), device, 1), 500 + device.wgmma_latency_cycles + 1200, 1);
  d.packing = d.rescaling = 0;
  EXPECT_NEAR(ahead_time(d, issuing_ahead(1, 64, 1000), device, 1), among, 1);
}

// Of eleven products for O four wait for their issue until the scores are done.
TEST(AheadTime, SevenProductsAreUnderWay) {
  const DeviceSpec device = undisturbed();
  const StepDemand d = demand_of(2200, 2000, 300);
  EXPECT_NEAR(ahead_time(d, issuing_ahead(1, 176), device, 1), 1100 + 400 + device.wgmma_latency_cycles + 2300, 1);
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_SM "/issue.csv")) {
    const auto of = [&](const char* name) { return std::stod(row.at(name)); };
    const double product = of("headdim") / 2;  // 2048 products and sums a cycle
    const double behind = (of("output") - of("scores")) / product, outputs = of("tile_n") / 16;
    std::printf("%3.0f x %3.0f%s: scores are seen %.2f products before the end, of %.0f for O\n", of("tile_n"),
                of("headdim"), of("p_in_smem") != 0 ? ", P in shared memory" : "", behind, outputs);
    EXPECT_NEAR(behind, std::min(7.0, outputs), 0.55);
  }
}

TEST(AheadTime, ProductsAreOneAfterTheOtherAtMost) {
  const DeviceSpec device = undisturbed();
  for (const int n : {2, 3}) {
    const double key_tile = ahead_time(demand_of(3000, 500, 100), issuing_ahead(n), device, 1);
    EXPECT_GE(key_tile, n * 3000 - 1);
    EXPECT_LE(key_tile, n * 3000 + 700);
  }
  const StepDemand d = demand_of(1500, 2000, 100);  // what one has after its products, the other's products fill
  EXPECT_LT(ahead_time(d, issuing_ahead(2), device, 1), 2 * ahead_time(d, issuing_ahead(1), device, 1) - 1200);
  EXPECT_NEAR(ahead_time(d, issuing_ahead(1), device, 2), ahead_time(d, issuing_ahead(2), device, 1), 200);
}

TEST(AheadTime, WarpgroupsAtTheirSoftmaxMeetAsInAClosedNetwork) {
  const DeviceSpec device = undisturbed();
  StepDemand d = demand_of(1, 900, 400);
  d.fixed = 300;
  for (const int n : {1, 2, 3}) {
    const double round = cycle_of_network({{{900}, {400}}, {}, 300 + device.wgmma_latency_cycles}, {n});
    EXPECT_NEAR(ahead_time(d, issuing_ahead(n), device, 1) / round, 1, 0.06) << n;
  }
}

// Of a warpgroup alone: its own O += P V is beside its softmax until 1000 cycles behind the scores' products.
TEST(AheadTime, ProductsBesideThemMakePartsSlower) {
  StepDemand d = demand_of(2000, 700, 300);
  d.modifiers = 100;
  const auto longer = [&](double DeviceSpec::*beside) {
    DeviceSpec device = undisturbed();
    const double before = ahead_time(d, issuing_ahead(1), device, 1);
    device.*beside = 1.5;
    return ahead_time(d, issuing_ahead(1), device, 1) - before;
  };
  const DeviceSpec device = undisturbed();
  const double taken = 100 / device.fma_instruction_cycles;  // by what modifies scores, from the tensor pipe
  const double left = 1000 + taken - device.wgmma_latency_cycles - 100 - 300;
  EXPECT_NEAR(longer(&DeviceSpec::fma_beside_wgmma), 50, 1);
  EXPECT_NEAR(longer(&DeviceSpec::alu_beside_wgmma), 150, 1);
  EXPECT_NEAR(longer(&DeviceSpec::scaled_exp_beside_wgmma), left - left / 1.5, 1);
}

// O's rescaling alone takes a cycle of the tensor pipe for each instruction; among exponentials it takes nothing.
TEST(AheadTime, RescalingAloneTakesFromTheTensorPipe) {
  const DeviceSpec device = undisturbed();
  StepDemand d = demand_of(3000, 500, 100);
  const double without = ahead_time(d, issuing_ahead(2), device, 1);
  d.rescaling = 64 * device.fma_instruction_cycles;
  EXPECT_NEAR(ahead_time(d, issuing_ahead(2), device, 1), without + 2 * 64, 15);
  EXPECT_NEAR(ahead_time(d, issuing_ahead(2, 64, 1000), device, 1), without, 15);
}

// docs/results/h200-sm/contention.csv: the softmax of 64 rows, and what products take meanwhile.
TEST(AheadTime, PartsOfTheSoftmaxLastAsMeasured) {
  const DeviceSpec device = load_device("h200");
  int rows = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_SM "/contention.csv")) {
    const auto of = [&](const char* name) { return std::stod(row.at(name)); };
    const double taken = of("beside") * (1 - of("product_alone") / of("product_beside"));
    if (row.at("part") == "rescaling") {
      EXPECT_NEAR(taken / (of("warpgroups") * (of("warpgroups") > 1 ? 32 : 64)), 0.92, 0.19);
    }
    if (row.at("part") != "one_by_one" || of("warpgroups") > 1) continue;
    KernelPlan plan = issuing_ahead(1, std::stoi(row.at("tile_n")));
    plan.headdim = plan.headdim_v = 128;
    Counts counts;
    counts.key_tiles = 1;
    counts.matrix_steps = std::int64_t{2} * plan.tile_m * plan.tile_n * plan.headdim / 4096;
    counts.exponentials = std::int64_t{1} * plan.tile_m * plan.tile_n;
    const StepDemand d = step_demand(plan, device, counts, 0);
    const double rest = d.fixed - d.exchange - loop_instructions(plan);
    const double alone = d.maxima + d.exchange + d.exp + d.scaling + rest;
    const double beside =
        device.alu_beside_wgmma * (d.maxima + d.exchange) + device.scaled_exp_beside_wgmma * (d.exp + d.scaling) + rest;
    std::printf(
        "%d columns of scores: alone %.3f, beside products of %s columns, A in %s, %.3f; they take %.2f of it\n",
        plan.tile_n, alone / of("alone"), row.at("columns").c_str(), row.at("a").c_str(), beside / of("beside"),
        taken / of("beside"));
    EXPECT_NEAR(alone / of("alone"), 1, 0.02);
    EXPECT_NEAR(beside / of("beside"), 1, 0.1);
    EXPECT_NEAR(taken / of("beside"), 0, 0.09);
    ++rows;
  }
  EXPECT_EQ(rows, 4);
}

}  // namespace
}  // namespace attest
