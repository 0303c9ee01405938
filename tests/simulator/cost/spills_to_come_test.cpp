#include "spills_to_come.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "attest/problem/splitmix64.h"
#include "spill_times.h"
#include "warp_paces.h"

namespace attest {
namespace {

struct Use {
  double at;
  int slot;
  std::size_t number;
};

// Slots' events follow each other; against all uses in the order of their times, and of equal times of their slots and
// as they were given.
TEST(SpillsToCome, ComeInTheOrderOfTheirTimes) {
  constexpr int slots = 7, events = 50;
  SpillsToCome spills(slots);
  std::vector<Use> expected, came;
  const std::vector<SpilledLine> lines(9);
  std::vector<std::tuple<double, int, std::vector<SpillsToCome::Use>>> begins;  // when, slot, uses
  std::uint64_t random = 3;
  for (int slot = 0; slot < slots; ++slot) {
    double now = 0;
    for (int event = 0; event < events; ++event) {
      std::vector<SpillsToCome::Use> uses(mix(++random) % 9);
      for (std::size_t use = 0; use < uses.size(); ++use) {
        uses[use] = {now + static_cast<double>(mix(++random) % 8),
                     &lines[use]};  // so that times are equal, and in any order
        expected.push_back({uses[use].at, slot, use});
      }
      begins.emplace_back(now, slot, uses);
      now += 8;
    }
  }
  std::ranges::stable_sort(begins, {}, [](const auto& b) { return std::tuple(std::get<0>(b), std::get<1>(b)); });
  std::ranges::sort(expected, {}, [](const Use& u) { return std::tuple(u.at, u.slot, u.number); });
  double now = 0;
  const auto take = [&](int slot, const SpilledLine& line) {
    const Use& due = expected.at(came.size());
    EXPECT_LE(due.at, now);
    came.push_back({due.at, slot, static_cast<std::size_t>(&line - lines.data())});
  };
  for (const auto& [begin, slot, uses] : begins) {
    for (const double before : {1., 0.5}) {  // also when a use is due; no event's begin is a use of the one before
      spills.until(now = begin - before, take);
      EXPECT_TRUE(came.size() == expected.size() || expected[came.size()].at > now);  // what is due has come
    }
    spills.set(slot, uses);
  }
  spills.until(now = 1e9, take);
  ASSERT_EQ(came.size(), expected.size());
  EXPECT_GT(came.size(), 900);
  for (std::size_t i = 0; i < came.size(); ++i) {
    ASSERT_EQ(came[i].slot, expected[i].slot) << i;
    ASSERT_EQ(came[i].number, expected[i].number) << i;
  }
}

TEST(SpillsToCome, AnEventBeginsWhenAllOfTheOneBeforeHaveCome) {
  SpillsToCome spills(2);
  const SpilledLine line{};
  const std::vector<SpillsToCome::Use> before{{4, &line}, {3, &line}}, next{{5, &line}};
  spills.set(1, before);
  const auto ignore = [](int, const SpilledLine&) {};
  spills.until(3, ignore);
  EXPECT_THROW(spills.set(1, next), std::logic_error);
  EXPECT_NO_THROW(spills.set(0, next));
  spills.until(4, ignore);
  EXPECT_NO_THROW(spills.set(1, next));
}

// Of two warps, each with its words in order; the slower one ends each key tile, and neither keeps its pace.
TEST(SpillTimes, AreEachWarpsOwnAndWithinTheirKeyTile) {
  constexpr int tiles = 50;
  constexpr double now = 1000, each = 100;
  std::vector<SpilledLine> lines(4);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    lines[i].warp = static_cast<std::uint8_t>(i % 2);
    lines[i].at = i < 2 ? 0.25F : 0.75F;
  }
  SpillTimes times(2);
  const std::span<const SpillsToCome::Use> uses =
      times.of_event(std::vector<const std::vector<SpilledLine>*>(tiles, &lines), now, tiles * each);
  ASSERT_EQ(uses.size(), tiles * lines.size());
  int first_slower = 0;
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    const auto part = [&](std::size_t i) {
      EXPECT_EQ(uses[tile * 4 + i].line, &lines[i]);
      return (uses[tile * 4 + i].at - now) / each - static_cast<double>(tile);
    };
    for (const std::size_t warp : {0U, 1U}) EXPECT_NEAR(3 * part(warp), part(warp + 2), 1e-9);
    EXPECT_NEAR(std::max(part(2), part(3)), 0.75, 1e-9);
    EXPECT_LT(std::min(part(2), part(3)), 0.75 - 1e-6);
    first_slower += part(2) > part(3) ? 1 : 0;
  }
  EXPECT_GT(first_slower, tiles / 4);
  EXPECT_LT(first_slower, 3 * tiles / 4);

  // key tiles that differ, one without any
  const std::vector<SpilledLine> none, one(1);
  const std::span<const SpillsToCome::Use> differ = times.of_event({&one, &none, &lines}, now, 3 * each);
  ASSERT_EQ(differ.size(), 5U);
  EXPECT_EQ(differ[0].line, &one[0]);
  EXPECT_EQ(differ[0].at, now);
  EXPECT_GT(differ[1].at, now + 2 * each);
}

// Of one, of two (1 / sqrt(pi)) and of sixteen (Harter, Expected values of normal order statistics, 1961: 1.76599).
TEST(Noise, TheLargestOfNormalVariates) {
  EXPECT_NEAR(expected_largest_normal(1), 0, 1e-9);
  EXPECT_NEAR(expected_largest_normal(2), 1 / std::sqrt(std::acos(-1.0)), 1e-4);
  EXPECT_NEAR(expected_largest_normal(16), 1.76599, 1e-4);
  EXPECT_THROW(expected_largest_normal(17), std::out_of_range);
}

// Drawn anew each time, about a mean of 1, and none later than the slowest.
TEST(WarpPaces, DeviateAndEndWithTheSlowest) {
  constexpr int draws = 20'000;
  Noise noise;
  WarpPaces paces(4);
  for (std::size_t warp = 0; warp < 4; ++warp) EXPECT_EQ(paces.of(warp), paces.slowest());
  double sum = 0, squares = 0;
  for (int i = 0; i < draws; ++i) {
    const double before = paces.of(3);
    paces.draw(noise);
    EXPECT_NE(paces.of(3), before);
    double slowest = 0;
    for (std::size_t warp = 0; warp < 4; ++warp) {
      slowest = std::max(slowest, paces.of(warp));
      sum += paces.of(warp) - 1, squares += (paces.of(warp) - 1) * (paces.of(warp) - 1);
    }
    EXPECT_EQ(slowest, paces.slowest());
  }
  EXPECT_NEAR(sum / (4 * draws), 0, 1e-3);
  EXPECT_NEAR(std::sqrt(squares / (4 * draws)), warp_pace_deviation, 1e-3);
}

}  // namespace
}  // namespace attest
