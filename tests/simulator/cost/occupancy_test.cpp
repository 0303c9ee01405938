#include "attest/simulator/occupancy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>

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

// simulator/measured/registers_sm80.csv: nvcc 13.0, -arch=sm_80 -Xptxas -v, of an mma.sync forward with these
// accumulators and fragments.
TEST(Registers, AgreeWithTheCompiler) {
  std::ifstream in(ATTEST_MEASURED "/registers_sm80.csv");
  std::string line;
  std::getline(in, line);
  const DeviceSpec a100 = load_device("a100");
  double error = 0;
  int wrong = 0, rows = 0;
  std::printf("headdim tile     warps stages Q in regs | registers predicted | stack bytes predicted\n");
  while (std::getline(in, line)) {
    std::array<int, 10> x{};
    std::stringstream cells(line);
    std::string cell;
    for (int& value : x) std::getline(cells, cell, ','), value = std::stoi(cell);
    KernelPlan plan = plan_of(x[0], x[1], x[2], x[3], x[4]);
    plan.q_in_registers = x[5] != 0;
    const RegisterEstimate e = estimate_registers(plan, a100);
    std::printf("%7d %3dx%-3d %6d %6d %9d | %9d %9d | %11d %9d\n", x[0], x[1], x[2], x[3], x[4], x[5], x[6],
                e.registers_per_thread, x[7], 4 * e.spill_words);
    error += std::abs(e.registers_per_thread - x[6]) / static_cast<double>(x[6]);
    wrong += (e.spill_words > 0) != (x[7] > 0);
    ++rows;
  }
  std::printf("mean error of registers %.1f%%; spills or not: %d of %d wrong\n", 100 * error / rows, wrong, rows);
  ASSERT_EQ(rows, 42);
  EXPECT_LT(error / rows, 0.08);
  EXPECT_LE(wrong, rows / 20);
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

TEST(Registers, AnSmWithTooFewIsRefused) {
  DeviceSpec device = load_device("h100");
  device.registers_per_sm = 1024;
  try {
    estimate_registers(plan_of(128, 128, 64, 8), device);
    FAIL() << "1024 registers over 256 threads were accepted";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("registers_per_sm"));
    EXPECT_THAT(error.what(), testing::HasSubstr("1024"));
    EXPECT_THAT(error.what(), testing::HasSubstr("fewer than 8"));
  }
}

}  // namespace
}  // namespace attest
