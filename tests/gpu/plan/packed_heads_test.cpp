// Rows of packed heads: the masks, addresses and sizes of row r are those of query r / packed_heads.
#include <gtest/gtest.h>

#include <algorithm>

#include "attest/plan/catalog.h"
#include "attest/plan/launch.h"
#include "attest/reference/attends.h"

namespace attest {
namespace {

Case grouped(int queries, int keys, int group) {
  Case c;
  Problem& p = c.problem;
  p.nheads = 2 * group, p.nheads_k = 2;
  p.seqlen_q = queries, p.seqlen_k = keys, p.headdim = p.headdim_v = 64;
  return c;
}

// Every key that attends() gives the row's query, and no other; and tiles are skipped or left unmasked for just that.
TEST(PackedHeads, EachRowSeesTheKeysOfItsQuery) {
  constexpr int queries = 7, keys = 90, size = 16;
  for (const Causal causal : {Causal::none, Causal::bottom_right, Causal::top_left})
    for (const int left : {-1, 3})
      for (const int right : {-1, 2})
        for (const int prefix : {0, 20})
          for (const int group : {1, 2, 5}) {
            Problem p = grouped(queries, keys, group).problem;
            p.causal = causal, p.window_left = left, p.window_right = right, p.prefix = prefix;
            KernelPlan packed;
            packed.tile_m = packed.tile_n = size, packed.num_warps = 1;
            packed.packed_heads = group;
            Work work = make_work(p, 0, group);
            ASSERT_EQ(work.seqlen_q, group * queries);
            for (int row = 0; row < work.seqlen_q; ++row) {
              const RowMask<KernelPlan> mask(packed, work, row);
              for (int key = 0; key < keys; ++key)
                ASSERT_EQ(mask.sees(key), attends(p, 0, row / group, key)) << row << " " << key;
            }
            for (work.q_tile = 0; work.q_tile < num_q_tiles(packed, p); ++work.q_tile)
              for (int key_tile = 0; key_tile * size < keys; ++key_tile) {
                int seen = 0, pairs = 0;
                for (int row = size * work.q_tile; row < std::min(size * (work.q_tile + 1), work.seqlen_q); ++row)
                  for (int key = size * key_tile; key < size * (key_tile + 1); ++key, ++pairs)
                    seen += key < keys && attends(p, 0, row / group, key);
                const TileClass expected = seen == 0       ? TileClass::skip
                                           : seen == pairs ? TileClass::full
                                                           : TileClass::partial;
                ASSERT_EQ(classify(packed, work, key_tile), expected) << "tile " << work.q_tile << " keys " << key_tile;
              }
          }
}

TEST(PackedHeads, EveryRowOfEveryHeadHasAPlaceOfItsOwn) {
  KernelPlan plan;
  plan.packed_heads = 3;
  const std::int64_t queries = 5, nheads = 6;
  std::vector<int> lse(static_cast<std::size_t>(queries * nheads)), elements(lse.size());
  for (std::int64_t head = 0; head < nheads; head += 3) {
    const HeadPlace at{0, head, 1, nheads, queries};
    for (int row = 0; row < 15; ++row) {
      const std::int64_t place = plan.lse_row(at) + plan.lse_offset(at, row, plan.lse_stride(at));
      EXPECT_EQ(place, (head + row % 3) * queries + row / 3);
      ++lse[static_cast<std::size_t>(place)];
      ++elements[static_cast<std::size_t>(head + plan.query_offset(row, nheads, 1))];
    }
  }
  EXPECT_EQ(lse, std::vector<int>(lse.size(), 1));
  EXPECT_EQ(elements, lse);
}

TEST(PackedHeads, OnlyWhereNothingTellsTheHeadsApart) {
  Problem p = grouped(4, 640, 8).problem;
  EXPECT_EQ(sm80_packed_heads(p), 8);
  p.alibi = true;
  EXPECT_EQ(sm80_packed_heads(p), 1);
  p.alibi = false, p.seqlen_q = 16;
  EXPECT_EQ(sm80_packed_heads(p), 1);
  p.seqlen_q = 15;
  EXPECT_EQ(sm80_packed_heads(p), 8);
  p.headdim = 256;  // 120 rows are more than its tile's 64
  EXPECT_EQ(sm80_packed_heads(p), 1);
}

TEST(Sm80Choice, FollowsTheLayoutAsTheLaunchDoes) {
  Case c = grouped(500, 640, 1);
  c.problem.headdim = c.problem.headdim_v = 96;
  EXPECT_EQ(sm80_choice(c).tile, Sm80Tile::d96);
  c.layout.base_offset = 1;
  EXPECT_EQ(sm80_choice(c).tile, Sm80Tile::d128);
  EXPECT_EQ(sm80_choice(c).kind, Sm80Kind::general);
  c.layout = {};
  c.layout.page_size = 16;
  EXPECT_EQ(sm80_choice(c).kind, Sm80Kind::general);
}

}  // namespace
}  // namespace attest
