#include "attest/simulator/case_counts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "attest/plan/catalog.h"
#include "attest/plan/launch.h"

namespace attest {
namespace {

/// Every CTA of every head, recorded and counted one by one.
Counts count_all(const Case& c, const KernelPlan& plan) {
  const Problem& p = c.problem;
  const TensorRef t[] = {strides_of(c.layout, p.seqlen_q, p.nheads, p.headdim),
                         strides_of(c.layout, p.seqlen_k, p.nheads_k, p.headdim),
                         strides_of(c.layout, p.seqlen_k, p.nheads_k, p.headdim_v),
                         strides_of(c.layout, p.seqlen_q, p.nheads, p.headdim_v)};
  Counts total;
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.nheads; ++h) {
      GlobalLayout layout;
      for (std::size_t x = 0; x < 4; ++x) {
        const std::int64_t head = x == 1 || x == 2 ? h / (p.nheads / p.nheads_k) : h;
        layout.row_stride_bytes[x] = t[x].row_stride * plan.element_bytes;
        layout.base[x] = (c.layout.base_offset + b * t[x].batch_stride + head * t[x].head_stride) * plan.element_bytes;
      }
      Counter counter(plan, layout);
      for (int q = 0; q < num_q_tiles(plan, p); ++q) total += counter.count(make_work(p, q));
    }
  if (!plan.stores_lse || plan.packed_heads > 1) return total;
  total.lse_bytes = 0;  // by the addresses of eight rows
  for (std::int64_t head = 0; head < p.batch * p.nheads; ++head)
    for (std::int64_t row = 0; row < p.seqlen_q; row += 8) {
      const std::int64_t first = 4 * (head * p.seqlen_q + row),
                         last = first + 4 * std::min<std::int64_t>(8, p.seqlen_q - row) - 1;
      total.lse_bytes += 32 * (last / 32 - first / 32 + 1);
    }
  return total;
}

struct Variant {
  const char* name;
  std::int64_t batch, nheads, nheads_k, seqlen_q, seqlen_k, headdim, headdim_v;
  Causal causal;
  std::int64_t left, right, base_offset;
};

constexpr Variant variants[] = {
    {"whole tiles", 2, 2, 1, 512, 1024, 64, 64, Causal::none, -1, -1, 0},
    {"ragged", 1, 3, 3, 333, 1001, 128, 128, Causal::none, -1, -1, 0},
    {"causal", 1, 2, 2, 1024, 1024, 128, 128, Causal::bottom_right, -1, -1, 0},
    {"causal, ragged, top-left", 1, 2, 1, 700, 900, 96, 64, Causal::top_left, -1, -1, 0},
    {"window", 1, 1, 1, 1500, 1500, 64, 64, Causal::none, 200, 70, 0},
    {"rows that see nothing", 1, 1, 1, 600, 100, 64, 64, Causal::bottom_right, -1, -1, 0},
    {"no keys", 1, 1, 1, 100, 0, 64, 64, Causal::none, -1, -1, 0},
    {"no queries", 1, 1, 1, 0, 100, 64, 64, Causal::none, -1, -1, 0},
    {"odd head dimension", 3, 5, 5, 130, 400, 65, 33, Causal::none, -1, -1, 3},
};

TEST(CaseCounts, EqualEveryCtaRecorded) {
  for (const Variant& v : variants) {
    Case c;
    c.problem = {v.batch,     v.nheads,    v.nheads_k, v.seqlen_q, v.seqlen_k, v.headdim,
                 v.headdim_v, Dtype::bf16, {},         v.causal,   v.left,     v.right};
    c.layout.base_offset = v.base_offset;
    for (const NamedPlan& named : named_plans) {
      KernelPlan plan = with_layout(named.make(c, {}), c);
      for (const int stages : {1, 2, 3}) {
        plan.stages = stages;
        plan.merged_wait = plan.merged_wait && stages > 1;
        EXPECT_EQ(count_case(c, plan), count_all(c, plan)) << v.name << ", " << named.name << ", stages " << stages;
      }
    }
  }
}

// FlashAttention 2 on whole tiles, in wavefronts of 128 bytes: a key tile costs warps * 2 * tile_n * d * 2 bytes for K
// and V, tile_m * d * 2 for Q, read again, and 2 * tile_n * d * 2 to fill; a CTA 3 * tile_m * d * 2 more.
TEST(CaseCounts, ClosedFormOfWavefronts) {
  for (const int d : {64, 128}) {
    Case c;
    c.problem = {2, 4, 4, 1024, 2048, d, d, Dtype::bf16, {}, Causal::none, -1, -1};
    const KernelPlan plan = fa2_plan(c.problem, 232448);
    const std::int64_t m = plan.tile_m, n = plan.tile_n, ctas = 8 * 1024 / m, tiles = 2048 / n;
    const std::int64_t bytes =
        ctas * (tiles * (plan.num_warps * 2 * n * d * 2 + m * d * 2 + 2 * n * d * 2) + 3 * m * d * 2);
    const Counts counts = count_case(c, plan);
    EXPECT_EQ(counts.smem_wavefronts, bytes / 128);
    EXPECT_EQ(counts.smem_wavefronts_ideal, bytes / 128);
  }
}

TEST(CaseCounts, WithoutSwizzleMatrixLoadsConflict) {
  Case c;
  c.problem = {1, 1, 1, 1024, 1024, 64, 64, Dtype::bf16, {}, Causal::none, -1, -1};
  KernelPlan plan = attest_plan(c, 232448);
  plan.swizzled = false;
  const Counts counts = count_case(c, plan);
  const auto loads = static_cast<std::size_t>(SharedAccess::Kind::load_matrix);
  EXPECT_EQ(counts.wavefronts_by_kind[loads], 8 * counts.ideal_by_kind[loads]);
}

// Tiles of 128 queries and 64 keys: of a causal head's four CTAs the first one has masked key tiles alone, and of a
// window's eight all but the first three have masked ones at both ends.
TEST(CaseCounts, RunsOfKeyTilesAreThoseThatAreWalked) {
  const auto runs_of = [](int keys, Causal causal, int left) {
    Case c;
    c.problem = {1, 1, 1, keys, keys, 128, 128, Dtype::bf16, {}, causal, left, -1};
    const KeyRuns runs = count_key_runs(c, attest_plan(c, 232448));
    return std::array{runs.all, runs.whole, runs.masked_first, runs.whole_first};
  };
  EXPECT_EQ(runs_of(512, Causal::none, -1), (std::array<std::int64_t, 4>{8, 4, 0, 4}));
  EXPECT_EQ(runs_of(512, Causal::bottom_right, -1), (std::array<std::int64_t, 4>{7, 3, 4, 0}));
  EXPECT_EQ(runs_of(1000, Causal::none, -1), (std::array<std::int64_t, 4>{16, 8, 8, 0}));
  EXPECT_EQ(runs_of(1024, Causal::bottom_right, 255), (std::array<std::int64_t, 4>{21, 7, 8, 0}));
}

// CTAs that have more than so many key tiles, beside those of a loop over what a mask leaves each query tile.
TEST(CaseCounts, LongerCtasAreThoseThatAMaskLeavesMore) {
  for (const auto& [queries, keys, causal, left, right] : {std::tuple{512, 512, true, -1, -1},
                                                           {832, 832, true, -1, -1},
                                                           {256, 1000, true, -1, -1},
                                                           {1000, 256, true, -1, -1},
                                                           {1024, 1024, false, 100, 30},
                                                           {1024, 1024, true, 300, -1},
                                                           {100, 2000, false, -1, -1}}) {
    Case c;
    c.problem = {1,    3,    3, queries, keys, 128, 128, Dtype::bf16, {}, causal ? Causal::bottom_right : Causal::none,
                 left, right};
    const KernelPlan plan = fa2_plan(c.problem, 232448);
    std::array<std::int64_t, 6> longer{};
    for (int first = 0; first < queries; first += plan.tile_m) {
      const int last = std::min(first + plan.tile_m, queries) - 1;
      int begin = keys, end = 0;  // of the keys that some row of the tile sees
      for (int row = first; row <= last; ++row) {
        const int diagonal = row + keys - queries;
        const int from = left >= 0 ? std::max(0, diagonal - left) : 0;
        const int to = std::min(keys, causal ? diagonal + 1 : right >= 0 ? diagonal + right + 1 : keys);
        if (from < to) begin = std::min(begin, from), end = std::max(end, to);
      }
      const int tiles = begin < end ? (end - 1) / plan.tile_n - begin / plan.tile_n + 1 : 0;
      for (std::size_t n = 0; n < longer.size(); ++n) longer[n] += tiles > static_cast<int>(n) ? 3 : 0;
    }
    EXPECT_EQ(count_key_runs(c, plan).longer, longer) << queries << " " << keys << " " << causal << " " << left;
  }
}

// Of 2048 causal queries on 128 keys the last query tile alone has a key tile: what it does is a lone tile's.
TEST(CaseCounts, WithKeysAreThoseThatHaveAKeyTile) {
  Case c, last;
  c.problem = {1, 3, 3, 2048, 128, 128, 128, Dtype::bf16, {}, Causal::bottom_right, -1, -1};
  last.problem = c.problem, last.problem.seqlen_q = 128;
  const KernelPlan plan = attest_plan(c, 232448);
  const Counts all = count_case(c, plan), some = count_with_keys(c, plan), alone = count_case(last, plan);
  EXPECT_EQ(some.key_tiles, all.key_tiles);
  EXPECT_LT(some.smem_wavefronts, all.smem_wavefronts);
  EXPECT_EQ(some.smem_wavefronts, alone.smem_wavefronts);
  EXPECT_EQ(count_with_keys(last, plan), alone);
}

TEST(CaseCounts, PackedHeadsReadKeysOnceForAGroup) {
  Case c;
  c.problem.nheads = 16, c.problem.nheads_k = 2, c.problem.seqlen_q = 4, c.problem.seqlen_k = 640;
  KernelPlan packed = with_layout(attest_plan(c, 232448), c), plain = packed;
  ASSERT_EQ(packed.packed_heads, 8);
  plain.packed_heads = 1;
  const Counts some = count_case(c, packed), more = count_case(c, plain);
  EXPECT_EQ(some.global_bytes[0], more.global_bytes[0]);
  EXPECT_EQ(8 * some.global_bytes[1], more.global_bytes[1]);
  EXPECT_EQ(8 * some.global_bytes[2], more.global_bytes[2]);
}

}  // namespace
}  // namespace attest
