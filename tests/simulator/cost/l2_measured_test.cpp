// L2's policy beside what micro-benchmarks counted (docs/results/h200-l2.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "address.h"
#include "attest/simulator/device.h"
#include "attest/simulator/l2_cache.h"
#include "attest/simulator/tile_walk.h"
#include "hardware/page_numbers.h"
#include "l2_lines.h"
#include "l2_probe.h"
#include "measured_rows.h"

namespace attest {
namespace {

/// What SMs do between two barriers of bench/hardware/respill_experiments.cpp.
struct Phase {
  int step;  // -1: 4 MiB that all SMs share
  bool read;
};

/// MiB that go to DRAM, of steps of 528 pages, four of which each SM has, in any order. What others have left dirty is
/// there before, and is cleaned as the oldest.
double written_mib(const std::vector<Phase>& phases, const DeviceSpec& device) {
  using namespace hardware;
  constexpr std::size_t pages_an_sm = 4, lines_a_page = kListedPageBytes / LineSampler::line_bytes;
  const std::vector<int>& sides = sm_sides();
  const std::size_t pages_a_step = pages_an_sm * sides.size();
  static const std::vector<std::uint32_t> pages = scattered_pages(512 * kMiB / kListedPageBytes, 1);
  const LineSampler sampler(device, 4);
  const std::int64_t buffer = probe_buffer(device), shared = buffer + 640 * kMiB, others = shared << 10;
  L2Cache cache(2, sampler.sets(), 16, 7, sampler.directory_sets());
  int side = 0;
  sampler.for_lines(others, others + TileWalkOptions{}.dirty_bytes_at_start,
                    [&](const CachedLine& l) { cache.write(l, side ^= 1); });
  std::mt19937 random(5);
  std::vector<std::size_t> order(pages_a_step * lines_a_page);
  std::iota(order.begin(), order.end(), 0);
  for (const auto& [step, read] : phases) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      if (step < 0) break;
      const std::size_t page = i / lines_a_page, line = i % lines_a_page;
      const std::int64_t at = buffer + pages[static_cast<std::size_t>(step) * pages_a_step + page] * kListedPageBytes +
                              static_cast<std::int64_t>(line) * LineSampler::line_bytes;
      sampler.for_lines(at, at + LineSampler::line_bytes, [&](const CachedLine& l) {
        if (read)
          cache.read(l, sides[page / pages_an_sm]);
        else
          cache.write(l, sides[page / pages_an_sm]);
      });
    }
    if (step >= 0) continue;
    sampler.for_lines(shared, shared + 4 * kMiB, [&](const CachedLine& l) {
      for (const int reader : {0, 1}) cache.read(l, reader);
    });
  }
  return static_cast<double>(cache.written_back_sectors()) * 32 / sampler.share() / kMiB;
}

/// `rewrite_steps`.
double rewritten(const std::string& how, int steps, int rounds) {
  std::vector<Phase> phases;
  std::mt19937 random(7);
  if (steps == 0) {
    for (const char c : how)
      for (int step = 0; step < ((c | 32) == 'c' ? 3 : 5); ++step)
        phases.push_back({((c | 32) - 'a') * 5 + step, c >= 'a'});
  } else {
    std::vector<int> order(static_cast<std::size_t>(steps));
    std::iota(order.begin(), order.end(), 0);
    for (int round = 0; round < rounds; ++round) {
      for (const int step : order) phases.push_back({step, false});
      if (how == "there_and_back") std::reverse(order.begin(), order.end());
      if (how == "at_random") std::shuffle(order.begin(), order.end(), random);
    }
  }
  return written_mib(phases, load_device("h200"));
}

TEST(L2Measured, LinesWrittenAgainAreCleanedAsMeasured) {
  std::map<std::string, std::pair<double, int>> off;
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_L2 "/rewrite_steps.csv")) {
    const std::string& how = row.at("how");
    const int steps = std::stoi(row.at("steps")), rounds = std::stoi(row.at("rounds"));
    const double counted = std::stod(row.at("dram__bytes_write.sum")) / (1 << 20);
    const double predicted = rewritten(how, steps, rounds);
    std::printf("%-14s %2d steps, %d rounds: %6.2f MiB counted, %6.2f predicted\n", how.c_str(), steps, rounds, counted,
                predicted);
    auto& [sum, n] = off[steps == 0 ? "which" : how];
    sum += counted < 1 ? 0 : std::abs(predicted / counted - 1), n += counted < 1 ? 0 : 1;
  }
  for (const auto& [how, sum] : off) {
    std::printf("%s: off by %.3f on average\n", how.c_str(), sum.first / sum.second);
    EXPECT_LE(sum.first / sum.second, 0.1) << how;
  }
  EXPECT_EQ(off.size(), 4);
}

/// `cleaned_steps`: which of the lines that were written in order have been cleaned, by what it costs to write a step
/// again.
void expect_cleaned(const char* file, const DeviceSpec& device, double each, double on_average) {
  double off = 0, again = 0, predicted_again = 0;
  int rows = 0;
  std::string before;
  double counted_before = 0, predicted_before = 0;
  for (const MeasuredRow& row : measured_rows(file)) {
    const std::string& how = row.at("how");
    std::vector<Phase> phases;
    for (const char c : how) {
      if (c == '+')
        phases.push_back({-1, true});
      else if (c != '.')
        phases.push_back({(c | 32) - 'a', c >= 'a'});
    }
    const double counted = std::stod(row.at("dram__bytes_write.sum")) / (1 << 20),
                 predicted = written_mib(phases, device);
    std::printf("%s: %.2f MiB counted, %.2f predicted\n", how.c_str(), counted, predicted);
    off += std::abs(predicted / counted - 1), ++rows;
    EXPECT_NEAR(predicted / counted, 1, each) << how;
    if (!before.empty() && how.size() == before.size() + 1 && how.starts_with(before)) {
      again += counted - counted_before, predicted_again += predicted - predicted_before;
    } else {
      before = how, counted_before = counted, predicted_before = predicted;
    }
  }
  std::printf("%d rows, off by %.3f on average; steps written again cost %.1f MiB, predicted %.1f\n", rows, off / rows,
              again, predicted_again);
  EXPECT_EQ(rows, 117);
  EXPECT_LE(off / rows, on_average);
  EXPECT_NEAR(predicted_again / again, 1, 0.1);
}

/// How many lines of l2_clean's accesses the one of the two sets has that has more.
std::size_t lines_of(const std::string& accesses) {
  std::array<std::set<char>, 2> of;
  int side = 0;
  for (const char c : accesses)
    if (c == '0' || c == '1')
      side = c - '0';
    else if (c != '!' && c != '~')
      for (const int partition : {(c | 32) < 'q' ? 0 : 1, side})
        of.at(static_cast<std::size_t>(partition)).insert(static_cast<char>(c | 32));
  return std::max(of[0].size(), of[1].size());
}

/// Of l2_clean: accesses to a set and to the one with its copies, one by one.
void play(const std::string& accesses, L2Cache& cache) {
  int side = 0;
  bool to_go = false;
  for (const char c : accesses) {
    const auto name = static_cast<std::uint32_t>(c | 32);
    const CachedLine of = line(name, name < 'q' ? 0 : 1);
    if (c == '0' || c == '1')
      side = c - '0';
    else if (c == '!' || c == '~')
      to_go = true;
    else if (c < 'a')
      cache.write(of, side);
    else
      cache.read(of, side, std::exchange(to_go, false));
  }
}

// What each of 4096 sets has written is a whole number of lines, beside one of others'.
TEST(L2Measured, LinesAreCleanedAccessByAccess) {
  constexpr double others = 0.95, less = 0.35, more = 0.8;
  int rows = 0, otherwise = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_L2 "/l2_clean.csv")) {
    const std::string& accesses = row.at("accesses");
    if (row.at("apart") == "0" || accesses.empty()) continue;
    L2Cache cache(2, 1, 16, 7);
    for (int round = 0; round < std::stoi(row.at("rounds")); ++round) play(accesses, cache);
    const double off =
        std::stod(row.at("written_lines")) - others - static_cast<double>(cache.written_back_sectors()) / 4;
    ++rows;
    if (off < -less || off > more)
      ++otherwise, std::printf("%s, %s rounds: %.2f lines more\n", accesses.c_str(), row.at("rounds").c_str(), off);
  }
  EXPECT_EQ(rows, 256);
  EXPECT_EQ(otherwise, 0);
}

/// `l2_clean plays`: by both sides, of lines of both homes, with evict_first and for the last time. Of others each row
/// has as much as half of the rows have no more than, and now and then a line more. The benchmark's own lists lie in
/// these sets too, so that plays of more than 14 lines a set say nothing.
void expect_plays(const char* file, int otherwise_most) {
  struct Row {
    std::string accesses;
    double written, read;  // beyond what is predicted
  };
  std::vector<Row> rows;
  for (const MeasuredRow& row : measured_rows(file)) {
    if (lines_of(row.at("accesses")) > 14) continue;
    L2Cache cache(2, 1, 16, 7);
    for (std::uint32_t i = 0; i < 16; ++i) cache.read(line(1000 + i, 1), 1);
    for (std::uint32_t i = 0; i < 16; ++i) cache.read(line(2000 + i, 0), 0);
    play(row.at("accesses"), cache);
    rows.push_back({row.at("accesses"),
                    std::stod(row.at("written_lines")) - static_cast<double>(cache.written_back_sectors()) / 4,
                    std::stod(row.at("read_lines")) - static_cast<double>(cache.filled_sectors()) / 4});
  }
  const auto median = [&](double Row::*what) {
    std::ranges::nth_element(rows, rows.begin() + std::ssize(rows) / 2, {}, what);
    return rows[rows.size() / 2].*what;
  };
  const double written = median(&Row::written), read = median(&Row::read);
  int otherwise = 0;
  for (const Row& row : rows)
    if (std::abs(row.written - written) > 0.8 || std::abs(row.read - read) > 0.8)
      ++otherwise,
          std::printf("%s: written %+.2f, read %+.2f\n", row.accesses.c_str(), row.written - written, row.read - read);
  std::printf("%zu plays, %d otherwise; others' %.2f written, %.2f read\n", rows.size(), otherwise, written, read);
  EXPECT_GT(rows.size(), 300u);
  EXPECT_LE(otherwise, otherwise_most);
}

TEST(L2Measured, PlaysByBothSidesAreWrittenAndReadAsCounted) {
  expect_plays(ATTEST_H200_L2 "/l2_plays.csv", 1);
  expect_plays(ATTEST_H100 "/l2_plays.csv", 13);
}

TEST(L2Measured, LinesAreCleanedStepByStepAsMeasured) {
  expect_cleaned(ATTEST_H200_L2 "/cleaned_steps.csv", load_device("h200"), 0.12, 0.03);
  expect_cleaned(ATTEST_H100 "/cleaned_steps.csv", load_device("h100"), 0.12, 0.038);
}

/// Calls f(row, sectors that each line crosses) for each pair of a benchmark's rows, of 8 and of 16 MiB, of which each
/// `far`th line can cross. What a launch crosses by itself is in both.
template <class F>
void for_slopes(const char* file, double far, F&& f) {
  const std::vector<MeasuredRow> rows = measured_rows(std::string(ATTEST_H200_L2 "/") + file);
  ASSERT_FALSE(rows.empty());
  const auto counted = [](const MeasuredRow& row) { return std::stod(row.at("lts__t_sectors_srcunit_ltcfabric.sum")); };
  for (std::size_t i = 0; i + 1 < rows.size(); i += 2)
    f(rows[i], (counted(rows[i + 1]) - counted(rows[i])) * far / (8 << 20) * 128);
}

TEST(L2Measured, PrefetchesCrossAsMeasured) {
  for_slopes("prefetched_read.csv", 1, [](const MeasuredRow& row, double crossed) {
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

TEST(L2Measured, PartsOfLinesCrossAsMeasured) {
  for_slopes("parts_of_lines.csv", 2, [](const MeasuredRow& row, double crossed) {
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

TEST(L2Measured, AnyNumberOfReadersOfASideCrossOnce) {
  for_slopes("shared_read.csv", 2, [](const MeasuredRow& row, double crossed) {
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

// Halves of sectors by whole lines, by one or two sectors of each, and rows with gaps, written once, or again where the
// other halves are: MB that DRAM reads and is written, in all of `write_parts` but what is read again.
TEST(L2Measured, SectorsThatAreWrittenInPartAreReadAsMeasured) {
  const DeviceSpec h200 = load_device("h200");
  const LineSampler sampler(h200, 4);
  const std::int64_t buffer = probe_buffer(h200);
  double off_read = 0, off_written = 0;
  int rows = 0, many = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_L2 "/write_parts.csv")) {
    if (row.at("how") == "half read again") continue;
    const std::int64_t bytes = std::stoi(row.at("row_bytes")), stride = std::stoi(row.at("row_stride"));
    const std::int64_t written = std::int64_t{std::stoi(row.at("written_mib"))} << 20;
    L2Cache cache(2, sampler.sets(), static_cast<int>(h200.l2_ways), static_cast<int>(h200.l2_dirty_ways),
                  sampler.directory_sets());
    for (const std::int64_t base : {0, 16}) {
      if (base > 0 && row.at("how") != "half then the other") break;
      for (std::int64_t i = 0; i < written / bytes; ++i) {
        const std::int64_t at = buffer + base + i * stride;
        sampler.for_lines(at, at + bytes, [&](const CachedLine& l) { cache.write(l, static_cast<int>(i / 256 % 2)); });
      }
    }
    const auto mb = [&](std::int64_t sectors) { return static_cast<double>(sectors) * 32 / sampler.share() / 1e6; };
    const double read = mb(cache.filled_sectors() + cache.completed_sectors()), back = mb(cache.written_back_sectors());
    const double counted_read = std::stod(row.at("dram__bytes_read.sum")) / 1e6,
                 counted_back = std::stod(row.at("dram__bytes_write.sum")) / 1e6;
    std::printf("%-22s %3ld of %3ld, %2ld MiB: read %6.2f of %6.2f, written %6.2f of %6.2f MB\n", row.at("how").c_str(),
                bytes, stride, written >> 20, read, counted_read, back, counted_back);
    ++rows;
    if (counted_read < 4) {  // of few sectors it hangs on how evenly they fill sets
      EXPECT_NEAR(read, counted_read, 1.5);
      continue;
    }
    off_read += std::abs(read / counted_read - 1), off_written += std::abs(back / counted_back - 1), ++many;
    EXPECT_NEAR(read / counted_read, 1, 0.24);
  }
  EXPECT_EQ(rows, 40);
  EXPECT_EQ(many, 29);
  EXPECT_LT(off_read / many, 0.057);
  EXPECT_LT(off_written / many, 0.1);
}

}  // namespace
}  // namespace attest
