#include "spills_to_come.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "attest/problem/splitmix64.h"

namespace attest {
namespace {

struct Use {
  double at;
  int slot, number;
};

// Slots' events follow each other; against all uses in the order of their times, and of equal times of their slots.
TEST(SpillsToCome, ComeEvenlySpreadOverTheirEventsAndInOrder) {
  constexpr int slots = 7, events = 50;
  SpillsToCome spills;
  std::vector<Use> expected, came;
  std::vector<std::tuple<double, int, double, int>> begins;  // when, slot, cycles, uses
  std::uint64_t random = 3;
  for (int slot = 0; slot < slots; ++slot) {
    double now = 0;
    for (int event = 0; event < events; ++event) {
      const auto cycles = static_cast<double>(8 + 8 * (mix(++random) % 4));  // so that times are equal, and exact
      const int uses = 1 << mix(++random) % 4;
      begins.emplace_back(now, slot, cycles, uses);
      for (int use = 1; use < uses; ++use) expected.push_back({now + use * cycles / uses, slot, use});
      now += cycles;
    }
  }
  std::ranges::sort(begins);
  std::ranges::sort(expected, {}, [](const Use& u) { return std::tuple(u.at, u.slot); });
  double now = 0;
  const auto take = [&](int slot, int number) {
    const Use& due = expected.at(came.size());
    EXPECT_LE(due.at, now);
    came.push_back({due.at, slot, number});
  };
  for (const auto& [begin, slot, cycles, uses] : begins) {
    spills.until(now = begin, take);
    EXPECT_TRUE(came.size() == expected.size() || expected[came.size()].at > now);  // what is due has come
    spills.add(slot, begin, cycles, uses);
  }
  spills.until(now = 1e9, take);
  ASSERT_EQ(came.size(), expected.size());
  EXPECT_GT(came.size(), 900);
  for (std::size_t i = 0; i < came.size(); ++i) {
    ASSERT_EQ(came[i].slot, expected[i].slot) << i;
    ASSERT_EQ(came[i].number, expected[i].number) << i;
  }
}

}  // namespace
}  // namespace attest
