// By hand, and against all arrangements written out.
#include "attest/nightly/rank_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace attest {
namespace {

TEST(RankTest, TheMedianOfAnEvenNumberLiesBetween) {
  EXPECT_EQ(median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(median(std::vector<double>{4, 1, 2, 3}), 2.5);
}

TEST(RankTest, WhollyLargerIsOneArrangementOfAll) {
  EXPECT_DOUBLE_EQ(larger_by_chance(std::vector<double>{4, 5, 6}, std::vector<double>{1, 2, 3}), 1.0 / 20);  // C(6, 3)
  EXPECT_DOUBLE_EQ(larger_by_chance(std::vector<double>{1, 2, 3}, std::vector<double>{4, 5, 6}), 1);
  std::vector<double> nine, others;
  for (int i = 0; i < 9; ++i) nine.push_back(100 + i), others.push_back(i);
  EXPECT_DOUBLE_EQ(larger_by_chance(nine, others), 1.0 / 48620);  // C(18, 9)
}

// Mann and Whitney's own table for n = m = 3: P(U <= 1) = 0.10, P(U <= 2) = 0.20.
TEST(RankTest, AgreesWithTheTable) {
  EXPECT_DOUBLE_EQ(larger_by_chance(std::vector<double>{3, 5, 6}, std::vector<double>{1, 2, 4}), 0.10);
  EXPECT_DOUBLE_EQ(larger_by_chance(std::vector<double>{3, 4, 6}, std::vector<double>{1, 2, 5}), 0.20);
}

TEST(RankTest, TiesShareTheirRank) {
  // Ranks 1, 2.5, 2.5, 4: {2.5, 4} sums to 6.5, reached by two of the six pairs.
  EXPECT_DOUBLE_EQ(larger_by_chance(std::vector<double>{2, 3}, std::vector<double>{1, 2}), 2.0 / 6);
  EXPECT_DOUBLE_EQ(larger_by_chance(std::vector<double>{7, 7}, std::vector<double>{7, 7, 7}), 1);
  EXPECT_DOUBLE_EQ(larger_by_chance({}, std::vector<double>{1}), 1);
}

// Counted one by one: U as the number of pairs won, over every choice of which values are `larger`.
TEST(RankTest, AgreesWithEveryArrangement) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    const std::size_t n = 1 + random() % 4, m = 1 + random() % 5;
    std::vector<double> all;
    for (std::size_t i = 0; i < n + m; ++i) all.push_back(static_cast<double>(random() % 6));
    const auto pairs_won = [&](const std::vector<bool>& mine) {
      double won = 0;
      for (std::size_t i = 0; i < all.size(); ++i)
        for (std::size_t j = 0; j < all.size(); ++j)
          if (mine[i] && !mine[j]) won += all[i] > all[j] ? 1 : (all[i] == all[j] ? 0.5 : 0);
      return won;
    };
    std::vector<bool> mine(n + m, false);
    std::fill(mine.begin() + static_cast<std::ptrdiff_t>(m), mine.end(), true);  // the first in order
    const double seen = pairs_won(mine);
    int reached = 0, arrangements = 0;
    do {
      ++arrangements;
      reached += pairs_won(mine) >= seen;
    } while (std::next_permutation(mine.begin(), mine.end()));
    const std::vector<double> others(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(m)),
        larger(all.begin() + static_cast<std::ptrdiff_t>(m), all.end());
    EXPECT_NEAR(larger_by_chance(larger, others), static_cast<double>(reached) / arrangements, 1e-12);
  }
}

}  // namespace
}  // namespace attest
