#include "attest/plan/num_splits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "attest/plan/catalog.h"
#include "measured_splits.h"

namespace attest {
namespace {

Problem decoding(std::int64_t batch, std::int64_t seqlen_k) {
  Problem p;
  p.batch = batch, p.nheads = 64, p.nheads_k = 8, p.seqlen_q = 1, p.seqlen_k = seqlen_k, p.headdim = p.headdim_v = 128;
  p.dtype = Dtype::bf16;
  return p;
}

KernelPlan packed_plan(const Problem& p) {
  KernelPlan plan = sm80_plan(sm80_tile(p));
  plan.packed_heads = sm80_packed_heads(p);
  return plan;
}

// CTAs count by the key tiles that their own lengths and masks leave them.
TEST(NumSplits, CountsTheKeyTilesThatAreVisited) {
  const auto grid = [](const Problem& p) { return split_problem(packed_plan(p), p, 132, 3); };
  Problem p = decoding(4, 65536);
  EXPECT_EQ(grid(p).ctas, 32);
  EXPECT_EQ(grid(p).key_tiles, 1024);
  p.seqused_k = {65536, 64, 64, 0};  // one entry has all the work: 8 heads x (1024 + 1 + 1) tiles
  EXPECT_EQ(grid(p).ctas, 9);
  EXPECT_EQ(grid(p).key_tiles, 1024);
  EXPECT_EQ(choose_num_splits(packed_plan(p), p, 132, 3), choose_num_splits({9, 1024, 132, 3}));
  p.seqused_k = {64, 64, 64, 64};  // a tile each: nothing to split
  EXPECT_EQ(grid(p).key_tiles, 1);
  EXPECT_EQ(choose_num_splits(packed_plan(p), p, 132, 3), 1);
  p = decoding(4, 65536);
  p.window_left = 100;  // keys 65435 to 65535, from tile 1022
  EXPECT_EQ(grid(p).key_tiles, 2);
  p = decoding(1, 0);
  p.seqlen_k = 8192, p.varlen_k = {8192};
  EXPECT_EQ(grid(p).key_tiles, 128);
  p = decoding(1, 1024), p.seqlen_q = 1024, p.causal = Causal::bottom_right;
  EXPECT_EQ(grid(p).key_tiles, 16);  // 8 query tiles of 2, 4, ... 16 tiles, 64 heads
  EXPECT_EQ(grid(p).ctas, 64 * 72 / 16);
  p.seqused_k = {0};
  EXPECT_EQ(grid(p).ctas, 0);
}

// How much slower than the fastest number of splits the chosen one is, of those that were measured: the worst shape.
double worst_loss(const SplitCosts& costs) {
  double worst = 1;
  for (const test::MeasuredSplits& row : test::measured_on_h200) {
    Problem p = decoding(row.batch, row.seqlen_k);
    p.seqlen_q = row.seqlen_q, p.causal = Causal::bottom_right;
    const KernelPlan plan = packed_plan(p);
    const SplitProblem s = split_problem(plan, p, 132, plan.num_warps == 1 ? 3 : 2);
    std::size_t chosen = 0;
    if (choose_num_splits(s, costs) > 1)
      for (std::size_t i = 1; i < std::size(row.ms); ++i)
        if (split_time(s, test::measured_splits[i], costs) < split_time(s, test::measured_splits[chosen], costs))
          chosen = i;
    worst = std::max(worst, row.ms[chosen] / *std::min_element(std::begin(row.ms), std::end(row.ms)));
  }
  return worst;
}

// Where the constants come from: they choose what is within noise of the fastest on all nine shapes. So does every pair
// nearby; without one of the two the choice is bad.
TEST(NumSplits, ChoosesWithinNoiseOfTheFastestMeasured) {
  EXPECT_LT(worst_loss({}), 1.02);
  for (const double alone : {1.2, 1.25, 1.3})
    for (const double per_cta : {4.0, 5.0, 6.0, 8.0}) EXPECT_LT(worst_loss({alone, per_cta}), 1.02) << alone << per_cta;
  EXPECT_GT(worst_loss({1.0, SplitCosts{}.per_cta}), 1.1);
  EXPECT_GT(worst_loss({SplitCosts{}.alone, 0}), 2);
}

TEST(NumSplits, AGridThatFillsTheDeviceIsNotSplit) {
  EXPECT_EQ(choose_num_splits({212, 1024, 132, 2}), 1);
  EXPECT_GT(choose_num_splits({100, 1024, 132, 2}), 1);
  EXPECT_EQ(choose_num_splits({0, 1024, 132, 2}), 1);
  EXPECT_EQ(choose_num_splits({1, 0, 132, 2}), 1);
}

TEST(NumSplits, IsTheOneOfLeastTimeAndLeavesNoSplitWithoutATile) {
  for (const std::int64_t ctas : {1, 7, 32, 132, 140})
    for (const std::int64_t tiles : {1, 2, 3, 17, 100, 1024}) {
      const SplitProblem s{ctas, tiles, 132, 2};
      const std::int64_t chosen = choose_num_splits(s), share = (tiles + chosen - 1) / chosen;
      EXPECT_TRUE(chosen == 1 || share * (chosen - 1) < tiles) << ctas << " CTAs, " << tiles << " tiles";
      for (std::int64_t other = 1; other <= std::min<std::int64_t>(tiles, 256); ++other)
        EXPECT_LE(split_time(s, chosen), split_time(s, other)) << ctas << " CTAs, " << tiles << " tiles, " << other;
    }
}

}  // namespace
}  // namespace attest
