// Lines of L2 that are there in part: sectors that were read, written, or written in part.
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>

#include "l2_lines.h"

namespace attest {
namespace {

using Outcome = L2Cache::Outcome;

// Rows that fill lines in part: heads that follow each other share them.
TEST(L2Sectors, ALineIsThereSectorBySector) {
  const CachedLine low{3, 0, 0, 3}, high{3, 0, 0, 12};
  L2Cache cache(2, 1, 4, 1);
  EXPECT_EQ(cache.read(low, 1), Outcome::miss);
  EXPECT_EQ(cache.read(high, 1), Outcome::miss) << "the other half is neither near nor at home";
  EXPECT_EQ(cache.crossed_sectors(), 4);
  EXPECT_EQ(cache.read(line(3), 1), Outcome::near_hit);
  EXPECT_EQ(cache.read(line(3), 0), Outcome::near_hit) << "at home as well";
  cache.read({4, 0, 0, 3}, 0);
  EXPECT_EQ(cache.read({4, 0, 0, 3}, 1), Outcome::far_hit);
  EXPECT_EQ(cache.read(line(4), 1), Outcome::miss);
  EXPECT_EQ(cache.crossed_sectors(), 4 + 2 + 2) << "what is near does not cross again";
  EXPECT_EQ(cache.read(line(4), 0), Outcome::near_hit);
  EXPECT_EQ(cache.filled_sectors(), 8) << "each half once from DRAM";
}

TEST(L2Sectors, PartsOfALineAreWrittenBackOnce) {
  L2Cache cache(1, 1, 4, 1);
  cache.write({3, 0, 0, 3}, 0);
  cache.write({3, 0, 0, 6}, 0);
  EXPECT_EQ(cache.dirty_sectors(), 3);
  EXPECT_EQ(cache.read({3, 0, 0, 7}, 0), Outcome::near_hit);
  EXPECT_EQ(cache.read({3, 0, 0, 8}, 0), Outcome::miss) << "nobody wrote it";
  cache.write(line(4), 0);
  cache.read(line(4), 0);
  EXPECT_EQ(cache.written_back_sectors(), 3);
  EXPECT_EQ(cache.dirty_sectors(), 4);
}

TEST(L2Sectors, WhatLivesOnTheOtherSideCrosses) {
  L2Cache cache(2, 1, 4, 4);
  cache.read(line(1, 0), 0);
  EXPECT_EQ(cache.crossed_sectors(), 0) << "its own";
  cache.read(line(1, 0), 1);
  EXPECT_EQ(cache.crossed_sectors(), 4);
  cache.read(line(1, 0), 1);
  EXPECT_EQ(cache.crossed_sectors(), 4) << "a copy is near now";
  cache.read({9, 0, 0, 1}, 1);
  EXPECT_EQ(cache.crossed_sectors(), 6) << "a sector's half of a line from DRAM of the other side";
  cache.write(line(2, 0), 0);
  EXPECT_EQ(cache.crossed_sectors(), 6);
  cache.write(line(2, 0), 1);
  cache.write(line(2, 0), 1);
  EXPECT_EQ(cache.crossed_sectors(), 14) << "each write, though a copy is near";
}

// parts_of_lines: the other sector of a half is there as well, the other half is not.
TEST(L2Sectors, ReadsBringHalvesOfLines) {
  L2Cache cache(2, 1, 4, 4);
  const auto sectors = [](int bits) { return CachedLine{1, 0, 0, static_cast<std::uint8_t>(bits)}; };
  EXPECT_EQ(cache.read(sectors(2), 1), Outcome::miss);
  EXPECT_EQ(cache.read(sectors(1), 1), Outcome::near_hit);
  EXPECT_EQ(cache.read(sectors(1), 0), Outcome::near_hit) << "at home too";
  EXPECT_EQ(cache.read(sectors(6), 1), Outcome::miss);
  EXPECT_EQ(cache.read(sectors(8), 1), Outcome::near_hit);
  EXPECT_EQ(cache.crossed_sectors(), 4) << "each half once";
  cache.write({2, 0, 0, 1}, 1);
  EXPECT_EQ(cache.crossed_sectors(), 5) << "a write is of its sectors alone";
  EXPECT_EQ(cache.read({2, 0, 0, 2}, 1), Outcome::miss);
  EXPECT_EQ(cache.filled_sectors(), 5) << "two halves, and the sector that was not written";
}

TEST(L2Sectors, ReadsOfWholeLinesBringAllOfThem) {
  L2Cache cache(2, 1, 4, 4);
  const auto sectors = [](int bits, bool whole) { return CachedLine{1, 0, 0, static_cast<std::uint8_t>(bits), whole}; };
  EXPECT_EQ(cache.read(sectors(1, true), 1), Outcome::miss);
  EXPECT_EQ(cache.crossed_sectors(), 4);
  EXPECT_EQ(cache.read(sectors(8, false), 1), Outcome::near_hit);
  EXPECT_EQ(cache.read(sectors(8, false), 0), Outcome::near_hit);
  EXPECT_EQ(cache.filled_sectors(), 4);
}

TEST(L2Sectors, APrefetchBringsNothingNear) {
  L2Cache cache(2, 1, 4, 4);
  EXPECT_EQ(cache.prefetch(line(1, 0), 0), Outcome::miss) << "its own";
  EXPECT_EQ(cache.read(line(1, 0), 0), Outcome::near_hit);
  EXPECT_EQ(cache.crossed_sectors(), 0);
  EXPECT_EQ(cache.prefetch(line(2, 0), 1), Outcome::miss);
  EXPECT_EQ(cache.prefetch(line(2, 0), 1), Outcome::far_hit);
  EXPECT_EQ(cache.crossed_sectors(), 8);
  EXPECT_EQ(cache.read(line(2, 0), 1), Outcome::far_hit) << "at home alone";
  EXPECT_EQ(cache.crossed_sectors(), 12);
  EXPECT_EQ(cache.prefetch(line(2, 0), 1), Outcome::near_hit);
  EXPECT_EQ(cache.crossed_sectors(), 12);
}

TEST(L2Sectors, ReadEvictFirstWhatWasPrefetchedGoesFirst) {
  for (const int side : {0, 1}) {
    L2Cache cache(2, 1, 2, 2);
    cache.read(line(20, 0), 0);
    cache.prefetch(line(1, 0), side);
    cache.read(line(1, 0), side, true);
    cache.read(line(30, 0), 0);
    EXPECT_EQ(cache.read(line(20, 0), 0), Outcome::near_hit) << side;
  }
}

/// Bytes [first, last) of a line, as a row of O that begins or ends there writes them.
CachedLine bytes_of(std::uint32_t tag, int first, int last) {
  const int from = first / 32, to = (last - 1) / 32;
  CachedLine line{tag, 0, 0, static_cast<std::uint8_t>((2 << to) - (1 << from))};
  line.before = first % 32 / 2, line.behind = (32 - last % 32) % 32 / 2;
  return line;
}

/// What DRAM reads when a set's only way, which these have written, is cleaned.
std::int64_t completed(std::initializer_list<CachedLine> writes, int side = 0) {
  L2Cache cache(2, 1, 1, 1);
  for (const CachedLine& line : writes) cache.write(line, side);
  EXPECT_EQ(cache.completed_sectors(), 0);
  const std::int64_t incomplete = cache.incomplete_sectors();
  cache.write(line(99, 0), 0);
  EXPECT_EQ(cache.completed_sectors(), incomplete);
  return cache.completed_sectors();
}

// write_parts: halves of sectors, and rows with gaps, are read when they are cleaned, unless the rest came before.
TEST(L2Sectors, WhatIsWrittenInPartIsReadWhenItIsCleaned) {
  for (const int side : {0, 1}) {
    SCOPED_TRACE(side);
    EXPECT_EQ(completed({bytes_of(1, 0, 128)}, side), 0);
    EXPECT_EQ(completed({bytes_of(1, 0, 80)}, side), 1);
    EXPECT_EQ(completed({bytes_of(1, 80, 128)}, side), 1);
    EXPECT_EQ(completed({bytes_of(1, 16, 112)}, side), 2);
    EXPECT_EQ(completed({bytes_of(1, 0, 80), bytes_of(1, 80, 128)}, side), 0) << "a neighbour's row, head or batch";
    EXPECT_EQ(completed({bytes_of(1, 80, 128), bytes_of(1, 0, 80)}, side), 0);
    EXPECT_EQ(completed({bytes_of(1, 0, 80), bytes_of(1, 0, 80)}, side), 1) << "the same again";
    EXPECT_EQ(completed({bytes_of(1, 40, 48)}, side), 1) << "inside a sector";
    EXPECT_EQ(completed({bytes_of(1, 40, 48), bytes_of(1, 40, 64)}, side), 1);
    EXPECT_EQ(completed({bytes_of(1, 0, 80), bytes_of(1, 84, 128)}, side), 1) << "a gap";
    EXPECT_EQ(completed({bytes_of(1, 0, 28)}, side), 1);
    EXPECT_EQ(completed({bytes_of(1, 72, 80), bytes_of(1, 64, 72), bytes_of(1, 88, 96), bytes_of(1, 80, 88)}, side), 0);
    EXPECT_EQ(completed({bytes_of(1, 40, 48), bytes_of(1, 32, 64)}, side), 0);
  }
}

// A third line has the incomplete sectors of the older one written back, and no others of it.
TEST(L2Sectors, TwoLinesOfASetMayBeWrittenInPart) {
  L2Cache cache(1, 1, 8, 8);
  for (const std::uint32_t tag : {1, 2}) cache.write(bytes_of(tag, 0, 80), 0);
  cache.write(line(3), 0);
  EXPECT_EQ(cache.completed_sectors(), 0);
  cache.write(bytes_of(4, 48, 128), 0);
  EXPECT_EQ(cache.completed_sectors(), 1);
  EXPECT_EQ(cache.written_back_sectors(), 1);
  EXPECT_EQ(cache.dirty_sectors(), 2 + 3 + 4 + 3);
  cache.write(bytes_of(2, 80, 128), 0);  // is whole now
  cache.write(bytes_of(5, 0, 16), 0);
  EXPECT_EQ(cache.completed_sectors(), 1);
  cache.write(bytes_of(6, 0, 16), 0);
  EXPECT_EQ(cache.completed_sectors(), 2) << "of line 4";
}

// One whose sectors have been read is none of the two.
TEST(L2Sectors, ALineThatWasReadIsNotInPart) {
  for (const int side : {0, 1}) {
    L2Cache cache(2, 1, 8, 8);
    for (const std::uint32_t tag : {1, 2}) cache.write(bytes_of(tag, 0, 80), side);
    cache.read(bytes_of(2, 0, 80), side);
    cache.write(bytes_of(3, 0, 80), side);
    EXPECT_EQ(cache.completed_sectors(), 0);
    EXPECT_EQ(cache.incomplete_sectors(), 2);
  }
}

TEST(L2Sectors, WhatIsWrittenInPartIsReadFromDRAMWhereItIsAskedFor) {
  L2Cache cache(2, 1, 4, 4);
  cache.write(bytes_of(1, 0, 80), 1);
  EXPECT_EQ(cache.read(bytes_of(1, 0, 64), 1), Outcome::near_hit);
  EXPECT_EQ(cache.read(bytes_of(1, 0, 80), 1), Outcome::miss);
  EXPECT_EQ(cache.filled_sectors(), 2) << "with its half of the line";
  EXPECT_EQ(cache.read(bytes_of(1, 64, 128), 0), Outcome::near_hit);
  EXPECT_EQ(cache.incomplete_sectors(), 0);
  EXPECT_EQ(cache.dirty_sectors(), 3);
  cache.write_with_gaps(line(2, 0), 0);
  EXPECT_EQ(cache.incomplete_sectors(), 4);
  cache.write_with_gaps(line(2, 0), 0);
  EXPECT_EQ(cache.incomplete_sectors(), 4) << "the same lanes again";
  EXPECT_EQ(cache.read(line(2, 0), 0), Outcome::miss);
  cache.write_with_gaps(line(2, 0), 0);
  EXPECT_EQ(cache.incomplete_sectors(), 0) << "the others are there now";
}

}  // namespace
}  // namespace attest
