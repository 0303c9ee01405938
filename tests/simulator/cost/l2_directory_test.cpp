// The directory in which a line's home notes what the other partition has copies of (docs/results/h200-l2.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "address.h"
#include "attest/simulator/device.h"
#include "attest/simulator/l2_cache.h"
#include "l2_probe.h"
#include "measured_rows.h"

namespace attest {
namespace {

using Outcome = L2Cache::Outcome;

/// Of whose entries, and whether their copies lie in the sets beside.
class L2DirectoryOf : public ::testing::TestWithParam<std::pair<int, bool>> {
 protected:
  static constexpr int entries = 10;
  int home() const { return GetParam().first; }
  int other() const { return 1 - home(); }
  /// Line 0 to 3 of an entry, each with an L2 set of its own; all in one directory set.
  CachedLine line_of(int entry, int line = 0) const {
    const int number = 4 * entry + line;
    CachedLine l{static_cast<std::uint32_t>(number), static_cast<std::uint16_t>(number),
                 static_cast<std::uint8_t>(home()), 15};
    l.paired = GetParam().second ? 1 : 0;
    l.directory = 0;
    return l;
  }
  Outcome read(int entry, int line = 0) { return cache.read(line_of(entry, line), other()); }
  Outcome read_at_home(int entry) { return cache.read(line_of(entry), home()); }

  L2Cache cache{2, 4 * entries, 16, 7, 1};
};

TEST_P(L2DirectoryOf, OfEightEntriesTheTwoOldestLoseTheirCopies) {
  for (int entry = 0; entry < 7; ++entry) read(entry);
  read(0, 3);  // the oldest is asked for: none goes, and entry 1 is the oldest now
  for (int entry = 0; entry < 7; ++entry) EXPECT_EQ(read(entry), Outcome::near_hit) << entry;
  EXPECT_EQ(read(7), Outcome::miss);
  for (const int gone : {2, 1}) EXPECT_EQ(read(gone), Outcome::far_hit) << gone;
}

TEST_P(L2DirectoryOf, AllCopiesOfAnEntryGo) {
  for (int entry = 0; entry < 8; ++entry)
    for (int line = 0; line < 4; ++line) read(entry, line);
  for (int line = 0; line < 4; ++line) EXPECT_EQ(read(7, line), Outcome::near_hit) << line;
  for (int line = 0; line < 4; ++line) EXPECT_EQ(read(0, line), Outcome::far_hit) << line;
}

TEST_P(L2DirectoryOf, WhereThereAreTooManyAReadAtHomeDropsTheOldest) {
  for (int entry = 0; entry < 7; ++entry) read(entry);
  read_at_home(5);
  read_at_home(5);  // six are not too many
  for (int entry = 1; entry < 7; ++entry) EXPECT_EQ(read(entry), Outcome::near_hit) << entry;
  EXPECT_EQ(read(0), Outcome::far_hit);
}

TEST_P(L2DirectoryOf, AWriteFromTheOtherSideMakesItsEntryTheYoungest) {
  for (int entry = 0; entry < 6; ++entry) read(entry);
  cache.write(line_of(0), other());
  for (const int entry : {6, 7}) read(entry);  // the eighth drops two: 1 and 2
  for (const int entry : {0, 3, 4, 5, 6, 7}) EXPECT_EQ(read(entry), Outcome::near_hit) << entry;
  for (const int gone : {2, 1}) EXPECT_EQ(read(gone), Outcome::far_hit) << gone;
}

TEST_P(L2DirectoryOf, AnEntryWithoutCopiesIsNone) {
  for (int entry = 0; entry < 6; ++entry) read(entry);
  cache.write(line_of(3), home());  // its copy is stale
  for (const int entry : {6, 7}) read(entry);
  for (const int entry : {0, 1, 2, 4, 5, 6, 7}) EXPECT_EQ(read(entry), Outcome::near_hit) << entry;
}

// Lines of the copy's side drive it out of its set: where six are left nothing else goes.
TEST_P(L2DirectoryOf, AnEntryWhoseCopyIsDisplacedIsNone) {
  for (int entry = 0; entry < 6; ++entry) read(entry);
  const CachedLine of = line_of(3);
  for (std::uint32_t tag = 1000; tag < 1016; ++tag)
    cache.read({tag, static_cast<std::uint16_t>(of.set ^ (of.paired << 2)), static_cast<std::uint8_t>(other()), 15},
               other());
  for (const int entry : {6, 7}) read(entry);
  for (const int entry : {0, 1, 2, 4, 5, 6, 7}) EXPECT_EQ(read(entry), Outcome::near_hit) << entry;
  EXPECT_EQ(read(3), Outcome::far_hit);
}

INSTANTIATE_TEST_SUITE_P(L2Directory, L2DirectoryOf,
                         ::testing::Values(std::pair{0, false}, std::pair{1, false}, std::pair{0, true},
                                           std::pair{1, true}));

TEST(L2Directory, LinesThatNobodyNotesAndCachesWithoutOneLoseNone) {
  L2Cache noted(2, 12, 16, 7, 1), without(2, 12, 16, 7);
  const auto line_of = [](int entry) {
    CachedLine line{static_cast<std::uint32_t>(4 * entry), static_cast<std::uint16_t>(entry), 0, 15};
    line.directory = 0;
    return line;
  };
  for (int entry = 0; entry < 12; ++entry) {
    CachedLine line = line_of(entry);
    without.read(line, 1);
    line.directory = CachedLine::not_noted;
    noted.read(line, 1);
  }
  for (int entry = 0; entry < 12; ++entry) {
    CachedLine line = line_of(entry);
    EXPECT_EQ(without.read(line, 1), Outcome::near_hit);
    line.directory = CachedLine::not_noted;
    EXPECT_EQ(noted.read(line, 1), Outcome::near_hit);
  }
}

// However few sets are followed: an entry's four lines are or none of them is, in sets and with tags that differ in the
// two lowest bits alike, and directory sets get as many entries of a range as all of them do.
TEST(L2Directory, OfSetsThatAreFollowedEntriesAreWhole) {
  constexpr std::int64_t bytes = std::int64_t{64} << 20;
  for (const char* device : {"h200", "h100"})
    for (const int sampling : {1, 2, 8, 16, 64, 256}) {
      const LineSampler sampler(load_device(device), sampling);
      struct Entry {
        std::set<unsigned> lines;
        std::uint32_t differs;
      };
      std::map<std::pair<int, std::uint32_t>, Entry> entries;
      sampler.for_lines(0, bytes, [&](const CachedLine& line) {
        ASSERT_LT(line.directory, sampler.directory_sets());
        ASSERT_LT(line.set, sampler.sets());
        const std::uint32_t differs = (line.tag ^ line.set) & 3;
        Entry& of =
            entries.try_emplace({line.directory << 1 | line.home, line.tag & ~3U}, Entry{{}, differs}).first->second;
        EXPECT_EQ(of.differs, differs);
        of.lines.insert(line.tag & 3);
      });
      std::size_t whole = 0;
      for (const auto& [name, of] : entries) whole += of.lines.size() == 4 ? 1 : 0;
      EXPECT_EQ(whole, entries.size()) << device << ", " << sampling;
      const double a_set = static_cast<double>(entries.size()) / (2.0 * sampler.directory_sets());
      const double of_all = bytes / 512.0 / (2.0 * 512 * sampler.sets() / sampler.share() / L2Hash::sets_a_slice);
      EXPECT_NEAR(a_set / of_all, 1, 0.12) << device << ", " << sampling;
    }
}

struct Off {
  double dram = 0, crossing = 0;
};
/// `head_parts`: how far what is read of 24 MiB and what crosses are off on average, of reads that bring whole lines or
/// 64-byte halves. A launch has 35,000 sectors a side of its own, the least that any row has beyond its lines.
Off parts_of_lines(const char* name, const std::string& file, bool whole, bool with_directory) {
  const DeviceSpec device = load_device(name);
  const LineSampler sampler(device, 4);
  const std::int64_t buffer = probe_buffer(device);
  Off off;
  int rows = 0;
  for (const MeasuredRow& row : measured_rows(file)) {
    if ((row.at("how") == "read_async_line") != whole || row.at("mib") != "24") continue;
    const auto number = [&](const char* column) { return std::stoll(row.at(column)); };
    const std::int64_t row_bytes = number("row_bytes"), base = buffer + number("base"), stride = 24 * 128,
                       together = 64;
    const int sides = static_cast<int>(number("sides"));
    const std::int64_t lines = (base % 128 + row_bytes + 127) / 128, last = (number("mib") << 20) / (128 * lines);
    L2Cache cache(2, sampler.sets(), static_cast<int>(device.l2_ways), static_cast<int>(device.l2_dirty_ways),
                  with_directory ? sampler.directory_sets() : 0);
    for (int round = 0; round < 5; ++round)
      for (std::int64_t first = 0; first < last; first += together)
        for (int side = 0; side < sides; ++side)
          for (std::int64_t r = first; r < std::min(first + together, last); ++r)
            sampler.for_lines(base + r * stride, base + r * stride + row_bytes, [&](CachedLine line) {
              line.whole = whole;
              cache.read(line, sides == 1 ? 0 : side ^ static_cast<int>(first / together & 1));
            });
    const double read = static_cast<double>(cache.filled_sectors()) * 32 / sampler.share(),
                 crossed = static_cast<double>(cache.crossed_sectors()) / sampler.share() + 35e3 * sides;
    off.dram += std::abs(read / std::stod(row.at("dram__bytes_read.sum")) - 1);
    off.crossing += std::abs(crossed / std::stod(row.at("lts__t_sectors_srcunit_ltcfabric.sum")) - 1);
    ++rows;
  }
  EXPECT_EQ(rows, 34);
  off.dram /= rows, off.crossing /= rows;
  std::printf("%s, %s, %s directory: DRAM reads %.4f off, crossings %.4f\n", name, whole ? "whole lines" : "halves",
              with_directory ? "with a" : "without", off.dram, off.crossing);
  return off;
}

TEST(L2Directory, RowsOfLinesThatAreNoNeighboursCrossMoreOften) {
  struct Bound {
    const char *name, *file;
    bool whole;
    double dram, crossing, without;
  };
  for (const Bound& b : {Bound{"h200", ATTEST_H200_L2 "/head_parts.csv", true, 0.022, 0.022, 0.09},
                         Bound{"h200", ATTEST_H200_L2 "/head_parts.csv", false, 0.02, 0.042, 0.11},
                         Bound{"h100", ATTEST_H100 "/head_parts.csv", true, 0.017, 0.03, 0.09},
                         Bound{"h100", ATTEST_H100 "/head_parts.csv", false, 0.015, 0.055, 0.11}}) {
    const Off with = parts_of_lines(b.name, b.file, b.whole, true),
              without = parts_of_lines(b.name, b.file, b.whole, false);
    EXPECT_LT(with.dram, b.dram);
    EXPECT_LT(with.crossing, b.crossing);
    EXPECT_GT(without.crossing, b.without);
  }
}

}  // namespace
}  // namespace attest
