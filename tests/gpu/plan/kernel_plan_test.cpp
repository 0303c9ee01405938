#include "attest/plan/kernel_plan.h"

#include <gtest/gtest.h>

#include <array>

#include "attest/plan/catalog.h"
#include "attest/plan/sm80_tiles.h"

namespace attest {
namespace {

TEST(KernelPlan,
     SharedMemoryIsThatOfFlashAttention2) {  // counters say 66,560 and 50,176 with 1 KiB that the driver reserves
  Problem p;
  p.headdim = p.headdim_v = 128;
  EXPECT_EQ(fa2_plan(p, 232448).smem_bytes(), 65536u);
  p.headdim = p.headdim_v = 64;
  EXPECT_EQ(fa2_plan(p, 232448).smem_bytes(), 49152u);
}

// 8.6 to 8.9 have tiles of their own at headdims 96 and 128, by whether there is a mask without a window.
TEST(KernelPlan, FlashAttention2HasSmallerTilesForSmallerGpus) {
  const auto tile = [](std::int64_t headdim, bool causal, int compute_capability, std::int64_t window = -1) {
    Problem p;
    p.headdim = p.headdim_v = headdim, p.causal = causal ? Causal::bottom_right : Causal::none, p.window_left = window;
    const KernelPlan plan = fa2_plan(p, compute_capability == 90 ? 232448 : 101376, compute_capability);
    EXPECT_LE(plan.smem_bytes(), 101376);
    return std::array{plan.tile_m, plan.tile_n, plan.num_warps};
  };
  for (const int compute_capability : {86, 89}) {
    EXPECT_EQ(tile(128, false, compute_capability), (std::array{128, 32, 4}));
    EXPECT_EQ(tile(128, true, compute_capability), (std::array{64, 64, 4}));
    EXPECT_EQ(tile(128, true, compute_capability, 99), (std::array{128, 32, 4}));
    EXPECT_EQ(tile(96, false, compute_capability), (std::array{128, 64, 4}));
    EXPECT_EQ(tile(96, true, compute_capability), (std::array{64, 64, 4}));
    EXPECT_EQ(tile(64, true, compute_capability), (std::array{128, 128, 4}));
    EXPECT_EQ(tile(256, true, compute_capability), (std::array{64, 64, 4}));
  }
  EXPECT_EQ(tile(128, true, 90), (std::array{128, 64, 4}));
  EXPECT_EQ(tile(128, true, 120), (std::array{128, 64, 4}));
}

TEST(KernelPlan, EverySmallGpuGetsAPlanThatFits) {
  for (const std::uint32_t smem : {99u * 1024, 163u * 1024, 227u * 1024})
    for (std::int64_t d = 1; d <= 256; ++d)
      for (const std::int64_t d_v : {d, std::int64_t{128}})
        for (const Dtype dtype : all_dtypes) {
          Case c;
          c.problem.headdim = d, c.problem.headdim_v = d_v, c.problem.dtype = dtype;
          const KernelPlan plan = with_layout(attest_plan(c, smem), c);
          ASSERT_EQ(plan.invalid(), nullptr) << "headdim " << d;
          ASSERT_LE(plan.smem_bytes(), smem) << "headdim " << d << " headdim_v " << d_v;
        }
}

TEST(KernelPlan, RefusesImpossibleTilesBySentence) {
  KernelPlan plan;
  EXPECT_EQ(plan.invalid(), nullptr);
  plan.tile_m = 72;
  EXPECT_STREQ(plan.invalid(), "tile_m is no multiple of 16, the rows of a matrix step");
  plan = {};
  plan.merged_wait = true;
  EXPECT_STREQ(plan.invalid(), "merged_wait needs stages >= 2, not {stages}");
  plan = {};
  plan.headdim = 65;
  EXPECT_STREQ(plan.invalid(), "copy_bytes_q does not divide the bytes of a row of headdim = {headdim} elements");
  plan.copy_bytes_q = plan.copy_bytes_k = 2;
  EXPECT_EQ(plan.invalid(), nullptr);
  plan.packed_heads = 2;
  EXPECT_EQ(plan.invalid(), nullptr);
  plan.sink = true;
  EXPECT_STREQ(plan.invalid(), "packed_heads is above 1, where the case has alibi, bias or a sink: heads differ there");
}

// Two instructions that fill one sector may leave as one write to L2 or as two (shared_sectors in
// docs/results/h200-sm).
TEST(KernelPlan, RowsOfOLeaveWholeWhereAWarpHasTheLanes) {
  for (const Sm80Tile tile : all_sm80_tiles) {
    const KernelPlan plan = sm80_plan(tile);
    ASSERT_EQ(plan.copy_bytes_o, 16);
    EXPECT_GE(plan.store_lanes() * 16, plan.columns(Operand::o) * plan.output_bytes());
    EXPECT_LT(plan.store_lanes() * 8, plan.columns(Operand::o) * plan.output_bytes());
    EXPECT_EQ(plan.rows_per_warp() % plan.store_rows(), 0);
  }
  Problem p;
  p.headdim = p.headdim_v = 96;
  EXPECT_EQ(fa2_plan(p, 232448).store_lanes(), 4);  // as its swizzle has them
}

TEST(Granules, AreTheWidestThatStridesAndBaseAllow) {
  Case c;
  c.problem.headdim = c.problem.headdim_v = 128;
  KernelPlan plan = with_layout(attest_plan(c, 232448), c);
  EXPECT_EQ(plan.copy_bytes_q, 16);
  c.layout.base_offset = 4;
  EXPECT_EQ(with_layout(plan, c).copy_bytes_k, 8);
  c.layout.base_offset = 1;
  EXPECT_EQ(with_layout(plan, c).copy_bytes_v, 2);
  c.layout = {};
  c.layout.row_gap = 2;
  EXPECT_EQ(with_layout(plan, c).copy_bytes_o, 4);
}

}  // namespace
}  // namespace attest
