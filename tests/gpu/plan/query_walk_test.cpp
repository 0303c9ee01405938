// The query tiles that a key tile walks, against the definition of the mask, one element at a time.
#include "attest/plan/query_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "attest/plan/launch.h"
#include "attest/reference/attends.h"

namespace attest {
namespace {

struct Seen {
  int some = 0, all = 0;  // visible pairs of a query tile and a key tile, and pairs in all
};

Seen count(const Problem& p, const BackwardPlan& plan, int q_tile, int k_tile) {
  Seen seen;
  for (std::int64_t i = std::int64_t{q_tile} * plan.tile_m; i < (q_tile + 1) * plan.tile_m && i < p.seqlen_q; ++i)
    for (std::int64_t j = std::int64_t{k_tile} * plan.tile_n; j < (k_tile + 1) * plan.tile_n; ++j, ++seen.all)
      seen.some += attends(p, 0, i, j);
  return seen;
}

// Every query tile that sees a key of the tile, once for each head, in ascending order. None that sees none, but where
// a query tile holds a document's end: then it is judged by the interval from its first query's keys to its last one's.
void check(const Problem& p, const BackwardPlan& plan, const BackwardWork& work, std::int64_t& visited,
           std::int64_t& in_vain, std::int64_t& full) {
  const int q_tiles = (work.seqlen_q + plan.tile_m - 1) / plan.tile_m;
  QueryWalk<BackwardPlan> walk(plan, work);
  std::vector<int> first_head;
  for (int head = 0; head < work.num_heads; ++head) {
    std::vector<int> tiles;
    for (; !walk.done() && walk.head() == head; walk.advance()) {
      const int tile = walk.tile();
      ASSERT_TRUE(tile >= 0 && tile < q_tiles && (tiles.empty() || tile > tiles.back())) << "tile " << tile;
      ASSERT_EQ(walk.starts_head(), tiles.empty());
      tiles.push_back(tile);
      ASSERT_EQ(walk.first_tile(), tiles.front());
      const Seen seen = count(p, plan, tile, work.k_tile);
      ASSERT_NE(walk.seen_as(), TileClass::skip);
      if (p.documents.empty()) {
        ASSERT_GT(seen.some, 0) << "tile " << tile << " is visited in vain";
      }
      if (walk.seen_as() == TileClass::full) {
        ASSERT_EQ(seen.some, seen.all) << "tile " << tile << " needs a mask";
      }
      ++visited, in_vain += seen.some == 0, full += walk.seen_as() == TileClass::full;
    }
    auto next = tiles.begin();
    for (int tile = 0; tile < q_tiles; ++tile)
      if (next != tiles.end() && *next == tile)
        ++next;
      else
        ASSERT_EQ(count(p, plan, tile, work.k_tile).some, 0) << "tile " << tile << " is left out";
    if (head == 0)
      first_head = tiles;
    else
      ASSERT_EQ(tiles, first_head) << "head " << head;
  }
  ASSERT_TRUE(walk.done());
}

TEST(QueryWalk, VisitsWhatSeesAKeyOfTheTileOnce) {
  BackwardPlan plan;
  std::int64_t visited = 0, in_vain = 0, full = 0;
  Problem p;
  for (const auto& [tile_m, tile_n] : {std::pair{2, 3}, {4, 2}, {3, 4}})
    for (const std::int64_t sq : {0, 1, 3, 8, 13})
      for (const std::int64_t sk : {1, 2, 7, 12})
        for (const Causal causal : {Causal::none, Causal::bottom_right, Causal::top_left})
          for (const std::int64_t left : {-1, 0, 2, 9})
            for (const std::int64_t right : {-1, 0, 3})
              for (const std::int64_t prefix : {0, 1, 5, 40})
                for (const std::vector<std::int64_t>& cuts :
                     {std::vector<std::int64_t>{}, {1}, {3, 0, 2}, {0, 4}, {2, 1, 1, 2}}) {
                  plan.tile_m = tile_m, plan.tile_n = tile_n, plan.num_warps = 1;
                  p.seqlen_q = sq, p.seqlen_k = sk, p.causal = causal, p.window_left = left, p.window_right = right;
                  p.prefix = prefix;
                  p.documents = cuts;
                  std::int64_t rest = std::max(sq, sk);
                  for (const std::int64_t cut : cuts) rest -= cut;
                  if (rest < 0) continue;
                  if (!cuts.empty()) p.documents.push_back(rest);
                  const LengthArrays arrays(p);
                  const Launch launch = make_launch(p, arrays.document_ends);
                  BackwardWork work{make_work(launch, {}, 0, 0, 0)};
                  for (work.num_heads = 1; work.num_heads <= 3; work.num_heads += 2)
                    for (work.k_tile = 0; work.k_tile * tile_n < sk; ++work.k_tile) {
                      SCOPED_TRACE(testing::Message() << to_string(causal) << " window " << left << "," << right << " "
                                                      << sq << "x" << sk << " prefix " << prefix << " documents "
                                                      << cuts.size() << " key tile " << work.k_tile);
                      check(p, plan, work, visited, in_vain, full);
                      if (HasFatalFailure()) return;
                    }
                }
  EXPECT_GT(visited, 100'000);
  EXPECT_GT(full, 10'000);
  EXPECT_LT(in_vain, visited / 50);
}

}  // namespace
}  // namespace attest
