#include "attest/plan/num_splits.h"

#include <gtest/gtest.h>

#include "attest/plan/catalog.h"

namespace attest {
namespace {

TEST(NumSplits, ADecodeTakesWhatWasFastestOnAnH200) {
  Case c;
  Problem& p = c.problem;
  p.batch = 4, p.nheads = 64, p.nheads_k = 8, p.seqlen_q = 1, p.seqlen_k = 65536, p.headdim = p.headdim_v = 128;
  EXPECT_EQ(choose_num_splits(attest_plan(c, 232448), p, 132, 3), 8);
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
