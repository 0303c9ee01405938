#include "attest/simulator/l2_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "csv.h"

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
  EXPECT_EQ(cache.read(line(1), 0), Outcome::near_hit);
  cache.write(line(3), 0);  // rewriting costs nothing
  EXPECT_EQ(cache.written_back_sectors(), 4);
  for (std::uint32_t t = 10; t < 14; ++t) cache.read(line(t), 0);
  EXPECT_EQ(cache.written_back_sectors(), 12);
  EXPECT_EQ(cache.dirty_sectors(), 0);
}

TEST(L2Cache, OneOfTheOlderHalfIsCleaned) {
  std::map<std::uint32_t, int> cleaned;
  for (std::uint32_t first = 0; first < 4; ++first) {
    L2Cache cache(1, 64, 16, 7);
    for (std::uint32_t t = 0; t < 8; ++t)
      for (int set = 0; set < 64; ++set) cache.write(line(t, 0, set), 0);
    EXPECT_EQ(cache.written_back_sectors(), 64 * 4);
    // a line that is still dirty may be written again for nothing
    for (int set = 0; set < 64; ++set) {
      const std::int64_t before = cache.written_back_sectors();
      cache.write(line(first, 0, set), 0);
      cleaned[first] += cache.written_back_sectors() > before ? 1 : 0;
    }
    for (std::uint32_t t = 4; t < 8; ++t) {
      const std::int64_t before = cache.dirty_sectors();
      for (int set = 0; set < 64; ++set) cache.write(line(t, 0, set), 0);
      EXPECT_EQ(cache.dirty_sectors(), before);
    }
  }
  for (std::uint32_t t = 0; t < 4; ++t) EXPECT_NEAR(cleaned[t], 16, 10) << t;
}

/// `rewrite_steps` of bench/hardware/respill_experiments.cpp: MiB that were written to DRAM, in lines that fall into
/// sets at random.
double rewritten(const std::string& how, int steps, int rounds) {
  constexpr int sets = 15'360, lines_a_step = 132 * 4 * 32;
  L2Cache cache(2, sets, 16, 7);
  std::mt19937 of_order(7);
  const auto move = [&](int step, bool read) {
    std::mt19937 random(static_cast<std::uint32_t>(step));
    for (std::uint32_t i = 0; i < lines_a_step; ++i) {
      const auto home = static_cast<int>(random() & 1);
      const CachedLine l =
          line(static_cast<std::uint32_t>(step) * lines_a_step + i, home, static_cast<int>(random() % sets));
      if (read)
        cache.read(l, home);
      else
        cache.write(l, home);
    }
  };
  if (steps == 0) {
    for (const char c : how)
      for (int step = 0; step < ((c | 32) == 'c' ? 3 : 5); ++step) move(((c | 32) - 'a') * 5 + step, c >= 'a');
  } else {
    std::vector<int> order(static_cast<std::size_t>(steps));
    std::iota(order.begin(), order.end(), 0);
    for (int round = 0; round < rounds; ++round) {
      for (const int step : order) move(step, false);
      if (how == "there_and_back") std::reverse(order.begin(), order.end());
      if (how == "at_random") std::shuffle(order.begin(), order.end(), of_order);
    }
  }
  return static_cast<double>(cache.written_back_sectors()) * 32 / (1 << 20);
}

TEST(L2Cache, LinesWrittenAgainAreCleanedAsMeasured) {
  std::ifstream in(ATTEST_H200_L2 "/rewrite_steps.csv");
  std::string text;
  std::getline(in, text);
  std::map<std::string, std::pair<double, int>> off;
  while (std::getline(in, text)) {
    const std::vector<std::string> cells = csv_cells(text);
    const int steps = std::stoi(cells[1]), rounds = std::stoi(cells[2]);
    const double counted = std::stod(cells[4]) / (1 << 20), predicted = rewritten(cells[0], steps, rounds);
    std::printf("%-14s %2d steps, %d rounds: %6.2f MiB counted, %6.2f predicted\n", cells[0].c_str(), steps, rounds,
                counted, predicted);
    auto& [sum, n] = off[steps == 0 ? "which" : cells[0]];
    sum += counted < 1 ? 0 : std::abs(predicted / counted - 1), n += counted < 1 ? 0 : 1;
  }
  for (const auto& [how, sum] : off) {
    std::printf("%s: off by %.3f on average\n", how.c_str(), sum.first / sum.second);
    EXPECT_LE(sum.first / sum.second, how == "which" ? 0.13 : 0.09) << how;
  }
  EXPECT_EQ(off.size(), 4);
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

TEST(L2Cache, ALineOfEvictFirstTakesNoOtherLinesPlace) {
  L2Cache cache(1, 1, 4, 4);
  for (std::uint32_t t = 0; t < 4; ++t) cache.read(line(t), 0);
  for (std::uint32_t t = 10; t < 20; ++t) EXPECT_EQ(cache.read(line(t), 0, true), Outcome::miss);
  EXPECT_EQ(cache.read(line(19), 0, true), Outcome::miss) << "it was not kept";
  for (std::uint32_t t = 0; t < 4; ++t) EXPECT_EQ(cache.read(line(t), 0), Outcome::near_hit) << t;
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
}

TEST(L2Cache, ReadsOfWholeLinesBringAllOfThem) {
  L2Cache cache(2, 1, 4, 4);
  const auto sectors = [](int bits, bool whole) { return CachedLine{1, 0, 0, static_cast<std::uint8_t>(bits), whole}; };
  EXPECT_EQ(cache.read(sectors(1, true), 1), Outcome::miss);
  EXPECT_EQ(cache.crossed_sectors(), 4);
  EXPECT_EQ(cache.read(sectors(8, false), 1), Outcome::near_hit);
  EXPECT_EQ(cache.read(sectors(8, false), 0), Outcome::near_hit);
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

using Row = std::map<std::string, std::string>;

std::vector<Row> measured(const char* file) {
  std::ifstream in(std::string(ATTEST_H200_L2 "/") + file);
  std::string text;
  std::getline(in, text);
  const std::vector<std::string> names = csv_cells(text);
  std::vector<Row> rows;
  while (std::getline(in, text)) {
    const std::vector<std::string> cells = csv_cells(text);
    rows.emplace_back();
    for (std::size_t i = 0; i < names.size(); ++i) rows.back()[names[i]] = cells[i];
  }
  return rows;
}

/// Calls f(row, sectors that each line crosses) for each pair of a benchmark's rows, of 8 and of 16 MiB, of which each
/// `far`th line can cross. What a launch crosses by itself is in both.
template <class F>
void for_slopes(const char* file, double far, F&& f) {
  const std::vector<Row> rows = measured(file);
  ASSERT_FALSE(rows.empty());
  const auto counted = [](const Row& row) { return std::stod(row.at("lts__t_sectors_srcunit_ltcfabric.sum")); };
  for (std::size_t i = 0; i + 1 < rows.size(); i += 2)
    f(rows[i], (counted(rows[i + 1]) - counted(rows[i])) * far / (8 << 20) * 128);
}

TEST(L2Cache, PrefetchesCrossAsMeasured) {
  for_slopes("prefetched_read.csv", 1, [](const Row& row, double crossed) {
    L2Cache cache(2, 1, 4, 4);
    const int side = row.at("who") == "its_own" ? 0 : 1;
    const std::string &prefetch = row.at("prefetch"), &read = row.at("read");
    if (prefetch != "none") cache.prefetch(line(1, 0), side);
    if (read == "prefetch_and_read_box") cache.prefetch(line(1, 0), side);
    if (read != "none") cache.read(line(1, 0), side, read == "read_box_evict_first");
    EXPECT_NEAR(static_cast<double>(cache.crossed_sectors()), crossed, 0.05)
        << row.at("who") << ' ' << prefetch << ' ' << read;
  });
}

TEST(L2Cache, PartsOfLinesCrossAsMeasured) {
  for_slopes("parts_of_lines.csv", 2, [](const Row& row, double crossed) {
    L2Cache cache(2, 1, 4, 4);
    const int part = (1 << std::stoi(row.at("row_bytes")) / 32) - 1;
    for (const int wanted : {part, 15 & ~part}) {
      if (wanted == 0 || (wanted != part && row.at("rest") == "alone")) continue;
      CachedLine some = line(1);
      some.sectors = wanted & 15, some.whole = row.at("op") == "read_async_line";
      if (row.at("op") == "write")
        cache.write(some, 1);
      else
        cache.read(some, 1);
    }
    EXPECT_NEAR(static_cast<double>(cache.crossed_sectors()), crossed, 0.05)
        << row.at("op") << ' ' << row.at("row_bytes") << ' ' << row.at("rest");
  });
}

TEST(L2Cache, AnyNumberOfReadersOfASideCrossOnce) {
  for_slopes("shared_read.csv", 2, [](const Row& row, double crossed) {
    L2Cache cache(2, 1, 4, 4);
    const bool both = row.at("who") == "both_sides" || row.at("who") == "every_gpc";
    for (int reader = 0; reader < 4 * std::stoi(row.at("rounds")); ++reader)
      for (const int side : {0, 1})
        for (const int home : {0, 1})
          if (side == 0 || both) cache.read(line(static_cast<std::uint32_t>(home), home), side);
    EXPECT_NEAR(static_cast<double>(cache.crossed_sectors()), crossed, 0.07)
        << row.at("who") << ' ' << row.at("how") << ' ' << row.at("rounds");
  });
}

}  // namespace
}  // namespace attest
