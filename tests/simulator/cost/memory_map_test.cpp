#include "memory_map.h"

#include <gtest/gtest.h>

#include <string>

#include "measured_rows.h"

namespace attest {
namespace {

constexpr std::int64_t mib = 1 << 20, kib = 1 << 10;

TEST(MemoryMap, FramesFollowEachOther) {
  const DeviceSpec h200 = load_device("h200");
  const MemoryMap memory(h200);
  constexpr std::int64_t words = 131;
  const std::int64_t first = memory.word(0, 0, 0, words);
  EXPECT_EQ(first, 114 * mib + (256 - words) * 128);
  EXPECT_EQ(memory.word(0, 0, 1, words) - first, 128);
  EXPECT_EQ(memory.word(0, 1, 0, words) - first, 50 * kib);
  EXPECT_EQ(memory.word(1, 0, 0, words) - first, std::int64_t{64} * 50 * kib);
}

TEST(MemoryMap, AStackLimitHasThemLieBehindTheirFirstPlace) {
  const DeviceSpec h100 = load_device("h100");
  const MemoryMap memory(h100, false, 2048);
  EXPECT_EQ(memory.word(0, 0, 0, 240), 528 * mib + (512 - 240) * 128);
  EXPECT_EQ(memory.word(1, 0, 0, 240) - memory.word(0, 0, 0, 240), 64 * 82 * kib);
  EXPECT_EQ(MemoryMap(h100, false, 1).word(0, 0, 0, 256), 114 * mib);  // a smaller one than a process has
}

// memory_places_ncu.csv: lines of memory of the first of 240 words.
TEST(MemoryMap, NsightComputeHasFramesLieElsewhere) {
  const DeviceSpec h200 = load_device("h200");
  const MemoryMap memory(h200, true);
  int frames = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_L2 "/memory_places_ncu.csv")) {
    if (row.at("what") != "frame") continue;
    EXPECT_EQ(memory.word(std::stoi(row.at("sm")), std::stoi(row.at("warp")), 0, 240),
              128 * std::stoll(row.at("line")));
    ++frames;
  }
  EXPECT_EQ(frames, 20);
}

TEST(MemoryMap, BuffersFollowFrames) {
  const DeviceSpec h200 = load_device("h200");
  EXPECT_EQ(MemoryMap(h200).buffers(), 528 * mib);
  EXPECT_EQ(MemoryMap(h200, true).buffers(), 1080 * mib);
  EXPECT_EQ(MemoryMap(h200, false, 2048).buffers(), 1206 * mib);
}

}  // namespace
}  // namespace attest
