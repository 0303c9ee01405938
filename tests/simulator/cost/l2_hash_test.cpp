// L2's hash beside lines of which an H100 and an H200 say which sets they fall into (`l2_labels`,
// docs/results/h200-l2.md).
#include "l2_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "attest/simulator/device.h"
#include "measured_rows.h"

namespace attest {
namespace {

constexpr std::uint64_t first_line = (std::uint64_t{528} << 20) / L2Hash::line_bytes;  // of the buffer

struct Case {
  const char *device, *file, *far_file, *mates;
  std::size_t sets;
  std::uint64_t far_mib;  // where the far buffer begins, of 60 GiB
};

class Hash : public ::testing::TestWithParam<Case> {};

using Place = std::tuple<std::uint32_t, std::uint32_t>;

L2Hash::Place at_home(const L2Hash& hash, std::uint64_t line) {
  return hash.place(hash.block(line / L2Hash::block_lines), static_cast<std::uint32_t>(line % L2Hash::block_lines));
}

/// Of a line as the partition keeps it whose sets were read.
Place place_of(const L2Hash& hash, std::uint64_t line, bool home) {
  const auto [slice, index, directory, of] = at_home(hash, line);
  return {slice ^ (!home && slice < hash.paired_slices() ? 1u : 0u), index};
}

TEST_P(Hash, LinesThatShareASetDoInTheModelAndNoOthers) {
  const L2Hash hash(load_device(GetParam().device));
  std::map<std::string, std::map<Place, std::array<int, 2>>> of_set;  // copies and lines at home
  for (const MeasuredRow& row : measured_rows(GetParam().file)) {
    const bool home = row.at("home") == "1";
    ++of_set[row.at("set")][place_of(hash, first_line + std::stoul(row.at("line")), home)][home];
  }
  std::set<Place> taken;
  std::array<int, 2> lines{}, right{};
  for (const auto& [set, places] : of_set) {
    const auto most = std::max_element(places.begin(), places.end(), [](const auto& one, const auto& other) {
      return one.second[1] < other.second[1];
    });
    EXPECT_TRUE(taken.insert(most->first).second) << "set " << set << " and another one have the same place";
    for (const auto& [place, n] : places)
      for (const std::size_t home : {0, 1}) lines[home] += n[home], right[home] += place == most->first ? n[home] : 0;
  }
  std::printf("%s: %d of %d lines at home and %d of %d copies of %zu sets\n", GetParam().device, right[1], lines[1],
              right[0], lines[0], of_set.size());
  EXPECT_EQ(of_set.size(), GetParam().sets);
  EXPECT_GT(right[1], 0.9995 * lines[1]);
  EXPECT_GT(right[0], 0.97 * lines[0]);  // lines beside one that comes from across are held up as well
}

// Two lines of each set, and of lines of 500 MiB at random in 60 GiB those that share one with them.
TEST_P(Hash, SoDoLinesOfSixtyGibibytes) {
  const L2Hash hash(load_device(GetParam().device));
  std::map<std::string, Place> of_set;
  int lines = 0, right = 0, held_up = 0, near_home = 0;
  for (const MeasuredRow& row : measured_rows(GetParam().far_file)) {
    const bool far = row.at("buffer") == "1";
    const std::uint64_t line =
        (far ? (GetParam().far_mib << 20) / L2Hash::line_bytes : first_line) + std::stoul(row.at("line"));
    const int home = at_home(hash, line).home;
    if (!far) {
      const Place place = place_of(hash, line, true);
      EXPECT_EQ(of_set.emplace(row.at("set"), place).first->second, place) << row.at("set");
      near_home = home;
      continue;
    }
    const Place counted = of_set.at(row.at("set"));
    ++lines, right += place_of(hash, line, home == near_home) == counted ? 1 : 0;
    // a line that is fetched from DRAM holds up these, which are read at the same time by other SMs
    for (const std::uint64_t beside : {1, 4, 5})
      held_up += place_of(hash, line ^ beside, home == near_home) == counted ? 1 : 0;
  }
  std::printf("%s: %d of %d lines, %d held up beside one\n", GetParam().device, right, lines, held_up);
  EXPECT_GT(lines, 8000);
  EXPECT_GT(right, 0.96 * lines);
  EXPECT_GT(right + held_up, 0.999 * lines);
}

TEST_P(Hash, HomesAreThoseOfTheSidesThatAreNear) {
  const L2Hash hash(load_device(GetParam().device));
  std::set<std::pair<int, std::string>> both;
  for (const MeasuredRow& row : measured_rows(GetParam().file)) {
    both.emplace(at_home(hash, first_line + std::stoul(row.at("line"))).home, row.at("home"));
  }
  EXPECT_EQ(both.size(), 2u);  // either, always the same way round
}

// Lines whose copies go with each other (`l2_copies mates`, of 256 MiB on an H100, of 31 GiB on an H200): they share a
// directory set and hardly any set of L2. The hash was read off an H200's 551
// mates before; these were counted when it stood.
TEST_P(Hash, LinesWhoseCopiesGoTogetherShareADirectorySet) {
  const L2Hash hash(load_device(GetParam().device));
  std::set<std::string> targets;
  int mates = 0, of_a_set = 0;
  for (const MeasuredRow& row : measured_rows(GetParam().mates)) {
    const L2Hash::Place target = at_home(hash, std::stoull(row.at("target"))),
                        mate = at_home(hash, std::stoull(row.at("mate")));
    targets.insert(row.at("target"));
    ++mates, of_a_set += target.index == mate.index ? 1 : 0;
    EXPECT_EQ(std::tuple(mate.slice, mate.home, mate.directory),
              std::tuple(target.slice, target.home, target.directory))
        << row.at("target") << " and " << row.at("mate");
  }
  std::printf("%s: %d mates of %zu targets\n", GetParam().device, mates, targets.size());
  EXPECT_GE(targets.size(), 16u);
  EXPECT_GT(mates, 10 * static_cast<int>(targets.size()));
  EXPECT_EQ(of_a_set, 0);  // those of one set were not read
}

// Of a segment a slice has 16 entries of either home, each in a directory set of its own.
TEST_P(Hash, ASegmentsEntriesHaveDirectorySetsOfTheirOwn) {
  const DeviceSpec device = load_device(GetParam().device);
  const L2Hash hash(device);
  std::map<std::tuple<std::uint32_t, int, std::uint32_t>, std::set<std::uint64_t>> entries;
  constexpr std::uint64_t blocks = 47;  // eight of an H200's segments, nine and two blocks of an H100's
  for (std::uint64_t block = 0; block < blocks; ++block)
    for (std::uint32_t low = 0; low < L2Hash::block_lines; ++low) {
      const L2Hash::Place p = hash.place(hash.block(block), low);
      EXPECT_LT(p.directory, 1u << (L2Hash::directory_segment_bits + L2Hash::directory_set_bits));
      entries[{p.slice, p.home, p.directory}].insert(block << 10 | (low & ~5u));
    }
  std::size_t all = 0, most = 0;
  for (const auto& [set, of] : entries) all += of.size(), most = std::max(most, of.size());
  EXPECT_EQ(all, blocks * L2Hash::block_lines / 4);
  EXPECT_LE(most, 1u);  // the first segments differ in the five bits that a directory set has of them
}

// As many blocks as make whole segments: each set of a group has as many lines of either home as segments are the
// group's.
TEST_P(Hash, ASegmentFillsTheSetsOfItsGroupEvenly) {
  const L2Hash hash(load_device(GetParam().device));
  constexpr std::uint64_t blocks = 5 * 47;
  std::map<std::tuple<std::uint32_t, std::uint32_t, int>, int> lines;
  for (std::uint64_t block = blocks; block < 2 * blocks; ++block)
    for (std::uint32_t low = 0; low < L2Hash::block_lines; ++low) {
      const auto [slice, index, directory, home] = hash.place(hash.block(block), low);
      EXPECT_LT(slice, hash.slices());
      ++lines[{slice, index, home}];
    }
  std::map<std::uint32_t, std::set<int>> of_group;
  for (const auto& [place, n] : lines) of_group[std::get<1>(place) / L2Hash::sets_a_group].insert(n);
  EXPECT_EQ(lines.size(), std::size_t{2} * hash.slices() * L2Hash::sets_a_slice);
  EXPECT_EQ(of_group.size(), L2Hash::groups);
  std::uint64_t segments = 0;
  for (const auto& [group, numbers] : of_group) {
    EXPECT_EQ(numbers.size(), 1u) << "group " << group;
    segments += static_cast<std::uint64_t>(*numbers.begin());
  }
  EXPECT_EQ(segments * 2 * L2Hash::sets_a_group * hash.slices(), blocks * L2Hash::block_lines);
}

INSTANTIATE_TEST_SUITE_P(L2Hash, Hash,
                         ::testing::Values(Case{"h200", ATTEST_H200_L2 "/set_labels.csv",
                                                ATTEST_H200_L2 "/far_labels.csv", ATTEST_H200_L2 "/directory_mates.csv",
                                                131, 786},
                                           Case{"h100", ATTEST_H100 "/set_labels.csv", ATTEST_H100 "/far_labels.csv",
                                                ATTEST_H100 "/directory_mates.csv", 139, 788}),
                         [](const auto& of) { return std::string(of.param.device); });

TEST(L2Hash, IsKnownOfTwoGpus) {
  for (const char* name : {"a100", "b200", "h100", "h200", "rtx4090", "orin-agx", "mtt-s4000"})
    EXPECT_EQ(L2Hash::known(load_device(name)), name[0] == 'h') << name;
  DeviceSpec smaller = load_device("h200");
  smaller.l2_bytes /= 2;
  EXPECT_FALSE(L2Hash::known(smaller));
}

}  // namespace
}  // namespace attest
