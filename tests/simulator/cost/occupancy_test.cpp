#include "attest/simulator/occupancy.h"

#include <gtest/gtest.h>

#include "attest/plan/catalog.h"
#include "attest/problem/error.h"
#include "plan_of.h"

namespace attest {
namespace {

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

// On both sides of the edge: three CTAs and the KiB that the system keeps of each.
TEST(Occupancy, EachCtaTakesTheReservedKiB) {
  DeviceSpec h100 = load_device("h100");
  const KernelPlan plan = plan_of(64, 64, 64, 4);
  h100.smem_bytes_per_sm = 3 * (static_cast<std::int64_t>(plan.smem_bytes()) + 1024);
  EXPECT_EQ(occupancy(plan, 64, h100).by_smem, 3);
  --h100.smem_bytes_per_sm;
  EXPECT_EQ(occupancy(plan, 64, h100).by_smem, 2);
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

}  // namespace
}  // namespace attest
