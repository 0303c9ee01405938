// Which sets of an L2 a walk follows where frames of local memory fill them unevenly.
#include "set_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "address.h"
#include "attest/simulator/device.h"
#include "compiled_registers.h"
#include "local_frames.h"
#include "memory_map.h"
#include "spill_uses.h"
#include "tile_walks.h"

namespace attest {
namespace {

/// Of each set the lines of frames of the forced spill, of two CTAs of four warps an SM, that its whole key tiles
/// store, and how many of these are live on average, rounded.
std::vector<std::vector<int>> lines_of_frames(const DeviceSpec& device) {
  const Case c = case_of(1, 1, 1, 4096, 128);
  const KernelPlan plan = plan_named("sm80-spill", c, device);
  const SpillTraces traces = compiled_traces(plan, "sm80-spill", c, device);
  const std::vector<double> all_whole(traces.whole.accesses.size(), 1), all_masked(traces.masked.accesses.size(), 1);
  const int frame = compiled_frame(plan, "sm80-spill", c, device).value().words;
  const std::vector<double> parts = live_parts(traced_spill_uses(traces, {all_whole, all_masked, 1, 1}).whole, frame);
  const LineSampler all(device, 1);
  std::vector<int> lines(static_cast<std::size_t>(2 * all.sets())), live = lines;
  std::vector<double> on_average(lines.size());
  std::size_t number = 0;
  each_word(frame, frame, MemoryMap(device), [&](int, std::int64_t at) {
    const double part = parts[number++ % parts.size()];
    lines[all.whole_set(at)] += part > 0 ? 1 : 0;
    on_average[all.whole_set(at)] += part;
  });
  std::ranges::transform(on_average, live.begin(), [](double n) { return static_cast<int>(std::lround(n)); });
  return {lines, live};
}

std::vector<bool> followed_sets(const DeviceSpec& device, const SetChoice& choice) {
  const LineSampler sampler(device, choice), all(device, 1);
  std::vector<bool> follows(static_cast<std::size_t>(2 * all.sets()));
  constexpr std::int64_t enough = std::int64_t{256} << 20;
  for (std::int64_t at = 0; at < enough; at += LineSampler::line_bytes)
    sampler.for_lines(at, at + LineSampler::line_bytes, [&](const CachedLine&) { follows[all.whole_set(at)] = true; });
  return follows;
}

/// How far what is followed of the lines in sets of n and more is from the part of all sets that is, at most, for n
/// from none to those of which one line in a hundred is in such a set.
double off(const std::vector<bool>& follows, double share, const std::vector<int>& lines) {
  const auto most = static_cast<std::size_t>(std::ranges::max(lines)) + 1;
  std::vector<double> of_all(most + 1), followed(most + 1);
  for (std::size_t set = 0; set < lines.size(); ++set)
    for (std::size_t n = 0; n <= static_cast<std::size_t>(lines[set]); ++n)
      of_all[n] += lines[set], followed[n] += follows[set] ? lines[set] : 0;
  double furthest = 0;
  for (std::size_t n = 0; of_all[n] > of_all[0] / 100; ++n)
    furthest = std::max(furthest, std::abs(followed[n] / of_all[n] / share - 1));
  return furthest;
}

TEST(SetChoice, OfFullSetsAsLargeAPartIsFollowedAsOfOthers) {
  double left = 0, unmatched = 0;
  int rows = 0;
  for (const char* name : {"h200", "h100"}) {
    const DeviceSpec device = load_device(name);
    const std::vector<std::vector<int>> lines = lines_of_frames(device);
    for (const int sampling : {4, 8, 16}) {
      SetChoice choice(L2Hash(device), sampling);
      const double share = LineSampler(device, choice).share();
      const std::vector<bool> before = followed_sets(device, choice);
      choice.match(lines);
      const std::vector<bool> after = followed_sets(device, choice);
      for (const std::vector<int>& counts : lines) {
        const double was = off(before, share, counts), is = off(after, share, counts);
        std::printf("%s, one set in %d: %.3f off, %.3f before\n", name, sampling, is, was);
        EXPECT_LE(is, 0.28) << name << ", " << sampling;
        EXPECT_LT(is, was) << name << ", " << sampling;
        left += is, unmatched += was, ++rows;
      }
    }
  }
  EXPECT_LE(left / rows, 0.085);
  EXPECT_GE(unmatched / rows, 0.3);
}

TEST(SetChoice, OtherSetsOfTheSameSlicesAreFollowed) {
  const DeviceSpec device = load_device("h200");
  for (const int sampling : {4, 8, 64}) {
    SetChoice choice(L2Hash(device), sampling);
    const std::vector<bool> before = followed_sets(device, choice);
    choice.match(lines_of_frames(device));
    const std::vector<bool> after = followed_sets(device, choice);
    EXPECT_NE(after, before) << sampling;
    constexpr std::size_t slice = L2Hash::sets_a_slice;
    for (std::size_t set = 0; set < after.size(); set += slice) {
      const auto of_slice = [&](const std::vector<bool>& follows) {
        const auto first = follows.begin() + static_cast<std::ptrdiff_t>(set);
        return std::count(first, first + slice, true);
      };
      EXPECT_EQ(of_slice(after), of_slice(before)) << set;
    }
  }
}

TEST(SetChoice, WithoutLinesNothingChanges) {
  const DeviceSpec device = load_device("h100");
  const SetChoice before(L2Hash(device), 8);
  SetChoice after = before;
  after.match({std::vector<int>(static_cast<std::size_t>(2 * LineSampler::all_sets(device)), 0)});
  for (std::size_t i = 0; i < after.slices().size(); ++i) EXPECT_EQ(after.slices()[i].value, before.slices()[i].value);
}

}  // namespace
}  // namespace attest
