// classify() and its closed form against the mask, one element at a time.
#include <gtest/gtest.h>

#include "attest/plan/launch.h"

namespace attest {
namespace {

void check(const KernelPlan& plan, const Work& work) {
  const TileRange range = tile_range(plan, work);
  const int first = work.q_tile * plan.tile_m, last = std::min(first + plan.tile_m, work.seqlen_q);
  for (int tile = 0; tile * plan.tile_n < work.seqlen_k + plan.tile_n; ++tile) {
    int seen = 0, all = 0;
    for (int row = first; row < last; ++row)
      for (int key = tile * plan.tile_n; key < (tile + 1) * plan.tile_n; ++key, ++all)
        seen += plan.visible(work, row, key);
    const TileClass is = classify(plan, work, tile);
    if (seen > 0) {
      ASSERT_NE(is, TileClass::skip) << "tile " << tile;
    }
    ASSERT_EQ(is == TileClass::full, seen == all && all > 0) << "tile " << tile;
    const bool visited = tile >= range.begin && tile < range.end;
    const bool full = tile >= range.full_begin && tile < range.full_end;
    ASSERT_EQ(full, is == TileClass::full) << "tile " << tile;
    // the closed form walks one interval, so it may visit a tile between two visible ones, never leave one out
    if (is != TileClass::skip) {
      ASSERT_TRUE(visited) << "tile " << tile;
    }
    if (visited && (tile == range.begin || tile == range.end - 1)) {
      ASSERT_NE(is, TileClass::skip) << "tile " << tile;
    }
  }
}

TEST(Classify, AgreesWithTheMaskOnEveryElement) {
  KernelPlan plan;
  plan.tile_m = 16;
  plan.tile_n = 16;
  plan.num_warps = 1;
  Problem p;
  for (const Causal causal : {Causal::none, Causal::bottom_right, Causal::top_left})
    for (const std::int64_t left : {-1, 0, 1, 15, 16, 17, 40, 200})
      for (const std::int64_t right : {-1, 0, 3, 16, 200})
        for (const std::int64_t sq : {0, 1, 15, 16, 17, 50})
          for (const std::int64_t sk : {0, 1, 2, 15, 16, 17, 33, 70}) {
            p.causal = causal, p.window_left = left, p.window_right = right, p.seqlen_q = sq, p.seqlen_k = sk;
            SCOPED_TRACE(testing::Message()
                         << to_string(causal) << " window " << left << "," << right << " " << sq << "x" << sk);
            for (int tile = 0; tile < num_q_tiles(plan, p); ++tile) check(plan, make_work(p, tile));
            if (HasFatalFailure()) return;
          }
}

TEST(Classify, HugeWindowsDoNotOverflow) {
  Problem p;
  p.seqlen_q = 1 << 26, p.seqlen_k = 1 << 26;
  p.window_left = 1 << 30, p.window_right = 1 << 30;
  KernelPlan plan;
  const TileRange all = tile_range(plan, make_work(p, num_q_tiles(plan, p) - 1));
  EXPECT_EQ(all.begin, 0);
  EXPECT_EQ(all.full_end, (1 << 26) / plan.tile_n);
  p.window_left = (1 << 26) - 1, p.window_right = (1 << 26) - 1;
  const TileRange most = tile_range(plan, make_work(p, 0));
  EXPECT_EQ(most.end, (1 << 26) / plan.tile_n);
}

}  // namespace
}  // namespace attest
