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
#include "memory_map.h"

namespace attest {
namespace {

/// Of each set the lines of frames, of 131 words of eight warps an SM, as the forced spill has them.
std::vector<int> lines_of_frames(const DeviceSpec& device) {
  constexpr int warps = 8, words = 131, frame = 158;
  const LineSampler all(device, 1);
  const MemoryMap memory(device);
  std::vector<int> lines(static_cast<std::size_t>(2 * all.sets()));
  for (std::int64_t sm = 0; sm < device.num_sms; ++sm)
    for (int warp = 0; warp < warps; ++warp)
      for (int word = 0; word < words; ++word) ++lines[all.whole_set(memory.word(sm, warp, word, frame))];
  return lines;
}

/// How far what is followed of the lines in sets of n and more is from the part of all sets that is, at most, for n
/// from none to those of which one line in a hundred is in such a set.
double off(const DeviceSpec& device, const SetChoice& choice, const std::vector<int>& lines) {
  const LineSampler sampler(device, choice), all(device, 1);
  std::vector<double> of_all(100), followed(100);
  std::vector<bool> follows(lines.size());
  constexpr std::int64_t memory = std::int64_t{1} << 30;
  for (std::int64_t at = 0; at < memory; at += LineSampler::line_bytes)
    sampler.for_lines(at, at + LineSampler::line_bytes, [&](const CachedLine&) { follows[all.whole_set(at)] = true; });
  for (std::size_t set = 0; set < lines.size(); ++set)
    for (int n = 0; n <= lines[set]; ++n) {
      const auto at = static_cast<std::size_t>(n);
      of_all[at] += lines[set], followed[at] += follows[set] ? lines[set] : 0;
    }
  double most = 0;
  for (std::size_t n = 0; of_all[n] > of_all[0] / 100; ++n)
    most = std::max(most, std::abs(followed[n] / of_all[n] / sampler.share() - 1));
  return most;
}

TEST(SetChoice, OfFullSetsAsLargeAPartIsFollowedAsOfOthers) {
  double unmatched = 0;
  for (const char* name : {"h200", "h100"}) {
    const DeviceSpec device = load_device(name);
    const std::vector<int> lines = lines_of_frames(device);
    for (const int sampling : {2, 4, 8, 16}) {
      SetChoice choice(L2Hash(device), sampling);
      const double before = off(device, choice, lines);
      choice.match({lines});
      const double after = off(device, choice, lines);
      std::printf("%s, one set in %d: %.3f off, %.3f before\n", name, sampling, after, before);
      EXPECT_LE(after, 0.035) << name << ", " << sampling;
      unmatched = std::max(unmatched, before);
    }
  }
  EXPECT_GE(unmatched, 0.2);
}

TEST(SetChoice, OtherValuesAreOfTheSameSlices) {
  const DeviceSpec device = load_device("h200");
  for (const int sampling : {1, 4, 64}) {
    const SetChoice before(L2Hash(device), sampling);
    SetChoice after = before;
    after.match({lines_of_frames(device)});
    ASSERT_EQ(after.slices().size(), before.slices().size());
    EXPECT_EQ(LineSampler(device, after).sets(), LineSampler(device, before).sets());
    const std::uint32_t values = 1U << (L2Hash::directory_set_bits - after.free_bits());
    for (std::size_t i = 0; i < after.slices().size(); ++i) {
      EXPECT_EQ(after.slices()[i].first, before.slices()[i].first);
      EXPECT_EQ(after.slices()[i].number, before.slices()[i].number);
      EXPECT_LT(after.slices()[i].value, values);
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
