#include "event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>
#include <vector>

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

/// A linear search of the earliest, of equal times the lowest slot.
std::size_t earliest(const std::vector<double>& times) {
  return static_cast<std::size_t>(std::ranges::min_element(times) - times.begin());
}

// Any slot at any time, set anew and removed, over times at the edges of what a double holds.
TEST(EventQueue, IsAsALinearSearchWhateverTheTimes) {
  using Limits = std::numeric_limits<double>;
  constexpr double inf = Limits::infinity(), least = Limits::denorm_min();
  const double times[] = {-inf, -Limits::max(), -1,        -Limits::min(), -2 * least, -least,        -0.0,
                          0.0,  least,          2 * least, Limits::min(),  1,          Limits::max(), inf};
  std::uint64_t state = 6;
  for (const std::size_t slots : {1u, 2u, 3u, 7u, 8u, 9u, 33u}) {
    EventQueue queue(slots);
    std::vector<double> expected(slots, inf);
    for (int change = 0; change < 2000; ++change) {
      const std::size_t slot = mix(++state) % slots;
      expected[slot] = times[mix(++state) % std::size(times)];
      queue.set(static_cast<int>(slot), expected[slot]);
      ASSERT_EQ(queue.time(static_cast<int>(slot)), expected[slot]);
      const std::size_t next = earliest(expected);
      ASSERT_EQ(queue.empty(), expected[next] == inf);
      ASSERT_TRUE(queue.empty() || static_cast<std::size_t>(queue.next()) == next) << queue.next() << ", not " << next;
    }
  }
}

}  // namespace
}  // namespace attest
