#include "attest/plan/num_splits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <limits>
#include <map>
#include <string>

#include "attest/plan/catalog.h"

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
  EXPECT_EQ(grid(p).longest_ctas, 32);
  EXPECT_EQ(grid(p).key_tiles, 1024);
  p.seqused_k = {65536, 64, 64, 0};  // one entry has all the work: 8 heads x (1024 + 1 + 1) tiles
  EXPECT_EQ(grid(p).longest_ctas, 9);
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
  EXPECT_EQ(grid(p).longest_ctas, 64 * 72 / 16);
  p.seqused_k = {0};
  EXPECT_EQ(grid(p).longest_ctas, 0);
}

// Milliseconds on an H200 by batch, queries and keys, and by the number of splits: 64 heads on 8, headdim 128, bf16,
// causal, L2 overwritten before each run, combine included (docs/results/h200-sm80/splits.txt, with its command).
using MeasuredSplits = std::map<std::array<std::int64_t, 3>, std::map<int, double>>;

MeasuredSplits measured_on_h200() {
  MeasuredSplits measured;
  std::ifstream file(ATTEST_SPLITS);
  for (std::string line; std::getline(file, line);) {
    long batch = 0, seqlen_q = 0, seqlen_k = 0;
    int splits = 0;
    double ms = 0;
    if (std::sscanf(line.c_str(), "decode %ld x %ld on %ld, d128, splits %d : %lf", &batch, &seqlen_q, &seqlen_k,
                    &splits, &ms) == 5)
      measured[{batch, seqlen_q, seqlen_k}][splits] = ms;
  }
  return measured;
}

// How much slower than the fastest number of splits the chosen one is, of those that were measured: the worst shape.
double worst_loss(const MeasuredSplits& measured, const SplitCosts& costs) {
  double worst = 1;
  for (const auto& [shape, by_splits] : measured) {
    Problem p = decoding(shape[0], shape[2]);
    p.seqlen_q = shape[1], p.causal = Causal::bottom_right;
    const KernelPlan plan = packed_plan(p);
    const SplitProblem s = split_problem(plan, p, 132, plan.num_warps == 1 ? 3 : 2);
    double least_time = std::numeric_limits<double>::infinity(), chosen = 0, fastest = least_time;
    for (const auto& [splits, ms] : by_splits) {
      if (split_time(s, splits, costs) < least_time) least_time = split_time(s, splits, costs), chosen = ms;
      fastest = std::min(fastest, ms);
    }
    worst = std::max(worst, chosen / fastest);
  }
  return worst;
}

// Where the constants come from: they choose what is within noise of the fastest on all nine shapes. So does every pair
// nearby; without one of the two the choice is bad.
TEST(NumSplits, ChoosesWithinNoiseOfTheFastestMeasured) {
  const MeasuredSplits measured = measured_on_h200();
  ASSERT_EQ(measured.size(), 9u);
  for (const auto& [shape, by_splits] : measured) ASSERT_EQ(by_splits.size(), 11u) << shape[0] << " x " << shape[1];
  EXPECT_LT(worst_loss(measured, {}), 1.02);
  for (const double alone : {1.2, 1.25, 1.3})
    for (const double per_cta : {4.0, 5.0, 6.0, 8.0})
      EXPECT_LT(worst_loss(measured, {alone, per_cta}), 1.02) << alone << per_cta;
  EXPECT_GT(worst_loss(measured, {1.0, SplitCosts{}.per_cta}), 1.1);
  EXPECT_GT(worst_loss(measured, {SplitCosts{}.alone, 0}), 2);
}

TEST(NumSplits, AGridThatFillsTheDeviceIsNotSplit) {
  EXPECT_EQ(choose_num_splits({264, 1024, 132, 2}), 1);
  EXPECT_EQ(choose_num_splits({300, 1024, 132, 2}), 1);  // though its second wave has 36 CTAs
  EXPECT_GT(choose_num_splits({212, 1024, 132, 2}), 1);
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
