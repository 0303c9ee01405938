#include "attest/reference/sum_errors.h"

#include <gtest/gtest.h>

#include <cmath>

namespace attest {
namespace {

TEST(SumErrorsTest, CompoundedOnBothSidesOfItsEdge) {
  EXPECT_EQ(compounded(0), 0);
  EXPECT_EQ(compounded(0.5), 1);
  const double below = std::nextafter(1.0, 0.0);
  EXPECT_EQ(compounded(below), below * 0x1p53);
  EXPECT_LT(compounded(below), hopeless);
  EXPECT_EQ(compounded(1), hopeless);
  EXPECT_EQ(compounded(1e300), hopeless);
  EXPECT_EQ(compounded(std::nan("")), hopeless);
  EXPECT_EQ(0 * compounded(1), 0);  // an element of 0 has no error, whatever the factor
}

// 18 steps of 2^-23 for 16 keys, and one of 2^-24 for a tile of 16: (18 * 2 + 1) n / 2^24 reaches 1 at n = 453438
// blocks.
TEST(SumErrorsTest, HopelessWhereTheFirstOrderReachesOne) {
  Numerics n;
  n.u_acc = 0x1p-23;
  n.smallest_tile = 16;
  const std::int64_t blocks = (1 << 24) / 37;
  const SumErrors last = sum_errors(n, 16 * blocks - 16), first = sum_errors(n, 16 * blocks + 16);
  EXPECT_GT(last.g_pv, 1e4);
  EXPECT_LT(last.g_pv, 1e9);
  EXPECT_EQ(first.g_pv, hopeless);
  EXPECT_LT(first.g_l, 1);  // four serial sums are not there yet
}

}  // namespace
}  // namespace attest
