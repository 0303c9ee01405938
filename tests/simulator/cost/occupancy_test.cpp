#include "attest/simulator/occupancy.h"

#include <gtest/gtest.h>

#include "attest/plan/catalog.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

KernelPlan plan_of(int headdim, int tile_m, int tile_n, int warps, int stages = 1) {
  KernelPlan plan;
  plan.headdim = plan.headdim_v = headdim;
  plan.tile_m = tile_m, plan.tile_n = tile_n, plan.num_warps = warps, plan.stages = stages;
  return plan;
}

// What FlashAttention 2's launches show on an H200: 66,560 and 50,176 bytes with the reserved KiB, 255 registers, and
// two CTAs an SM by registers although shared memory has room for three and four.
TEST(Occupancy, FlashAttention2OnH200) {
  const DeviceSpec h200 = load_device("h200");
  for (const auto& [d, smem, by_smem] : {std::tuple{128, 66560, 3}, std::tuple{64, 50176, 4}}) {
    Problem p;
    p.headdim = p.headdim_v = d;
    const KernelPlan plan = fa2_plan(p, 232448);
    EXPECT_EQ(static_cast<int>(plan.smem_bytes()) + 1024, smem);
    const Occupancy o = occupancy(plan, 255, h200);
    EXPECT_EQ(o.by_registers, 2);
    EXPECT_EQ(o.by_smem, by_smem);
    EXPECT_EQ(o.ctas_per_sm, 2);
    EXPECT_EQ(o.limit, "registers");
  }
}

struct Row {
  int registers, ctas;
};
// Registers are given to a warp in steps of 256, and each of the four schedulers has 16,384.
TEST(Occupancy, RegistersOfFourWarps) {
  const DeviceSpec h100 = load_device("h100");
  for (const Row& row : {Row{255, 2}, Row{168, 3}, Row{169, 2}, Row{128, 4}, Row{129, 3}, Row{64, 8}, Row{65, 7}})
    EXPECT_EQ(occupancy(plan_of(64, 64, 32, 4), row.registers, h100).by_registers, row.ctas) << row.registers;
}

TEST(Occupancy, OtherLimits) {
  const DeviceSpec h100 = load_device("h100"), rtx4090 = load_device("rtx4090");
  EXPECT_EQ(occupancy(plan_of(128, 128, 128, 8), 32, h100).limit, "shared memory");
  EXPECT_EQ(occupancy(plan_of(16, 64, 16, 4), 32, h100).limit, "registers");
  EXPECT_EQ(occupancy(plan_of(16, 64, 16, 4), 24, h100).ctas_per_sm, 16);
  EXPECT_EQ(occupancy(plan_of(16, 64, 16, 4), 24, h100).limit, "warps");
  EXPECT_EQ(occupancy(plan_of(16, 16, 16, 1), 16, rtx4090).limit, "CTAs");
  EXPECT_THROW(occupancy(plan_of(256, 128, 128, 8), 128, rtx4090), InvalidInput);
}

struct Compiled {
  int headdim, tile_m, tile_n, warps;
  bool q_in_registers;
  int registers, spill_bytes;
};
// nvcc 13.0, sm_80, -Xptxas -v, of an mma.sync forward with these accumulators and fragments, one stage.
constexpr Compiled compiled[] = {
    {64, 64, 64, 4, false, 146, 0},    {64, 64, 64, 4, true, 151, 0},       {64, 64, 128, 4, false, 198, 0},
    {64, 64, 128, 4, true, 202, 0},    {64, 128, 32, 4, false, 187, 0},     {64, 128, 32, 4, true, 208, 0},
    {64, 128, 64, 4, false, 224, 0},   {64, 128, 64, 4, true, 247, 0},      {64, 128, 128, 4, false, 255, 72},
    {64, 128, 128, 4, true, 255, 48},  {64, 128, 64, 8, false, 144, 0},     {64, 128, 64, 8, true, 155, 0},
    {64, 128, 128, 8, false, 198, 0},  {64, 128, 128, 8, true, 202, 0},     {128, 64, 64, 4, false, 184, 0},
    {128, 64, 64, 4, true, 214, 0},    {128, 64, 128, 4, false, 225, 0},    {128, 64, 128, 4, true, 245, 0},
    {128, 128, 32, 4, false, 255, 0},  {128, 128, 32, 4, true, 255, 24},    {128, 128, 64, 4, false, 255, 72},
    {128, 128, 64, 4, true, 255, 248}, {128, 128, 128, 4, false, 255, 424}, {128, 128, 128, 4, true, 255, 848},
    {128, 128, 64, 8, false, 184, 0},  {128, 128, 64, 8, true, 214, 0},     {128, 128, 128, 8, false, 225, 0},
    {128, 128, 128, 8, true, 245, 0},
};

TEST(Registers, AgreeWithTheCompiler) {
  const DeviceSpec a100 = load_device("a100");
  double error = 0;
  int wrong = 0;
  std::printf("headdim tile     warps Q in regs | registers predicted | spill bytes predicted\n");
  for (const Compiled& row : compiled) {
    KernelPlan plan = plan_of(row.headdim, row.tile_m, row.tile_n, row.warps);
    plan.q_in_registers = row.q_in_registers;
    const RegisterEstimate e = estimate_registers(plan, a100);
    std::printf("%7d %3dx%-3d %6d %9d | %9d %9d | %11d %9d\n", row.headdim, row.tile_m, row.tile_n, row.warps,
                row.q_in_registers, row.registers, e.registers_per_thread, row.spill_bytes, 4 * e.spill_words);
    error += std::abs(e.registers_per_thread - row.registers) / static_cast<double>(row.registers);
    wrong += (e.spill_words > 0) != (row.spill_bytes > 0);
  }
  EXPECT_LT(error / std::size(compiled), 0.08);
  EXPECT_LE(wrong, 1);
}

TEST(Registers, ThePlansOwnDataWins) {
  KernelPlan plan = plan_of(128, 128, 64, 4);
  plan.known_registers = 168;
  plan.spill_words_per_key_tile = 3;
  const RegisterEstimate e = estimate_registers(plan, load_device("h100"));
  EXPECT_TRUE(e.known);
  EXPECT_EQ(e.registers_per_thread, 168);
  EXPECT_EQ(e.spill_words, 3);
}

TEST(Registers, AManyThreadLaunchLowersTheLimit) {
  const RegisterEstimate e = estimate_registers(plan_of(128, 512, 128, 16), load_device("h100"));
  EXPECT_EQ(e.registers_per_thread, 128);
  EXPECT_GT(e.spill_words, 0);
}

}  // namespace
}  // namespace attest
