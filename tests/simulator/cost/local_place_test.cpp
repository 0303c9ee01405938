#include "local_place.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

namespace attest {
namespace {

constexpr std::int64_t warps = 2 * 132 * 4;
constexpr int words = 131;

int side_of(std::int64_t warp) { return static_cast<int>(warp / 4 % 2); }

/// Lines of one home that warps of one side store, and what they are together with the others' of their set.
struct Spread {
  double lines[2][2] = {};
  double mean = 0, deviation = 0;  // of a set's, over all sets that there are
};

/// `place` is of a warp's word, or none.
template <class Place>
Spread spread_of(int sets, Place place) {
  Spread s;
  std::vector<double> of_set(static_cast<std::size_t>(2 * sets));
  for (std::int64_t warp = 0; warp < warps; ++warp)
    for (std::int64_t word = 0; word < words; ++word)
      if (const std::optional<LocalPlace> at = place(warp, word)) {
        ++s.lines[at->home][side_of(warp)];
        ++of_set[static_cast<std::size_t>(at->home * sets + at->set)];
      }
  for (const double n : of_set) s.mean += n / static_cast<double>(of_set.size());
  for (const double n : of_set) s.deviation += std::pow(n - s.mean, 2) / static_cast<double>(of_set.size());
  s.deviation = std::sqrt(s.deviation);
  return s;
}

// For either of the two kinds of places, up to one set in so many: as many lines of each home and side, as many a set
// and as unevenly spread as in the whole L2. Sets by chance were 5 to 10% off at one in 16.
TEST(LocalPlaces, SetsThatAreFollowedStandForAll) {
  for (const double local_memory_sets : {0.92, 1.44}) {
    DeviceSpec device = load_device("h100");
    device.local_memory_sets = local_memory_sets;
    const LocalFrames frames{warps, words};
    const int all = LineSampler::all_sets(device);
    const Spread whole = spread_of(all, [&](std::int64_t warp, std::int64_t word) {
      return std::optional(local_place(frames, warp, word, all, device));
    });
    EXPECT_NEAR(2 * whole.mean * all, warps * words, 1);
    for (const int sampling : {1, 4, 16, 64}) {
      SCOPED_TRACE(testing::Message() << local_memory_sets << ", one in " << sampling);
      const LineSampler sampler(device, sampling);
      const LocalPlaces places(frames, words, side_of, sampler, device);
      const Spread followed =
          spread_of(sampler.sets(), [&](std::int64_t warp, std::int64_t word) { return places.of(warp, word); });
      for (int home = 0; home < 2; ++home)
        for (int side = 0; side < 2; ++side)
          EXPECT_NEAR(followed.lines[home][side] / sampler.share() / whole.lines[home][side], 1,
                      sampling < 64 ? 0.01 : 0.02)
              << "home " << home << ", side " << side;
      EXPECT_NEAR(followed.mean / whole.mean, 1, sampling < 64 ? 0.005 : 0.01);
      EXPECT_NEAR(followed.deviation / whole.deviation, 1, sampling < 64 ? 0.06 : 0.13);
    }
  }
}

// A line is where it is in all of L2 but for its set's number, and lines share a set as they do there.
TEST(LocalPlaces, LinesOfASetStayTogether) {
  for (const double local_memory_sets : {0.92, 1.44}) {
    DeviceSpec device = load_device("h100");
    device.local_memory_sets = local_memory_sets;
    const LocalFrames frames{warps, words};
    const LineSampler sampler(device, 8);
    const LocalPlaces places(frames, words, side_of, sampler, device);
    std::map<int, int> number_of;
    std::set<int> numbers;
    for (std::int64_t warp = 0; warp < warps; ++warp)
      for (std::int64_t word = 0; word < words; ++word) {
        const LocalPlace whole = local_place(frames, warp, word, LineSampler::all_sets(device), device);
        const std::optional<LocalPlace> at = places.of(warp, word);
        const auto known = number_of.find(whole.set);
        ASSERT_TRUE(known == number_of.end() || known->second == (at ? at->set : -1));
        number_of.emplace(whole.set, at ? at->set : -1);
        if (!at) continue;
        ASSERT_EQ(at->home, whole.home);
        ASSERT_GE(at->set, 0);
        ASSERT_LT(at->set, sampler.sets());
        numbers.insert(at->set);
      }
    const auto followed = std::ranges::count_if(number_of, [](const auto& n) { return n.second >= 0; });
    EXPECT_EQ(followed, std::ssize(numbers));  // no two sets have one number
  }
}

// Parts of sets lie evenly between 1 - p and 1 + p of their mean, so that 1 / (1 + p^2 / 3) of the sets would have as
// uneven ones if they had all and alike.
TEST(LocalPlaces, PartsOfSetsAreSpreadAsTheFieldSays) {
  DeviceSpec device = load_device("h200");
  const int sets = 1000;
  constexpr std::int64_t many_warps = 4000, many_words = 1000;
  for (const double effective : {0.75, 0.92, 1.0}) {
    device.local_memory_sets = effective;
    std::vector<double> lines(sets);
    for (std::int64_t warp = 0; warp < many_warps; ++warp)
      for (std::int64_t word = 0; word < many_words; ++word)
        ++lines[static_cast<std::size_t>(local_place({many_warps, many_words}, warp, word, sets, device).set)];
    std::ranges::sort(lines);
    const double mean = static_cast<double>(many_warps * many_words) / sets, p = std::sqrt(3 * (1 / effective - 1));
    double squares = 0;
    for (const double n : lines) squares += n * n - n;  // without what is chance of so many lines
    EXPECT_NEAR(mean * mean * sets / squares, effective, 0.01);
    for (const double quantile : {0.1, 0.5, 0.9})
      EXPECT_NEAR(lines[static_cast<std::size_t>(quantile * sets)] / mean, 1 + p * (2 * quantile - 1), 0.05)
          << effective;
  }
}

TEST(LocalPlaces, AFrameOfNoWordsHasNone) {
  const DeviceSpec device = load_device("h200");
  const LineSampler sampler(device, 8);
  EXPECT_FALSE(LocalPlaces({0, 0}, 0, side_of, sampler, device).of(0, 0));
}

}  // namespace
}  // namespace attest
