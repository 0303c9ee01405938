// Which lines L2 keeps, cleans and evicts.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "l2_lines.h"

namespace attest {
namespace {

using Outcome = L2Cache::Outcome;

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

// A line of set 0 whose copy lies in set 4: lines of set 4 drive the copy out, those of set 0 the line at home.
TEST(L2Cache, ACopyMayLieInTheSetBeside) {
  CachedLine far = line(7);
  far.paired = 1;
  L2Cache cache(2, 5, 1, 1);
  EXPECT_EQ(cache.read(far, 1), Outcome::miss);
  cache.read(line(8, 1, 0), 1);  // of the copy's partition, in the line's own set
  EXPECT_EQ(cache.read(far, 1), Outcome::near_hit);
  cache.read(line(9, 1, 4), 1);
  EXPECT_EQ(cache.read(far, 1), Outcome::far_hit);
  cache.read(line(10, 0, 4), 0);  // of its home, in the set beside
  EXPECT_EQ(cache.read(far, 0), Outcome::near_hit);
  cache.read(line(11, 0, 0), 0);
  EXPECT_EQ(cache.read(far, 0), Outcome::miss);
  cache.read(far, 1);
  cache.write(far, 0);  // its copy is stale
  EXPECT_EQ(cache.read(far, 1), Outcome::far_hit);
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
  cache.write(line(3), 0);  // one dirty way too many: at the next access 1 becomes clean and stays
  EXPECT_EQ(cache.written_back_sectors(), 0);
  EXPECT_EQ(cache.read(line(1), 0), Outcome::near_hit);
  EXPECT_EQ(cache.written_back_sectors(), 4);
  cache.write(line(3), 0);  // rewriting costs nothing
  EXPECT_EQ(cache.read(line(1), 0), Outcome::near_hit);
  EXPECT_EQ(cache.written_back_sectors(), 4);
  for (std::uint32_t t = 10; t < 14; ++t) cache.read(line(t), 0);
  EXPECT_EQ(cache.written_back_sectors(), 12);
  EXPECT_EQ(cache.dirty_sectors(), 0);
}

// Capital letters are writes, others reads, of a set of which seven lines may stay dirty.
std::int64_t cleaned(const std::string& accesses) {
  L2Cache cache(1, 1, 16, 7);
  for (const char c : accesses)
    if (const CachedLine l = line(static_cast<std::uint32_t>(c | 32)); c < 'a')
      cache.write(l, 0);
    else
      cache.read(l, 0);
  return cache.written_back_sectors() / 4;
}

// As an H200 does (l2_clean).
TEST(L2Cache, TheAccessThatFollowsAnEighthDirtyLineHasTheOldestCleaned) {
  EXPECT_EQ(cleaned("ABCDEFGH"), 0);
  for (const char* access : {"a", "h", "i"}) EXPECT_EQ(cleaned(std::string("ABCDEFGH") + access), 1) << access;
  EXPECT_EQ(cleaned("ABCDEFGHaaa"), 1);
  EXPECT_EQ(cleaned("ABCDEFGHI"), 1);
  EXPECT_EQ(cleaned("ABCDEFGHIABCDEFGHI"), 10);  // always the one that comes next
  EXPECT_EQ(cleaned("ABCDEFGHABCDEFGH"), 1);     // A, with what is written then
  EXPECT_EQ(cleaned("AaBbCcDdEeFfGgHhAaBbCcDdEeFfGgHh"), 9);
  EXPECT_EQ(cleaned("ABCDEFGHbA"), 1);   // A is clean, and dirty again
  EXPECT_EQ(cleaned("ABCDEFGHbAB"), 2);  // and now C: reads make lines younger too
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
  EXPECT_EQ(cache.written_back_sectors(), 4);
  cache.read(line(4), 0);
  EXPECT_EQ(cache.written_back_sectors(), 8);
  cache.read(line(6), 0);  // takes 2's place, though 5 is older
  EXPECT_EQ(cache.read(line(5), 0), L2Cache::Outcome::near_hit);
  EXPECT_EQ(cache.written_back_sectors(), 8);
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

}  // namespace
}  // namespace attest
