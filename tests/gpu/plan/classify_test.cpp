// classify() and its closed form against the mask, one element at a time.
#include <gtest/gtest.h>

#include <map>
#include <numeric>

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

// A walk visits every tile that some query sees, once, masks every tile that some query does not see all of, and
// splits share it.
void check_walk(const KernelPlan& plan, const Work& work, std::int64_t& full_tiles) {
  const TileRange range = tile_range(plan, work);
  const int first = work.q_tile * plan.tile_m, last = std::min(first + plan.tile_m, work.seqlen_q);
  std::map<int, bool> masked;  // by tile
  for (int split = 0; split < plan.num_splits; ++split) {
    const KeyWalk walk = key_walk(range, plan.key_order, split, plan.num_splits);
    int i = walk.first, previous = -1;
    for (int run = 0; run < 6; ++run)
      for (; i < walk.run_end(run); ++i) {
        const int tile = walk.tile(i);
        ASSERT_TRUE(masked.emplace(tile, run % 3 != 1).second) << "tile " << tile << " is visited twice";
        const bool ascending = plan.key_order == KeyOrder::ascending;
        ASSERT_TRUE(previous < 0 || (tile > previous) == ascending) << "out of order";
        previous = tile;
      }
    ASSERT_EQ(i, std::max(walk.first, walk.last)) << "a position lies in no run";
  }
  for (int tile = 0; tile * plan.tile_n < work.seqlen_k + plan.tile_n; ++tile) {
    int seen = 0, all = 0;
    for (int row = first; row < last; ++row) {
      const RowMask<KernelPlan> mask(plan, work, row);
      for (int key = tile * plan.tile_n; key < (tile + 1) * plan.tile_n; ++key, ++all) seen += mask.sees(key);
    }
    const auto visit = masked.find(tile);
    ASSERT_TRUE(visit != masked.end() || seen == 0) << "tile " << tile << " is left out";
    ASSERT_EQ(visit == masked.end(), classify(plan, work, tile) == TileClass::skip) << "tile " << tile;
    if (visit == masked.end() || visit->second) continue;
    ASSERT_EQ(seen, all) << "tile " << tile << " is not masked";
    ASSERT_EQ(classify(plan, work, tile), TileClass::full) << "tile " << tile;
    ++full_tiles;
  }
}

TEST(Classify, WalksPrefixDocumentsAndSplitsOnce) {
  KernelPlan plan;
  plan.tile_m = 16, plan.tile_n = 16, plan.num_warps = 1;
  Problem p;
  std::int64_t full_tiles = 0;
  for (const Causal causal : {Causal::none, Causal::bottom_right, Causal::top_left})
    for (const std::int64_t left : {-1, 0, 17, 40})
      for (const std::int64_t right : {-1, 3, 16})
        for (const std::int64_t prefix : {0, 1, 16, 50, 500})
          for (const auto& [sq, sk] : {std::pair<std::int64_t, std::int64_t>{50, 130}, {130, 50}, {1, 33}, {96, 96}})
            for (const std::vector<std::int64_t>& cuts :
                 {std::vector<std::int64_t>{}, {1, 0, 15}, {16, 32}, {40, 0, 0, 3}, {0, 33}}) {
              p.causal = causal, p.window_left = left, p.window_right = right, p.seqlen_q = sq, p.seqlen_k = sk;
              p.prefix = prefix;
              p.documents = cuts;
              const std::int64_t cut = std::accumulate(cuts.begin(), cuts.end(), std::int64_t{0});
              if (!cuts.empty() && cut <= std::max(sq, sk)) p.documents.push_back(std::max(sq, sk) - cut);
              if (cut > std::max(sq, sk)) continue;
              SCOPED_TRACE(testing::Message() << to_string(causal) << " window " << left << "," << right << " " << sq
                                              << "x" << sk << " prefix " << prefix << " documents " << cuts.size());
              const LengthArrays arrays(p);
              const Launch launch = make_launch(p, arrays.document_ends);
              for (const KeyOrder order : {KeyOrder::descending, KeyOrder::ascending})
                for (plan.num_splits = 1; plan.num_splits <= 11; plan.num_splits += 5)
                  for (int tile = 0; tile < num_q_tiles(plan, p); ++tile) {
                    plan.key_order = order;
                    check_walk(plan, make_work(launch, {}, 0, tile, 0), full_tiles);
                    if (HasFatalFailure()) return;
                  }
            }
  EXPECT_GT(full_tiles, 20'000);
}

TEST(Launch, ReadsLengthsOfABatchEntry) {
  Problem p;
  p.batch = 3, p.seqlen_q = 20, p.seqlen_k = 30;
  p.varlen_q = {0, 20, 5}, p.varlen_k = {30, 0, 7}, p.seqused_k = {12, 0, 7};
  p.causal = Causal::bottom_right;
  const LengthArrays arrays(p);
  ForwardArgs args = arrays.args();
  const Launch launch = make_launch(p, arrays.document_ends);
  EXPECT_EQ(make_work(launch, args, 0, 0, 0).seqlen_q, 0);
  EXPECT_EQ(make_work(launch, args, 0, 0, 0).seqlen_k, 12);
  EXPECT_EQ(make_work(launch, args, 2, 0, 0).diagonal, 2);
  args.seqused_k = nullptr;
  EXPECT_EQ(make_work(launch, args, 0, 0, 0).seqlen_k, 30);
  EXPECT_EQ(make_work(launch, args, 1, 0, 0).diagonal, -20);
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
