#include "attest/simulator/step_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "measured_rows.h"
#include "step_demands.h"

namespace attest {
namespace {

TEST(StepTime, AWarpAloneNeedsTheSumOfItsDemands) {
  const DeviceSpec device = load_device("h100");
  // of 32 lanes, 4 at a time, an exponential's first cycle is its slot
  EXPECT_NEAR(cycles_per_key_tile({400, 300, 200, 100}, warps(1), device, 1), 400 + 300 * 7 / 8.0 + 200 + 100, 1e-3);
}

TEST(StepTime, ManyWarpsAreBoundByTheBusiestResource) {
  const DeviceSpec device = load_device("h100");
  const StepDemand demand{400, 10, 10, 1};
  // 64 warps, 16 a scheduler: the tensor pipe does one after the other, and nothing is issued beside it
  EXPECT_NEAR(cycles_per_key_tile(demand, warps(4), device, 16), 16 * 410, 0.01 * 16 * 400);
}

// An mma.sync's time is its scheduler's: what another warp issues comes on top of it, an instruction a slot. Loops of
// the benchmark have instructions of their own beside those that are counted.
TEST(StepTime, ProductsHoldTheIssueOfTheirScheduler) {
  const DeviceSpec h200 = load_device("h200");
  const double tensor = 16 * 8 * 16 / (h200.mma_sync_fma_per_clock_16bit / 4);
  double held = 0, free = 0;
  const std::vector<MeasuredRow> rows = measured_rows(ATTEST_H200_SM "/beside_mma.csv");
  for (const MeasuredRow& row : rows) {
    const auto of = [&](const char* name) { return std::stod(row.at(name)); };
    const double products = of("products") / 8 + of("beside") / of("of_product");  // of both warps
    const int slots = row.at("kind") == "nothing" ? 0 : 1;
    const double predicted = products * tensor + slots;
    EXPECT_NEAR(predicted / of("beside"), 1, 0.19) << row.at("kind") << row.at("products");
    held += predicted / of("beside"), free += std::max(products * tensor, products + slots) / of("beside");
  }
  const auto n = static_cast<double>(rows.size());
  std::printf("predicted over measured %.3f, were issue free beside products %.3f\n", held / n, free / n);
  EXPECT_NEAR(held / n, 1, 0.04);
  EXPECT_LT(free / n, 0.87);
}

TEST(StepTime, ExponentialsHaveOthersAmongThem) {
  const DeviceSpec device = load_device("h200");
  StepDemand demand{400, 300, 200, 0};
  const double alone = cycles_per_key_tile(demand, warps(1), device, 1);
  demand.among_exp = 100;
  EXPECT_NEAR(cycles_per_key_tile(demand, warps(1), device, 1), alone - 100, 1e-9);
  demand.among_exp = 1000;
  EXPECT_NEAR(cycles_per_key_tile(demand, warps(1), device, 1), 400 + 200, 1e-9);
}

// On an H100 mma.sync holds its scheduler's issue: both are one place of 900 cycles, which seven warps fill to within
// what is approximate of fixed times, and behind which waiting hides. On an A100 no place is so much fuller than
// others.
TEST(StepTime, MoreCtasTakeLongerButLessThanOneAfterTheOther) {
  const StepDemand demand{500, 200, 400, 100};
  for (const char* name : {"a100", "h100"})
    for (int ctas = 1; ctas < 8; ++ctas) {
      const DeviceSpec device = load_device(name);
      const double here = cycles_per_key_tile(demand, warps(4), device, ctas),
                   more = cycles_per_key_tile(demand, warps(4), device, ctas + 1);
      EXPECT_GT(more, here) << name;
      const double approximate = device.name == "h100" ? 1.0003 : 1;
      EXPECT_LT(more / (ctas + 1), approximate * here / ctas) << name;
    }
}

TEST(StepTime, EveryDemandCosts) {
  const StepDemand base{500, 200, 400, 100};
  const auto costs = [&](const char* name, double StepDemand::*member) {
    const DeviceSpec device = load_device(name);
    StepDemand more = base;
    more.*member += 50;
    return cycles_per_key_tile(more, warps(4), device, 2) - cycles_per_key_tile(base, warps(4), device, 2);
  };
  for (double StepDemand::*member : {&StepDemand::tensor, &StepDemand::exp, &StepDemand::issue, &StepDemand::smem,
                                     &StepDemand::waits, &StepDemand::l2_waited}) {
    const bool of_fullest = member == &StepDemand::tensor || member == &StepDemand::issue;
    EXPECT_GT(costs("a100", member), 25);
    EXPECT_GT(costs("h100", member), of_fullest ? 90 : 20);
  }
}

// A score of a lane is two instructions more behind a mask, three with a softcap, two with ALiBi, one and a half with a
// bias; all with what SASS has beside the instructions that a plan implies. A spilled word is a store, a load and a
// move.
TEST(StepTime, InstructionsThatAPlanImplies) {
  const DeviceSpec a100 = load_device("a100");
  const KernelPlan plan = warps(4);
  Counts counts;
  counts.key_tiles = 1;
  const double scores = 16.0 * plan.tile_n / 32, base = step_demand(plan, a100, counts, 0).issue;
  const auto more = [&](const KernelPlan& other, int masked, int spill_words) {
    Counts c = counts;
    c.masked_key_tiles = masked;
    return (step_demand(other, a100, c, spill_words).issue - base) / 1.24;
  };
  KernelPlan softcap = plan, alibi = plan, bias = plan, scaling = plan, synchronous = plan;
  softcap.softcap = alibi.alibi = bias.bias = true;
  EXPECT_NEAR(more(plan, 1, 0), 2 * scores, 1e-9);
  EXPECT_NEAR(more(softcap, 0, 0), 3 * scores, 1e-9);
  EXPECT_NEAR(more(alibi, 0, 0), 2 * scores, 1e-9);
  EXPECT_NEAR(more(bias, 0, 0), 1.5 * scores, 1e-9);
  EXPECT_NEAR(1.24 * more(plan, 0, 7), 21, 1e-9);
  scaling.exp_instructions = 4;
  EXPECT_NEAR(1.24 * more(scaling, 0, 0), 3 * scores, 1e-9);
  synchronous.copy_kind = CopyKind::synchronous;  // of 512 bytes a load and two zeros
  EXPECT_NEAR(more(synchronous, 0, 0), 3 * (plan.tile_bytes(Operand::k) + plan.tile_bytes(Operand::v)) / 4.0 / 512,
              1e-9);
}

// A score is two sums or products and a maximum, half a conversion; an element of O is rescaled; a mask is two
// comparisons. The pipes take 2 cycles a warp instruction where an SM has 64 lanes of them, and what is measured.
TEST(StepTime, ProductsAndComparisonsHavePipesOfTheirOwn) {
  KernelPlan plan = warps(4);
  Counts counts;
  counts.key_tiles = 1;
  const double scores = 16.0 * plan.tile_n / 32, outputs = 16.0 * plan.columns(Operand::o) / 32;
  for (const auto& [name, lanes] : {std::pair{"a100", 64.0}, {"h200", 128.0}}) {
    const DeviceSpec device = load_device(name);
    const StepDemand d = step_demand(plan, device, counts, 0);
    EXPECT_DOUBLE_EQ(d.fma, (2 * scores + outputs) * 128 / lanes) << name;
    EXPECT_DOUBLE_EQ(d.alu, 1.5 * scores * device.alu_instruction_cycles) << name;
    KernelPlan scaling = plan, alibi = plan;
    scaling.exp_instructions = 4, alibi.alibi = true;
    EXPECT_DOUBLE_EQ(step_demand(scaling, device, counts, 0).fma - d.fma, 2 * scores * 128 / lanes) << name;
    EXPECT_DOUBLE_EQ(step_demand(alibi, device, counts, 0).alu - d.alu, scores * device.alu_instruction_cycles) << name;
    counts.masked_key_tiles = 1;
    EXPECT_DOUBLE_EQ(step_demand(plan, device, counts, 0).alu - d.alu, 2 * scores * device.alu_instruction_cycles);
    counts.masked_key_tiles = 0;
  }
  // alone, a warp stands at a pipe for what its instructions take beyond their slots; many are bound by the pipe
  StepDemand demand{400, 300, 200, 100};
  demand.fma = 300;
  EXPECT_NEAR(cycles_per_key_tile(demand, plan, load_device("h200"), 1) -
                  cycles_per_key_tile({400, 300, 200, 100}, plan, load_device("h200"), 1),
              0, 1e-6);
  EXPECT_NEAR(cycles_per_key_tile(demand, warps(1), load_device("a100"), 1), 400 + 300 * 7 / 8.0 + 200 + 100 + 150,
              1e-3);
  demand.alu = 900;
  EXPECT_NEAR(cycles_per_key_tile(demand, plan, load_device("h200"), 16), 16 * 900, 0.02 * 16 * 900);
  // 900 of the ALU instead of 600 to issue
  EXPECT_NEAR(cycles_per_key_tile(demand, warps(1), load_device("h200"), 1) -
                  cycles_per_key_tile({400, 300, 200, 100}, warps(1), load_device("h200"), 1),
              300, 1e-3);
}

KernelPlan warpgroups(int n) {
  KernelPlan plan = warps(4 * n);
  plan.matrix_kind = MatrixKind::wgmma;
  plan.producer_warps = 1;
  plan.persistence = Persistence::static_stride;
  return plan;
}

// FA3's CTAs set up barriers and descriptors once; CTAs of a plain grid each do.
TEST(StepTime, APersistentProducerStartsOnce) {
  const DeviceSpec device = load_device("h200");
  const StepDemand demand{500, 300, 0, 0, 0, 200, 100, 80, 60, 50};
  KernelPlan plan = warpgroups(2);
  const double once = cycles_around_ctas(plan, device), each = cycles_per_cta(demand, plan, device);
  EXPECT_GT(once, device.bulk_prologue_cycles + device.dram_latency_cycles + device.l2_latency_cycles);
  plan.persistence = Persistence::none;
  EXPECT_EQ(cycles_around_ctas(plan, device), 0);
  EXPECT_DOUBLE_EQ(cycles_per_cta(demand, plan, device), each + once + device.cta_launch_cycles);
  EXPECT_EQ(cycles_around_ctas(warps(4), device), 0);
}

// One wave of CTAs that wait and store a word. What an SM's further CTAs add is not in it.
TEST(StepTime, KernelsAreLaunchedAndCtasStartAsMeasured) {
  const DeviceSpec device = load_device("h200");
  const auto sms = static_cast<double>(device.num_sms);
  int rows = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_SM "/launch.csv")) {
    if (row.at("waves") != "1" || row.at("wait_cycles") != "8000" || row.at("cluster") != "0") continue;
    const double ctas = std::stod(row.at("ctas"));
    const double ratio = launch_cycles(ctas, device) / (std::stod(row.at("sm__cycles_elapsed.max")) - 8000);
    if (ctas <= sms)
      EXPECT_NEAR(ratio, 0.98, 0.015) << ctas;
    else
      EXPECT_NEAR(ratio, 0.9, 0.01) << ctas;
    ++rows;
  }
  EXPECT_EQ(rows, 6);
  EXPECT_EQ(launch_cycles(1, device), device.kernel_launch_cycles);
  EXPECT_NEAR(launch_cycles(sms, device) - launch_cycles(1, device), 131 * device.cta_start_cycles, 1e-9);
  EXPECT_EQ(launch_cycles(2 * sms, device), launch_cycles(sms, device));
}

// docs/results/h200-sm/gates.csv: each pass is two instructions, which loop_instructions() has. A turn is one
// warpgroup's where there are several, and a copy is waited for where another warp has begun it.
TEST(StepTime, GatesArePassedAsMeasured) {
  std::map<std::string, double> passes;
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_SM "/gates.csv"))
    if (row.at("products") == "0") passes[row.at("kind")] = std::stod(row.at("cycles"));
  Counts counts;
  counts.key_tiles = counts.matrix_steps = counts.exponentials = 1;
  KernelPlan plan;
  plan.matrix_kind = MatrixKind::wgmma;
  const auto demand = [&] { return step_demand(plan, load_device("h200"), counts, 0); };
  EXPECT_EQ(demand().copy_gate + demand().turn_gate, 0);
  plan.producer_warps = 4;
  EXPECT_NEAR(demand().copy_gate, passes.at("over") - 2, 0.5);
  EXPECT_EQ(demand().turn_gate, 0);
  plan.num_warps = 8;
  EXPECT_NEAR(demand().turn_gate, passes.at("turn") - 2, 0.5);
}

/// docs/results/h200-sm/step.csv, overlapped and in turns: cycles of a key tile. `instructions` of the benchmark's
/// loop that are no arithmetic on scores or O, from its SASS; they are twice those of the kernels that the model knows.
struct MeasuredStep {
  int tile_n, headdim, warpgroups;
  bool p_in_smem;
  double instructions, cycles;
};

TEST(StepTime, KeyTilesOfWarpgroupsAsMeasured) {
  constexpr MeasuredStep steps[] = {
      {128, 128, 1, false, 215, 1985}, {128, 128, 2, false, 215, 2650}, {176, 128, 1, false, 234, 2652},
      {176, 128, 2, false, 234, 3404}, {96, 128, 2, false, 203, 2005},  {64, 128, 2, false, 145, 1657},
      {64, 128, 3, false, 145, 2001},  {128, 64, 1, false, 171, 1590},  {128, 64, 2, false, 171, 2196},
      {128, 64, 3, false, 172, 2563},  {192, 64, 1, true, 288, 2313},   {192, 64, 2, true, 288, 2999},
      {192, 64, 3, true, 289, 3913}};
  const DeviceSpec device = load_device("h200");
  double off = 0, ratios = 0;
  for (const MeasuredStep& m : steps) {
    KernelPlan plan;
    plan.matrix_kind = MatrixKind::wgmma;
    plan.headdim = plan.headdim_v = m.headdim;
    plan.tile_n = m.tile_n;
    plan.num_warps = 4 * m.warpgroups;
    plan.tile_m = 64 * m.warpgroups;
    plan.p_in_smem = m.p_in_smem;
    Counts counts;
    counts.key_tiles = 1;
    counts.matrix_steps = std::int64_t{2} * plan.tile_m * m.tile_n * m.headdim / 4096;
    counts.exponentials = std::int64_t{1} * plan.tile_m * m.tile_n;
    StepDemand demand = step_demand(plan, device, counts, 0);
    demand.fixed += m.instructions - loop_instructions(plan);
    const double predicted = cycles_per_key_tile(demand, plan, device, 1);
    EXPECT_NEAR(predicted / m.cycles, 1, 0.15) << m.tile_n << " x " << m.headdim << ", " << m.warpgroups;
    std::printf("%d x %d, %d warpgroups: %.0f (%.0f), %.3f\n", m.tile_n, m.headdim, m.warpgroups, predicted, m.cycles,
                predicted / m.cycles);
    off += std::abs(predicted / m.cycles - 1) / static_cast<double>(std::size(steps));
    ratios += predicted / m.cycles / static_cast<double>(std::size(steps));
  }
  std::printf("%.1f%% off on average, mean %.3f\n", 100 * off, ratios);
  EXPECT_LT(off, 0.05);
  EXPECT_NEAR(ratios, 1, 0.04);
}

}  // namespace
}  // namespace attest
