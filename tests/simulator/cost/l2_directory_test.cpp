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
#include "measured_rows.h"

namespace attest {
namespace {

using Outcome = L2Cache::Outcome;

/// Line 0 to 3 of an entry, each with an L2 set of its own; all in one directory set, of partition 0.
CachedLine line_of(int entry, int line = 0) {
  CachedLine l{static_cast<std::uint32_t>(4 * entry + line), static_cast<std::uint16_t>(4 * entry + line), 0, 15};
  l.directory = 0;
  return l;
}
L2Cache cache_of(int entries) { return {2, 4 * entries, 16, 7, 1}; }

TEST(L2Directory, OfEightEntriesTheTwoOldestLoseTheirCopies) {
  L2Cache cache = cache_of(8);
  for (int entry = 0; entry < 7; ++entry) cache.read(line_of(entry), 1);
  cache.read(line_of(0, 3), 1);  // the oldest is asked for: none goes, and entry 1 is the oldest now
  for (int entry = 0; entry < 7; ++entry) EXPECT_EQ(cache.read(line_of(entry), 1), Outcome::near_hit) << entry;
  EXPECT_EQ(cache.read(line_of(7), 1), Outcome::miss);
  for (const int gone : {1, 2}) EXPECT_EQ(cache.read(line_of(gone), 1), Outcome::far_hit) << gone;
}

TEST(L2Directory, AllCopiesOfAnEntryGo) {
  L2Cache cache = cache_of(8);
  for (int entry = 0; entry < 8; ++entry)
    for (int line = 0; line < 4; ++line) cache.read(line_of(entry, line), 1);
  for (int line = 0; line < 4; ++line) EXPECT_EQ(cache.read(line_of(7, line), 1), Outcome::near_hit) << line;
  for (int line = 0; line < 4; ++line) EXPECT_EQ(cache.read(line_of(0, line), 1), Outcome::far_hit) << line;
}

TEST(L2Directory, WhereThereAreTooManyAReadAtHomeDropsTheOldest) {
  L2Cache cache = cache_of(7);
  for (int entry = 0; entry < 7; ++entry) cache.read(line_of(entry), 1);
  cache.read(line_of(5), 0);
  cache.read(line_of(5), 0);  // six are not too many
  for (int entry = 1; entry < 7; ++entry) EXPECT_EQ(cache.read(line_of(entry), 1), Outcome::near_hit) << entry;
  EXPECT_EQ(cache.read(line_of(0), 1), Outcome::far_hit);
}

TEST(L2Directory, AnEntryWithoutCopiesIsNone) {
  L2Cache cache = cache_of(9);
  for (int entry = 0; entry < 6; ++entry) cache.read(line_of(entry), 1);
  cache.write(line_of(3), 0);  // its copy is stale
  for (const int entry : {6, 7}) cache.read(line_of(entry), 1);
  for (const int entry : {0, 1, 2, 4, 5, 6, 7}) EXPECT_EQ(cache.read(line_of(entry), 1), Outcome::near_hit) << entry;
}

TEST(L2Directory, LinesThatNobodyNotesAndCachesWithoutOneLoseNone) {
  L2Cache noted = cache_of(12), without(2, 48, 16, 7);
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
/// `head_parts`: how far what is read and what crosses are off on average. A launch has 35,000 sectors a side of its
/// own, the least that any row has beyond its lines.
Off parts_of_lines(const char* name, const std::string& file, bool with_directory) {
  const DeviceSpec device = load_device(name);
  const LineSampler sampler(device, 4);
  Off off;
  int rows = 0;
  for (const MeasuredRow& row : measured_rows(file)) {
    if (row.at("how") == "read") continue;  // the other half, of 64-byte halves
    const auto number = [&](const char* column) { return std::stoll(row.at(column)); };
    const std::int64_t row_bytes = number("row_bytes"), base = number("base"), stride = 24 * 128, together = 64;
    const int sides = static_cast<int>(number("sides"));
    const std::int64_t lines = (base % 128 + row_bytes + 127) / 128, last = (number("mib") << 20) / (128 * lines);
    L2Cache cache(2, sampler.sets(), static_cast<int>(device.l2_ways), static_cast<int>(device.l2_dirty_ways),
                  with_directory ? sampler.directory_sets() : 0);
    for (int round = 0; round < 5; ++round)
      for (std::int64_t first = 0; first < last; first += together)
        for (int side = 0; side < sides; ++side)
          for (std::int64_t r = first; r < std::min(first + together, last); ++r)
            sampler.for_lines(base + r * stride, base + r * stride + row_bytes, [&](CachedLine line) {
              line.whole = 1;
              cache.read(line, sides == 1 ? 0 : side ^ static_cast<int>(first / together & 1));
            });
    const double read = static_cast<double>(cache.filled_sectors()) * 32 / sampler.share(),
                 crossed = static_cast<double>(cache.crossed_sectors()) / sampler.share() + 35e3 * sides;
    off.dram += std::abs(read / std::stod(row.at("dram__bytes_read.sum")) - 1);
    off.crossing += std::abs(crossed / std::stod(row.at("lts__t_sectors_srcunit_ltcfabric.sum")) - 1);
    ++rows;
  }
  EXPECT_EQ(rows, 68);
  off.dram /= rows, off.crossing /= rows;
  std::printf("%s, %s directory: DRAM reads %.4f off, crossings %.4f\n", name, with_directory ? "with a" : "without",
              off.dram, off.crossing);
  return off;
}

TEST(L2Directory, RowsOfLinesThatAreNoNeighboursCrossMoreOften) {
  const Off h200 = parts_of_lines("h200", ATTEST_H200_L2 "/head_parts.csv", true),
            h100 = parts_of_lines("h100", ATTEST_H100 "/head_parts.csv", true);
  EXPECT_LT(h200.dram, 0.024);
  EXPECT_LT(h200.crossing, 0.03);
  EXPECT_LT(h100.dram, 0.019);
  EXPECT_LT(h100.crossing, 0.041);
  EXPECT_GT(parts_of_lines("h200", ATTEST_H200_L2 "/head_parts.csv", false).crossing, 0.08);
}

}  // namespace
}  // namespace attest
