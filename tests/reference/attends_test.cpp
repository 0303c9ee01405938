#include "attest/reference/attends.h"

#include <gtest/gtest.h>

#include <algorithm>
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
std::vector<std::string> picture(const Problem& p, std::int64_t b = 0) {
  std::vector<std::string> lines;
  for (std::int64_t i = 0; i < queries_of(p, b); ++i) {
    lines.emplace_back();
    for (std::int64_t j = 0; j < p.seqlen_k; ++j) lines.back() += attends(p, b, i, j) ? 'x' : '.';
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

TEST(AttendsTest, DrawnPrefixes) {
  Problem p = masked(3, 4, Causal::top_left);
  p.prefix = 2;
  EXPECT_EQ(picture(p), (Picture{"xx..", "xx..", "xxx."}));
  p = masked(3, 5, Causal::bottom_right, 1, 0);
  p.prefix = 1;
  EXPECT_EQ(picture(p), (Picture{"xxx..", "x.xx.", "x..xx"}));
  p.prefix = 9;  // more than there are
  EXPECT_EQ(picture(p), (Picture{"xxxxx", "xxxxx", "xxxxx"}));
}

TEST(AttendsTest, DrawnDocuments) {
  Problem p = masked(4, 5, Causal::none);
  p.documents = {2, 0, 1, 2};  // by position: 0-1, 2, 3-4
  EXPECT_EQ(picture(p), (Picture{"xx...", "xx...", "..x..", "...xx"}));
  p.causal = Causal::top_left;
  EXPECT_EQ(picture(p), (Picture{"x....", "xx...", "..x..", "...x."}));
  p.prefix = 4;  // reaches into a row's own document only
  EXPECT_EQ(picture(p), (Picture{"xx...", "xx...", "..x..", "...x."}));
  p.causal = Causal::bottom_right;  // one to the right
  p.prefix = 0;
  EXPECT_EQ(picture(p), (Picture{"xx...", "xx...", "..x..", "...xx"}));
}

TEST(AttendsTest, EachBatchEntryHasItsLengths) {
  Problem p = masked(3, 4, Causal::bottom_right);
  p.batch = 3;
  p.varlen_q = {3, 1, 2};
  p.varlen_k = {2, 4, 0};
  EXPECT_EQ(picture(p, 0), (Picture{"....", "x...", "xx.."}));
  EXPECT_EQ(picture(p, 1)[0], "xxxx");
  EXPECT_EQ(picture(p, 2)[1], "....");
  p.seqused_k = {1, 3, 0};
  EXPECT_EQ(picture(p, 0), (Picture{"....", "....", "x..."}));
  EXPECT_EQ(picture(p, 1)[0], "xxx.");
  EXPECT_EQ(diagonal_offset(p, 0), -2);
  EXPECT_EQ(queries_of(p, 1), 1);
  EXPECT_EQ(keys_of(p, 1), 3);
}

// key_ranges() and key_ranges_of_rows() against the definition.
void expect_ranges_equal_attends(const Problem& p, std::int64_t b) {
  std::vector<bool> any(static_cast<std::size_t>(p.seqlen_k));
  const std::int64_t sq = queries_of(p, b), sk = p.seqlen_k;
  const auto about = [&] {
    return "batch entry " + std::to_string(b) + " of " + std::to_string(sq) + " x " + std::to_string(sk) + " window " +
           std::to_string(p.window_left) + "," + std::to_string(p.window_right) + " prefix " +
           std::to_string(p.prefix) + " " + std::string(to_string(p.causal));
  };
  for (std::int64_t i = 0; i < sq; ++i) {
    const KeyRanges ranges = key_ranges(p, b, i);
    std::int64_t visible = 0;
    for (std::int64_t j = 0; j < sk; ++j) {
      const bool seen = attends(p, b, i, j);
      ASSERT_EQ(seen, ranges.contains(j)) << "i " << i << " j " << j << " of " << about();
      if (seen) any[j] = true;
      visible += seen;
    }
    ASSERT_EQ(ranges.size(), visible);
    ASSERT_EQ(ranges.empty(), visible == 0);
    std::int64_t last_end = -1;
    for (const KeyRange& part : ranges) {
      ASSERT_LT(part.begin, part.end) << about();
      ASSERT_LT(last_end, part.begin) << about();
      last_end = part.end;
    }
  }
  const KeyRanges all = key_ranges_of_rows(p, b, 0, sq);
  std::int64_t hole = 0, widest = 0;
  bool before = false;
  for (std::int64_t j = 0; j < sk; ++j) {
    ASSERT_TRUE(!any[j] || all.contains(j)) << about();
    hole = any[j] ? 0 : hole + 1;
    before = before || any[j];
    if (before && any[j] == false) {
      bool after = false;
      for (std::int64_t later = j; later < sk; ++later) after = after || any[later];
      if (after) widest = std::max(widest, hole);
    }
  }
  for (const KeyRange& part : all) ASSERT_TRUE(any[part.begin] && any[part.end - 1]) << about();
  const KeyRange* const parts = all.begin();
  ASSERT_EQ(all.end() - parts == 2 ? parts[1].begin - parts[0].end : 0, widest) << about();
}

TEST(KeyRangesTest, EqualAttendsOnEverySmallShape) {
  for (std::int64_t sq = 0; sq <= 7; ++sq)
    for (std::int64_t sk = 0; sk <= 7; ++sk)
      for (const Causal causal : {Causal::none, Causal::bottom_right, Causal::top_left})
        for (std::int64_t left = -1; left <= 8; ++left)
          for (std::int64_t right = -1; right <= 8; ++right)
            expect_ranges_equal_attends(masked(sq, sk, causal, left, right), 0);
}

// Documents cut every way a small shape allows, prefixes up to past the end, and lengths of each batch entry.
TEST(KeyRangesTest, EqualAttendsOnEverySmallPrefixDocumentAndLength) {
  for (std::int64_t sq = 1; sq <= 5; ++sq)
    for (std::int64_t sk = 1; sk <= 6; ++sk)
      for (std::int64_t cuts = 0; cuts < (1 << (std::max(sq, sk) - 1)); ++cuts)
        for (const Causal causal : {Causal::none, Causal::bottom_right, Causal::top_left})
          for (const auto& [left, right] : {std::pair{-1, -1}, {0, 0}, {1, -1}, {-1, 1}, {2, 1}})
            for (std::int64_t prefix = 0; prefix <= sk + 1; ++prefix) {
              Problem p = masked(sq, sk, causal, left, right);
              p.prefix = prefix;
              if (cuts > 0) {
                p.documents = {1};
                for (std::int64_t x = 1; x < std::max(sq, sk); ++x) {
                  if (cuts >> (x - 1) & 1) p.documents.push_back(0);
                  ++p.documents.back();
                }
              }
              p.batch = 3;
              p.varlen_q = {sq, sq / 2, sq};
              p.varlen_k = {sk, sk, sk - 1};
              p.seqused_k = {sk, sk / 2, std::max<std::int64_t>(0, sk - 3)};
              validate(p);
              for (std::int64_t b = 0; b < 3; ++b) expect_ranges_equal_attends(p, b);
            }
}

}  // namespace
}  // namespace attest
