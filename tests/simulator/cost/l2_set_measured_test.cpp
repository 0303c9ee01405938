// L2's policy beside one set of it, access by access (docs/results/h200-l2.md).
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "attest/simulator/l2_cache.h"
#include "measured_rows.h"

namespace attest {
namespace {

using Outcome = L2Cache::Outcome;

/// By what a read took, from its line's side (a) and from the other one (b), on either GPU.
Outcome outcome(char actor, int cycles) {
  if (cycles < 460) return Outcome::near_hit;
  return actor == 'b' && cycles < 650 ? Outcome::far_hit : Outcome::miss;
}

struct Compared {
  int reads = 0, wrong = 0, misses = 0;
};

constexpr int not_known = 100;  // first accesses of a sequence: what its set held before is not known

/// A sequence through a cache of one set, whose lines live with SMs `a`.
Compared compared(const MeasuredRow& row) {
  L2Cache cache(2, 1, 16, 7);
  std::istringstream accesses(row.at("accesses")), cycles(row.at("cycles"));
  Compared of;
  std::string access;
  int took = 0;
  for (int i = 0; accesses >> access && cycles >> took; ++i) {
    const int side = access[0] == 'a' ? 0 : 1;
    const CachedLine line{static_cast<std::uint32_t>(std::stoi(access.substr(2))), 0, 0, 15};
    if (access[1] == 'w') {
      cache.write(line, side);
      continue;
    }
    const Outcome predicted = cache.read(line, side, access[1] != 'r'), seen = outcome(access[0], took);
    if (i < not_known) continue;
    ++of.reads;
    of.wrong += predicted == seen ? 0 : 1;
    of.misses += seen == Outcome::miss ? 1 : 0;
  }
  return of;
}

/// What is left, 1 in 200 reads, is where lines are dirty: which ones are clean hangs on their ways, which nobody
/// knows.
void expect_as_measured(const std::string& file) {
  Compared all, clean;
  for (const MeasuredRow& row : measured_rows(file)) {
    const Compared of = compared(row);
    std::printf(
        "%2s, %s lines, writes %s, evict_first %s, last uses %s of ten: %4d reads, %3d from DRAM, %2d predicted "
        "otherwise\n",
        row.at("actors").c_str(), row.at("lines").c_str(), row.at("writes").c_str(), row.at("evict_first").c_str(),
        row.at("last_uses").c_str(), of.reads, of.misses, of.wrong);
    EXPECT_GT(of.reads, 900);
    EXPECT_GT(of.misses, 5);
    for (Compared* const sum : {&all, &clean}) {
      if (sum == &clean && row.at("writes") != "0") continue;
      sum->reads += of.reads, sum->wrong += of.wrong;
    }
  }
  std::printf("%d of %d reads predicted otherwise, %d of %d where nothing is written\n", all.wrong, all.reads,
              clean.wrong, clean.reads);
  EXPECT_GT(clean.reads, 35'000);
  EXPECT_LE(clean.wrong, 0.0013 * clean.reads);
  EXPECT_LE(all.wrong, 0.005 * all.reads);
}

TEST(L2Set, AccessByAccessAsOnAnH200) { expect_as_measured(ATTEST_H200_L2 "/one_set.csv"); }
TEST(L2Set, AccessByAccessAsOnAnH100) { expect_as_measured(ATTEST_H100 "/one_set.csv"); }

/// What each read of a file's sequences was, but for those that are not counted.
std::vector<Outcome> outcomes(const std::string& file) {
  std::vector<Outcome> seen;
  for (const MeasuredRow& row : measured_rows(file)) {
    std::istringstream accesses(row.at("accesses")), cycles(row.at("cycles"));
    std::string access;
    int took = 0;
    for (int i = 0; accesses >> access && cycles >> took; ++i)
      if (i >= not_known && access[1] != 'w') seen.push_back(outcome(access[0], took));
  }
  return seen;
}

TEST(L2Set, BothGpusHitAndMissAlike) {
  const std::vector<Outcome> h200 = outcomes(ATTEST_H200_L2 "/one_set.csv");
  EXPECT_EQ(h200.size(), 66'709U);
  EXPECT_TRUE(h200 == outcomes(ATTEST_H100 "/one_set.csv"));
}

/// Entries of one directory set (`l2_copies`), whose lines have sets of their own, and lines of the copies' side in
/// sets of the first entries' first lines: reads that are predicted otherwise than they were.
struct Directory {
  int reads = 0, far = 0, wrong = 0;
};
Directory in_directory(const std::string& file) {
  constexpr std::uint16_t entries = 12, fillers = 18;
  L2Cache cache(2, 4 * entries, 16, 7, 1);
  Directory of;
  for (const MeasuredRow& row : measured_rows(file)) {
    std::istringstream accesses(row.at("accesses"));
    const std::string& outcomes = row.at("outcomes");
    std::string access;
    for (std::size_t i = 0; accesses >> access; ++i) {
      const auto number = static_cast<std::uint16_t>(std::stoi(access.substr(2)));
      const auto filler = static_cast<std::uint16_t>(number - 4 * entries);
      CachedLine line{number, number, 0, 15};
      line.directory = 0;
      if (number >= 4 * entries)
        line = {std::uint32_t{1000} + filler, static_cast<std::uint16_t>(4 * (filler / fillers)), 1, 15};
      const int side = access[0] == 'a' ? 0 : 1;
      if (access[1] == 'w') {
        cache.write(line, side);
        continue;
      }
      const bool near = cache.read(line, side) == Outcome::near_hit;
      if (i < not_known || line.home != 0) continue;
      ++of.reads, of.far += side == 1 && outcomes[i] != 'n' ? 1 : 0, of.wrong += near != (outcomes[i] == 'n') ? 1 : 0;
    }
  }
  std::printf("%s: %d reads, %d beyond the near partition, %d predicted otherwise\n", file.c_str(), of.reads, of.far,
              of.wrong);
  return of;
}

TEST(L2Set, ADirectorysEntriesTakeTheirCopiesWithThem) {
  for (const char* file : {ATTEST_H200_L2 "/directory_plays.csv", ATTEST_H100 "/directory_plays.csv",
                           ATTEST_H200_L2 "/directory_gone.csv", ATTEST_H100 "/directory_gone.csv"}) {
    const Directory of = in_directory(file);
    EXPECT_GT(of.reads, 5000);
    EXPECT_GT(of.far, 600);
    EXPECT_EQ(of.wrong, 0) << file;
  }
}

/// The line that goes for the one that is read last, of 16 that were read in order before.
TEST(L2Set, VictimsAsMeasured) {
  int experiments = 0, dirty_to_go = 0, wrong = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_H100 "/set_victims.csv")) {
    constexpr std::uint32_t lines = 16;
    const auto line = [](std::uint32_t number) { return CachedLine{number, 0, 0, 15}; };
    L2Cache cache(2, 1, lines, 7);
    for (std::uint32_t number = 0; number < lines; ++number) cache.read(line(number), 0);
    std::istringstream accesses(row.at("accesses"));
    std::set<std::uint32_t> dirty, dirty_last;
    for (std::string access; accesses >> access;) {
      const auto number = static_cast<std::uint32_t>(std::stoi(access.substr(2)));
      dirty_last.erase(number);
      if (access[1] == 'w') {
        cache.write(line(number), 0);
        dirty.insert(number);
      } else {
        cache.read(line(number), 0, access[1] == 'l');
        if (access[1] == 'l' && dirty.contains(number)) dirty_last.insert(number);
      }
    }
    const auto victim = static_cast<std::uint32_t>(std::stoi(row.at("victim")));
    ++experiments;
    dirty_to_go += dirty_last.empty() ? 0 : 1;
    wrong += cache.read(line(victim), 0) == Outcome::near_hit ? 1 : 0;
  }
  std::printf("%d of %d victims predicted otherwise, dirty lines had a last use in %d\n", wrong, experiments,
              dirty_to_go);
  EXPECT_EQ(experiments, 1300);
  EXPECT_GT(dirty_to_go, 300);
  EXPECT_LE(wrong, 1);
}

}  // namespace
}  // namespace attest
