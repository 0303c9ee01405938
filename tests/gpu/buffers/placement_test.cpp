#include "attest/gpu/placement.h"

#include <gtest/gtest.h>

#include <set>

namespace attest {
namespace {

// Every element has a place of its own below the span, and the innermost dimension is contiguous.
void expect_places_are_distinct(const Placement& p) {
  std::set<std::int64_t> places;
  for (std::int64_t a = 0; a < p.extents[0]; ++a)
    for (std::int64_t s = 0; s < p.extents[1]; ++s)
      for (std::int64_t h = 0; h < p.extents[2]; ++h)
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
  EXPECT_EQ(place_dense({2, 3, 0, 1}).span, 0);
}

}  // namespace
}  // namespace attest
