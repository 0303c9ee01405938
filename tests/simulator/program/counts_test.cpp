#include "attest/simulator/counts.h"

#include <gtest/gtest.h>

#include <numeric>

#include "attest/plan/catalog.h"
#include "attest/plan/launch.h"

namespace attest {
namespace {

SharedAccess access(int bytes, auto address) {
  SharedAccess a{SharedAccess::Kind::load_word, Operand::k, bytes, ~0u, {}};
  for (std::uint32_t lane = 0; lane < 32; ++lane) a.address[lane] = static_cast<std::uint32_t>(address(lane));
  return a;
}

TEST(Wavefronts, AreTheMostDistinctWordsInABank) {
  for (std::uint32_t stride = 1; stride <= 33; ++stride) {  // gcd(stride, 32) lanes meet in a bank
    const auto meet = static_cast<int>(std::gcd(stride, 32u));
    EXPECT_EQ(wavefronts(access(4, [&](std::uint32_t lane) { return 4 * stride * lane; })), meet)
        << "stride " << stride;
  }
  EXPECT_EQ(wavefronts(access(4, [](std::uint32_t) { return 64; })), 1) << "the same word is free";
  EXPECT_EQ(wavefronts(access(8, [](std::uint32_t lane) { return 8 * lane; })), 2);
  EXPECT_EQ(wavefronts(access(16, [](std::uint32_t lane) { return 16 * lane; })), 4);
  EXPECT_EQ(wavefronts(access(16, [](std::uint32_t lane) { return 128 * lane; })), 32) << "8-way in each of 4 groups";
  EXPECT_EQ(wavefronts(access(2, [](std::uint32_t lane) { return 2 * lane; })), 1) << "two halves of a word";
  SharedAccess half = access(16, [](std::uint32_t lane) { return 16 * lane; });
  half.active = 0x0000ffffu;
  EXPECT_EQ(wavefronts(half), 2);
  EXPECT_EQ(ideal_wavefronts(half), 2);
  half.active = 0;
  EXPECT_EQ(wavefronts(half), 0);
}

// The tile loop in closed form, in wavefronts of 128 bytes: FlashAttention 2's counters equal it.
std::int64_t fa2_wavefronts(const KernelPlan& plan, std::int64_t key_tiles) {
  const std::int64_t row = plan.columns(Operand::q) * 2;
  const std::int64_t tile = plan.num_warps * 2 * plan.tile_n * row + plan.tile_m * row + 2 * plan.tile_n * row;
  return (key_tiles * tile + 3 * plan.tile_m * row) / 128;
}

TEST(Counts, OfFlashAttention2AreItsClosedForm) {
  for (const int headdim : {64, 128}) {
    Problem p;
    p.headdim = p.headdim_v = headdim;
    p.seqlen_q = p.seqlen_k = 2048;
    const KernelPlan plan = fa2_plan(p, 232448);
    const std::int64_t row = 32 * headdim * 2;
    Counter counter(plan, {{row, row, row, row}, {}});
    for (const Causal causal : {Causal::none, Causal::bottom_right}) {
      p.causal = causal;
      for (int tile = 0; tile < num_q_tiles(plan, p); ++tile) {
        const Counts c = counter.count(make_work(p, tile));
        const TileRange range = tile_range(plan, make_work(p, tile));
        ASSERT_EQ(c.key_tiles, range.end - range.begin);
        ASSERT_EQ(c.smem_wavefronts, fa2_wavefronts(plan, c.key_tiles));
        ASSERT_EQ(c.smem_wavefronts_ideal, c.smem_wavefronts);
        ASSERT_EQ(c.global_bytes[0], std::int64_t{plan.tile_m} * headdim * 2);
        ASSERT_EQ(c.global_bytes[1], c.key_tiles * plan.tile_n * headdim * 2);
        ASSERT_EQ(c.global_bytes[2], c.global_bytes[1]);
        ASSERT_EQ(c.global_bytes[3], c.global_bytes[0]);
        ASSERT_EQ(c.lse_bytes, plan.tile_m * 4);  // whole sectors
        for (std::size_t x = 0; x < 4; ++x) ASSERT_EQ(c.global_sectors[x] * 32, c.global_bytes[x]);
        ASSERT_EQ(c.exponentials, c.key_tiles * plan.tile_m * plan.tile_n);
        ASSERT_EQ(c.matrix_steps * 16 * 16 * 16, c.key_tiles * plan.tile_m * plan.tile_n * 2 * headdim);
      }
    }
  }
}

TEST(Counts, RememberedStepsEqualFreshOnes) {
  Problem p;
  p.seqlen_q = 333, p.seqlen_k = 777, p.headdim = 72, p.headdim_v = 40, p.causal = Causal::bottom_right;
  Case c{p, {}, Distribution::normal, 0};
  KernelPlan plan = with_layout(attest_plan(c, 232448), c);
  plan.num_warps = 2, plan.tile_m = 64;
  const GlobalLayout layout{{216, 216, 80, 80}, {8, 24, 0, 16}};
  Counter shared(plan, layout);
  for (int tile = 0; tile < num_q_tiles(plan, p); ++tile) {
    Counter fresh(plan, layout);
    EXPECT_EQ(shared.count(make_work(p, tile)), fresh.count(make_work(p, tile))) << "query tile " << tile;
  }
}

TEST(Counts, OddRowsTouchMoreSectorsThanBytes) {
  Problem p;
  p.headdim = p.headdim_v = 129, p.seqlen_q = p.seqlen_k = 256;
  const Case c{p, {}, Distribution::normal, 0};
  const KernelPlan plan = with_layout(attest_plan(c, 232448), c);
  EXPECT_EQ(plan.copy_bytes_k, 2);
  Counter counter(plan, {{258, 258, 258, 258}, {}});
  const Counts odd = counter.count(make_work(p, 0));
  EXPECT_EQ(odd.global_bytes[1], 256 * 258);
  EXPECT_GT(odd.global_sectors[1] * 32, odd.global_bytes[1]);
  // The padded tile in 16-byte copies fills a wavefront of 128 bytes; 2-byte stores fill 64 of them at most.
  const auto fills = static_cast<std::size_t>(SharedAccess::Kind::fill_sync);
  const std::int64_t tiles = odd.key_tiles, padded = 144 * 2;
  EXPECT_GE(odd.wavefronts_by_kind[fills] * 64, (plan.tile_m + 2 * tiles * plan.tile_n) * padded);
}

TEST(Counts, WithoutSwizzleConflictEightWays) {
  Problem p;
  p.headdim = p.headdim_v = 128, p.seqlen_q = p.seqlen_k = 256;
  KernelPlan plan = fa2_plan(p, 232448);
  plan.swizzled = false;
  const Counts c = Counter(plan, {{256, 256, 256, 256}, {}}).count(make_work(p, 0));
  const auto loads = static_cast<std::size_t>(SharedAccess::Kind::load_matrix);
  EXPECT_EQ(c.wavefronts_by_kind[loads], 8 * c.ideal_by_kind[loads]);
}

}  // namespace
}  // namespace attest
