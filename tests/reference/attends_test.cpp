#include "attest/reference/attends.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "attest/reference/key_range.h"

namespace attest {
namespace {

Problem masked(std::int64_t seqlen_q, std::int64_t seqlen_k, Causal causal, std::int64_t left = -1,
               std::int64_t right = -1) {
  Problem p;
  p.seqlen_q = seqlen_q;
  p.seqlen_k = seqlen_k;
  p.causal = causal;
  p.window_left = left;
  p.window_right = right;
  return p;
}

// One line a query, 'x' where it sees the key.
std::vector<std::string> picture(const Problem& p) {
  std::vector<std::string> lines;
  for (std::int64_t i = 0; i < p.seqlen_q; ++i) {
    lines.emplace_back();
    for (std::int64_t j = 0; j < p.seqlen_k; ++j) lines.back() += attends(p, 0, i, j) ? 'x' : '.';
  }
  return lines;
}

using Picture = std::vector<std::string>;

TEST(AttendsTest, DrawnMasks) {
  EXPECT_EQ(picture(masked(2, 3, Causal::none)), (Picture{"xxx", "xxx"}));
  EXPECT_EQ(picture(masked(2, 4, Causal::bottom_right)), (Picture{"xxx.", "xxxx"}));
  EXPECT_EQ(picture(masked(2, 4, Causal::top_left)), (Picture{"x...", "xx.."}));
  EXPECT_EQ(picture(masked(4, 2, Causal::bottom_right)), (Picture{"..", "..", "x.", "xx"}));
  EXPECT_EQ(picture(masked(4, 2, Causal::top_left)), (Picture{"x.", "xx", "xx", "xx"}));
  EXPECT_EQ(picture(masked(3, 5, Causal::none, 1, 0)), (Picture{".xx..", "..xx.", "...xx"}));
  EXPECT_EQ(picture(masked(3, 5, Causal::none, 0, -1)), (Picture{"..xxx", "...xx", "....x"}));
  EXPECT_EQ(picture(masked(3, 5, Causal::none, -1, 1)), (Picture{"xxxx.", "xxxxx", "xxxxx"}));
  EXPECT_EQ(picture(masked(3, 5, Causal::top_left, 1, -1)), (Picture{"x....", "xx...", ".xx.."}));
  EXPECT_EQ(picture(masked(3, 3, Causal::bottom_right, -1, 2)), (Picture{"x..", "xx.", "xxx"}));
  EXPECT_EQ(picture(masked(2, 0, Causal::none)), (Picture{"", ""}));
}

TEST(AttendsTest, NoKeyPastTheEnd) { EXPECT_FALSE(attends(masked(2, 3, Causal::none), 0, 0, 3)); }

// The shortcut against the definition, on every shape and window up to past the matrix.
TEST(KeyRangeTest, EqualsAttendsOnEverySmallShape) {
  for (std::int64_t sq = 0; sq <= 7; ++sq)
    for (std::int64_t sk = 0; sk <= 7; ++sk)
      for (const Causal causal : {Causal::none, Causal::bottom_right, Causal::top_left})
        for (std::int64_t left = -1; left <= 8; ++left)
          for (std::int64_t right = -1; right <= 8; ++right) {
            const Problem p = masked(sq, sk, causal, left, right);
            std::vector<bool> any(static_cast<std::size_t>(sk));
            for (std::int64_t i = 0; i < sq; ++i) {
              const KeyRange range = key_range(p, 0, i);
              for (std::int64_t j = 0; j < sk; ++j) {
                const bool seen = attends(p, 0, i, j);
                ASSERT_EQ(seen, range.begin <= j && j < range.end)
                    << "i " << i << " j " << j << " of " << sq << " x " << sk << " window " << left << "," << right
                    << " " << to_string(causal);
                if (seen) any[j] = true;
              }
              if (range.size() == 0) {
                ASSERT_EQ(range, KeyRange{});
              }
            }
            const KeyRange all = key_range_of_rows(p, 0, 0, sq);
            for (std::int64_t j = 0; j < sk; ++j) ASSERT_TRUE(!any[j] || (all.begin <= j && j < all.end));
            ASSERT_TRUE(all.size() == 0 || (any[all.begin] && any[all.end - 1]));
          }
}

}  // namespace
}  // namespace attest
