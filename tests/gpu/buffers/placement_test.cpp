#include "attest/gpu/placement.h"

#include <gtest/gtest.h>

#include <set>

namespace attest {
namespace {

// Every element has a place of its own below the span, and the innermost dimension is contiguous.
void expect_places_are_distinct(const Placement& p) {
  std::set<std::int64_t> places;
  for (std::int64_t a = 0; a < p.extents[0]; ++a)
    for (std::int64_t s = 0; s < p.rows(a); ++s)
      for (std::int64_t h = 0; h < p.heads(); ++h)
        for (std::int64_t d = 0; d < p.extents[3]; ++d) {
          const std::int64_t place = p.offset(a, s, h) + d;
          EXPECT_GE(place, 0);
          EXPECT_LT(place, p.span);
          EXPECT_TRUE(places.insert(place).second) << a << ' ' << s << ' ' << h << ' ' << d;
        }
}

TEST(Placement, EveryElementHasItsOwnPlace) {
  for (const auto order : {Layout::Order::bshd, Layout::Order::bhsd})
    for (const std::int64_t row_gap : {0, 3})
      for (const std::int64_t seq_gap : {0, 2})
        expect_places_are_distinct(place({2, 3, 4, 5}, {order, row_gap, seq_gap, 7}));
}

TEST(Placement, BshdPutsHeadsSideBySideAndGapsWhereTheyAreAsked) {
  const Placement p = place({2, 3, 4, 5}, {Layout::Order::bshd, 1, 2, 0});
  EXPECT_EQ(p.head_stride, 6);
  EXPECT_EQ(p.row_stride, 24);
  EXPECT_EQ(p.batch_stride, 24 * (3 + 2));
  EXPECT_EQ(p.span, 2 * 24 * 5);
}

TEST(Placement, BhsdPutsTheRowsOfAHeadTogether) {
  const Placement p = place({2, 3, 4, 5}, {Layout::Order::bhsd, 1, 2, 0});
  EXPECT_EQ(p.row_stride, 6);
  EXPECT_EQ(p.head_stride, 6 * (3 + 2));
  EXPECT_EQ(p.batch_stride, 4 * 30);
}

TEST(Placement, NothingTakesNoPlace) {
  EXPECT_EQ(place({2, 0, 4, 5}, {}).span, 0);
  Case c;
  c.problem.seqlen_q = 0;
  EXPECT_EQ(place_lse(c).span, 0);
}

// Two heads, three batch entries of 3, 0 and 4 queries and 5 keys, two of which the last entry lacks.
Case ragged_case() {
  Case c;
  c.problem.batch = 3;
  c.problem.nheads = c.problem.nheads_k = 2;
  c.problem.seqlen_q = 4;
  c.problem.seqlen_k = 5;
  c.problem.varlen_q = {3, 0, 4};
  c.problem.seqused_k = {5, 0, 3};
  return c;
}

TEST(Placement, PackedEntriesFollowEachOther) {
  Case c = ragged_case();
  c.layout = {Layout::Order::bhsd, 1, 2, 0};
  const Placement q = place_queries(c, 8);
  EXPECT_EQ(q.head_stride, 9 * (7 + 2));
  EXPECT_EQ(q.span, 2 * 9 * (7 + 2));
  EXPECT_EQ(q.offset(2, 1, 1), q.head_stride + (3 + 1) * 9);
  EXPECT_EQ(q.index(2, 1, 1), ((2 * 4 + 1) * 2 + 1) * 8);
  expect_places_are_distinct(q);
  const Placement lse = place_lse(c);
  EXPECT_EQ(lse.span, 14) << "dense whatever the layout";
  EXPECT_EQ(lse.offset(2, 1, 1), 7 + 3 + 1);
  EXPECT_EQ(lse.index(2, 1, 1), (2 * 2 + 1) * 4 + 1);
}

TEST(Placement, PagesHoldTheKeysOfTheirEntryAndNothingElse) {
  for (const std::int64_t page_size : {1, 2, 4, 7})
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      Case c = ragged_case();
      c.seed = seed;
      c.layout.page_size = page_size;
      c.layout.seq_gap = 1;
      expect_places_are_distinct(place_keys(c, 4));
      const PageTable table = page_table_of(c);
      std::set<std::int64_t> used, fillers;
      for (std::int64_t b = 0; b < 3; ++b) {
        const auto& row = table.rows[static_cast<std::size_t>(b)];
        ASSERT_EQ(std::ssize(row), table.pages_per_sequence);
        const std::int64_t keys = c.problem.seqused_k[static_cast<std::size_t>(b)];
        for (std::int64_t i = 0; i < std::ssize(row); ++i) {
          ASSERT_LT(row[static_cast<std::size_t>(i)], table.num_pages);
          (i * page_size < keys ? used : fillers).insert(row[static_cast<std::size_t>(i)]);
        }
      }
      EXPECT_EQ(std::ssize(used), (5 + page_size - 1) / page_size + (3 + page_size - 1) / page_size);
      for (const std::int64_t page : fillers) EXPECT_FALSE(used.contains(page));
    }
}

TEST(Placement, AnExplicitPageTableIsTaken) {
  Case c = ragged_case();
  c.layout.page_size = 3;
  c.layout.page_table = {{4, 1}, {}, {0}};
  const Placement k = place_keys(c, 8);
  EXPECT_EQ(k.offset(0, 4, 1), 1 * k.batch_stride + 1 * k.row_stride + k.head_stride);
  EXPECT_EQ(k.offset(2, 2, 0), 2 * k.row_stride);
  EXPECT_EQ(page_table_of(c).num_pages, 5);
}

}  // namespace
}  // namespace attest
