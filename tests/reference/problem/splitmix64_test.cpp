#include "attest/problem/splitmix64.h"

#include <gtest/gtest.h>

namespace attest {
namespace {

// The first numbers of the published generator from state 0.
TEST(SplitMix64Test, PublishedNumbers) {
  std::uint64_t state = 0;
  EXPECT_EQ(next_splitmix64(state), 0xe220a8397b1dcdafu);
  EXPECT_EQ(next_splitmix64(state), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(next_splitmix64(state), 0x06c45d188009454fu);
  EXPECT_EQ(state, 3 * splitmix64_step);
}

TEST(SplitMix64Test, HashesAreItsNumbers) {
  std::uint64_t state = 12345;
  const std::uint64_t before = state;
  EXPECT_EQ(mix(before), next_splitmix64(state));
  EXPECT_EQ(scramble(state), mix(before));
  EXPECT_EQ(scramble(0), 0u);
}

}  // namespace
}  // namespace attest
