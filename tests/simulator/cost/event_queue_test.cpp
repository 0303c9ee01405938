#include "event_queue.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "attest/problem/splitmix64.h"

namespace attest {
namespace {

// Against an ordered set of (time, slot), over numbers of slots on both sides of powers of two.
TEST(EventQueue, GivesTheEarliestAndOfEqualTimesTheLowerSlot) {
  std::uint64_t state = 5;
  for (const int slots : {1, 2, 3, 7, 8, 9, 264}) {
    EventQueue queue(static_cast<std::size_t>(slots));
    EXPECT_TRUE(queue.empty());
    std::set<std::pair<double, int>> expected;
    for (int slot = 0; slot < slots; ++slot) queue.set(slot, 0), expected.emplace(0.0, slot);
    for (int event = 0; event < 40 * slots && !expected.empty(); ++event) {
      ASSERT_FALSE(queue.empty());
      const auto [time, slot] = *expected.begin();
      ASSERT_EQ(queue.next(), slot);
      ASSERT_EQ(queue.time(slot), time);
      expected.erase(expected.begin());
      const std::uint64_t random = mix(++state);
      if (random % 50 == 0) {
        queue.remove(slot);
        continue;
      }
      const double later = time + static_cast<double>(random % 8);  // so that many are equal
      queue.set(slot, later);
      expected.emplace(later, slot);
    }
    while (!expected.empty()) {
      ASSERT_EQ(queue.next(), expected.begin()->second);
      queue.remove(expected.begin()->second);
      expected.erase(expected.begin());
    }
    EXPECT_TRUE(queue.empty());
  }
}

}  // namespace
}  // namespace attest
