#include "attest/simulator/l2_cache.h"

#include <gtest/gtest.h>

#include <vector>

namespace attest {
namespace {

using Outcome = L2Cache::Outcome;

CachedLine line(std::uint32_t tag, int home = 0, int set = 0) {
  return {tag, static_cast<std::uint16_t>(set), static_cast<std::uint8_t>(home), 15};
}

TEST(L2Cache, HoldsItsWaysAndNoMore) {
  L2Cache cache(1, 1, 4, 4);
  for (std::uint32_t t = 0; t < 4; ++t) EXPECT_EQ(cache.read(line(t), 0), Outcome::miss);
  for (std::uint32_t t = 0; t < 4; ++t) EXPECT_EQ(cache.read(line(t), 0), Outcome::near_hit);
  EXPECT_EQ(cache.read(line(4), 0), Outcome::miss);  // evicts 0, the least recent
  EXPECT_EQ(cache.read(line(1), 0), Outcome::near_hit);
  EXPECT_EQ(cache.read(line(0), 0), Outcome::miss);
}

TEST(L2Cache, EmptyItHoldsNothingAndHasCountedNothingMore) {
  L2Cache cache(2, 1, 4, 2);
  for (std::uint32_t t = 0; t < 3; ++t) cache.write(line(t), 1);  // more are dirty than may be
  cache.read(line(9), 0);
  const std::int64_t filled = cache.filled_sectors(), written = cache.written_back_sectors();
  cache.empty();
  EXPECT_EQ(cache.dirty_sectors(), 0);
  EXPECT_EQ(cache.filled_sectors(), filled);
  EXPECT_EQ(cache.written_back_sectors(), written);
  EXPECT_EQ(cache.read(line(9), 0), Outcome::miss);
  for (std::uint32_t t = 0; t < 3; ++t) EXPECT_EQ(cache.read(line(t), 1), Outcome::miss);
  EXPECT_EQ(cache.written_back_sectors(), written);  // none was dirty any more
}

TEST(L2Cache, CyclicReadsOfOneLineTooManyNeverHit) {
  L2Cache cache(1, 1, 4, 4);
  for (int round = 0; round < 5; ++round)
    for (std::uint32_t t = 0; t < 5; ++t) EXPECT_EQ(cache.read(line(t), 0), Outcome::miss);
}

TEST(L2Cache, BothSidesKeepCopies) {
  L2Cache cache(2, 1, 2, 2);
  EXPECT_EQ(cache.read(line(7, 0), 1), Outcome::miss);  // far: fills home and near
  EXPECT_EQ(cache.read(line(7, 0), 0), Outcome::near_hit);
  EXPECT_EQ(cache.read(line(7, 0), 1), Outcome::near_hit);
  cache.read(line(8, 1), 1);
  cache.read(line(9, 1), 1);  // side 1 has lost its copy of 7, home has not
  EXPECT_EQ(cache.read(line(7, 0), 1), Outcome::far_hit);
}

TEST(L2Cache, ANearHitDoesNotRefreshHome) {
  L2Cache cache(2, 1, 2, 2);
  cache.read(line(1, 0), 1);
  cache.read(line(2, 0), 0);
  cache.read(line(1, 0), 1);  // near: home still holds 1 as the least recent
  cache.read(line(3, 0), 0);  // evicts 1 at home
  EXPECT_EQ(cache.read(line(2, 0), 0), Outcome::near_hit);
  EXPECT_EQ(cache.read(line(1, 0), 1), Outcome::near_hit);  // the copy outlives it
  EXPECT_EQ(cache.read(line(1, 0), 0), Outcome::miss);
}

TEST(L2Cache, DirtyLinesAreWrittenBackWhenTheyMustGo) {
  L2Cache cache(1, 1, 4, 2);
  cache.write(line(1), 0);
  cache.write(line(2), 0);
  EXPECT_EQ(cache.written_back_sectors(), 0);
  EXPECT_EQ(cache.dirty_sectors(), 8);
  cache.write(line(3), 0);  // one dirty way too many: 1 becomes clean and stays
  EXPECT_EQ(cache.written_back_sectors(), 4);
  EXPECT_EQ(cache.read(line(1), 0), Outcome::near_hit);  // and 2 at the next access
  EXPECT_EQ(cache.written_back_sectors(), 8);
  cache.write(line(3), 0);  // rewriting costs nothing
  EXPECT_EQ(cache.read(line(1), 0), Outcome::near_hit);
  EXPECT_EQ(cache.written_back_sectors(), 8);
  for (std::uint32_t t = 10; t < 14; ++t) cache.read(line(t), 0);
  EXPECT_EQ(cache.written_back_sectors(), 12);
  EXPECT_EQ(cache.dirty_sectors(), 0);
}

// By one sector of the line that goes, where all others have four.
TEST(L2Cache, TheLineThatTreePlruNamesByWritesIsCleaned) {
  const auto cleaned = [](const std::vector<std::uint32_t>& accesses, std::uint32_t one_sector) {
    L2Cache cache(1, 1, 16, 7);
    for (const std::uint32_t t : accesses) {
      CachedLine l = line(t % 100);
      if (t % 100 == one_sector) l.sectors = 1;
      if (t < 100)
        cache.write(l, 0);
      else
        cache.read(l, 0);
    }
    return cache.written_back_sectors() == 1;
  };
  EXPECT_TRUE(cleaned({0, 1, 2, 3, 4, 5, 6, 7}, 0));
  // a line that is written again turns away from all that its half of the tree holds
  EXPECT_TRUE(cleaned({0, 1, 2, 3, 4, 5, 6, 0, 7}, 2));
  EXPECT_FALSE(cleaned({0, 1, 2, 3, 4, 5, 6, 0, 7}, 1));           // which is the oldest
  EXPECT_TRUE(cleaned({0, 1, 2, 3, 4, 5, 6, 0, 102, 103, 7}, 2));  // reads do not
  EXPECT_TRUE(cleaned({4, 5, 6, 7, 0, 1, 2, 3}, 4));
}

TEST(L2Cache, LinesThatAreToGoAreCleanedBeforeOthersAndGoOnceTheyAreClean) {
  L2Cache cache(1, 1, 4, 2);
  cache.write(line(1), 0);
  cache.write(line(2), 0);
  cache.read(line(2), 0, true);
  cache.read(line(3), 0), cache.read(line(4), 0);
  cache.read(line(5), 0);  // takes 1's place, the oldest: 2 is dirty
  EXPECT_EQ(cache.written_back_sectors(), 4);
  EXPECT_EQ(cache.read(line(2), 0, true), L2Cache::Outcome::near_hit);
  cache.write(line(3), 0);
  cache.write(line(4), 0);  // three are dirty, of which 2 is to go
  EXPECT_EQ(cache.written_back_sectors(), 8);
  cache.read(line(4), 0);  // and now 3
  EXPECT_EQ(cache.written_back_sectors(), 12);
  cache.read(line(6), 0);  // takes 2's place, though 5 is older
  EXPECT_EQ(cache.read(line(5), 0), L2Cache::Outcome::near_hit);
  EXPECT_EQ(cache.written_back_sectors(), 12);
}

TEST(L2Cache, AWriteFromTheHomeSideDropsTheOtherCopy) {
  L2Cache cache(2, 1, 4, 4);
  cache.read(line(5, 0), 1);
  cache.write(line(5, 0), 0);
  EXPECT_EQ(cache.read(line(5, 0), 1), Outcome::far_hit);
}

TEST(L2Cache, LinesOfEvictFirstGoBeforeOlderOnes) {
  L2Cache cache(1, 1, 4, 4);
  cache.read(line(1), 0);
  cache.read(line(2), 0, true);
  cache.read(line(3), 0, true);
  cache.read(line(4), 0);
  cache.read(line(5), 0);  // takes 2's place: the oldest of those to go first, though 1 is older
  cache.read(line(6), 0);  // and 3's
  for (const std::uint32_t kept : {1, 4, 5, 6}) EXPECT_EQ(cache.read(line(kept), 0), Outcome::near_hit) << kept;
  cache.read(line(7), 0);  // none is left: plain LRU again
  EXPECT_EQ(cache.read(line(4), 0), Outcome::near_hit);
  EXPECT_EQ(cache.read(line(1), 0), Outcome::miss);
}

TEST(L2Cache, ALineOfEvictFirstTakesTheOldestPlaceWhereNoneOfItsKindIs) {
  L2Cache cache(1, 1, 4, 4);
  for (std::uint32_t t = 0; t < 4; ++t) cache.read(line(t), 0);
  EXPECT_EQ(cache.read(line(10), 0, true), Outcome::miss);
  EXPECT_EQ(cache.read(line(10), 0, true), Outcome::near_hit);
  for (std::uint32_t t = 11; t < 20; ++t) EXPECT_EQ(cache.read(line(t), 0, true), Outcome::miss);
  for (std::uint32_t t = 1; t < 4; ++t) EXPECT_EQ(cache.read(line(t), 0), Outcome::near_hit) << t;
  EXPECT_EQ(cache.read(line(0), 0), Outcome::miss);
}

TEST(L2Cache, TheLastAccessSaysWhetherALineIsTheFirstToGo) {
  // of lines that live with side 0, three older ones and one that the other side has read with evict_first
  const auto then_used = [](auto use) {
    L2Cache cache(2, 1, 4, 4);
    for (std::uint32_t t = 10; t < 13; ++t) cache.read(line(t), 0);
    cache.read(line(1), 1, true);
    use(cache);
    cache.read(line(2), 0);
    return cache.read(line(1), 0);
  };
  EXPECT_EQ(then_used([](L2Cache&) {}), Outcome::miss);
  EXPECT_EQ(then_used([](L2Cache& cache) { cache.read(line(1), 0); }), Outcome::near_hit);
  EXPECT_EQ(then_used([](L2Cache& cache) { cache.write(line(1), 0); }), Outcome::near_hit);
  EXPECT_EQ(then_used([](L2Cache& cache) { cache.write(line(1), 1); }), Outcome::near_hit);
  EXPECT_EQ(then_used([](L2Cache& cache) { cache.read(line(1), 1); }), Outcome::miss)
      << "a near hit says nothing at home";
}

TEST(L2Cache, LinesOfEvictFirstDisplaceTheirOwnKind) {
  L2Cache cache(1, 1, 4, 4);
  for (std::uint32_t t = 0; t < 3; ++t) cache.read(line(t), 0);
  for (std::uint32_t t = 10; t < 20; ++t) {
    EXPECT_EQ(cache.read(line(t), 0, true), Outcome::miss);
    EXPECT_EQ(cache.read(line(t), 0, true), Outcome::near_hit) << "in the one way that is left to them";
  }
  for (std::uint32_t t = 0; t < 3; ++t) EXPECT_EQ(cache.read(line(t), 0), Outcome::near_hit) << t;
}

TEST(L2Cache, EvictFirstHoldsOfBothCopies) {
  L2Cache cache(2, 1, 2, 2);
  for (const int side : {0, 1}) cache.read(line(20, side), side);
  cache.read(line(1, 0), 1, true);  // at home on side 0, near on side 1
  for (const int side : {0, 1}) {
    cache.read(line(30, side), side);
    EXPECT_EQ(cache.read(line(20, side), side), Outcome::near_hit) << "the copy on side " << side << " goes first";
  }
}

// Rows that fill lines in part: heads that follow each other share them.
TEST(L2Cache, ALineIsThereSectorBySector) {
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

TEST(L2Cache, PartsOfALineAreWrittenBackOnce) {
  L2Cache cache(1, 1, 4, 1);
  cache.write({3, 0, 0, 3}, 0);
  cache.write({3, 0, 0, 6}, 0);
  EXPECT_EQ(cache.dirty_sectors(), 3);
  EXPECT_EQ(cache.read({3, 0, 0, 7}, 0), Outcome::near_hit);
  EXPECT_EQ(cache.read({3, 0, 0, 8}, 0), Outcome::miss) << "nobody wrote it";
  cache.write(line(4), 0);
  EXPECT_EQ(cache.written_back_sectors(), 3);
  EXPECT_EQ(cache.dirty_sectors(), 4);
}

TEST(L2Cache, WhatLivesOnTheOtherSideCrosses) {
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
TEST(L2Cache, ReadsBringHalvesOfLines) {
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

TEST(L2Cache, ReadsOfWholeLinesBringAllOfThem) {
  L2Cache cache(2, 1, 4, 4);
  const auto sectors = [](int bits, bool whole) { return CachedLine{1, 0, 0, static_cast<std::uint8_t>(bits), whole}; };
  EXPECT_EQ(cache.read(sectors(1, true), 1), Outcome::miss);
  EXPECT_EQ(cache.crossed_sectors(), 4);
  EXPECT_EQ(cache.read(sectors(8, false), 1), Outcome::near_hit);
  EXPECT_EQ(cache.read(sectors(8, false), 0), Outcome::near_hit);
  EXPECT_EQ(cache.filled_sectors(), 4);
}

TEST(L2Cache, APrefetchBringsNothingNear) {
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

TEST(L2Cache, ReadEvictFirstWhatWasPrefetchedGoesFirst) {
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
TEST(L2Cache, WhatIsWrittenInPartIsReadWhenItIsCleaned) {
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
TEST(L2Cache, TwoLinesOfASetMayBeWrittenInPart) {
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
TEST(L2Cache, ALineThatWasReadIsNotInPart) {
  for (const int side : {0, 1}) {
    L2Cache cache(2, 1, 8, 8);
    for (const std::uint32_t tag : {1, 2}) cache.write(bytes_of(tag, 0, 80), side);
    cache.read(bytes_of(2, 0, 80), side);
    cache.write(bytes_of(3, 0, 80), side);
    EXPECT_EQ(cache.completed_sectors(), 0);
    EXPECT_EQ(cache.incomplete_sectors(), 2);
  }
}

TEST(L2Cache, WhatIsWrittenInPartIsReadFromDRAMWhereItIsAskedFor) {
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
