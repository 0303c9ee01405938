// L2's policy beside what micro-benchmarks counted (docs/results/h200-l2.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "attest/simulator/device.h"
#include "attest/simulator/l2_cache.h"
#include "local_place.h"
#include "measured_rows.h"

namespace attest {
namespace {

CachedLine line(std::uint32_t tag, int home = 0, int set = 0) {
  return {tag, static_cast<std::uint16_t>(set), static_cast<std::uint8_t>(home), 15};
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
    EXPECT_LE(sum.first / sum.second, how == "which" ? 0.13 : 0.09) << how;
  }
  EXPECT_EQ(off.size(), 4);
}

/// `local_places` of bench/hardware: bytes that go to DRAM of frames of so many words, which 264 CTAs of four warps
/// store in each turn and load, each when so many more have been stored or, if 0, when all have, in lines that fall
/// into sets as the device has it of local memory.
struct Respilled {
  double written = 0, read = 0;
};
Respilled respilled(int words, int behind, const DeviceSpec& device) {
  constexpr int ctas = 264, warps = 4, turns = 64;
  const int at_once = behind == 0 ? 8 : 1, loaded_at = behind == 0 ? (words + 7) / 8 * 8 : behind;
  const auto sets = static_cast<int>(device.l2_bytes / device.l2_partitions / device.l2_ways / 128);
  L2Cache cache(2, sets, static_cast<int>(device.l2_ways), static_cast<int>(device.l2_dirty_ways));
  std::mt19937 random(1);
  std::vector<CachedLine> lines;
  for (int i = 0; i < ctas * warps * words; ++i) {
    const LocalPlace place = local_place(i, random(), device.local_memory_sets, sets, 2);
    lines.push_back(line(static_cast<std::uint32_t>(i), place.home, place.set));
  }
  std::vector<int> order(ctas * warps);
  std::iota(order.begin(), order.end(), 0);
  for (int turn = 0; turn < turns; ++turn)
    for (int first = 0; first < words + loaded_at; first += at_once) {
      std::shuffle(order.begin(), order.end(), random);
      for (const int warp : order)
        for (int word = first; word < first + at_once; ++word) {
          const auto of = [&](int n) -> const CachedLine& { return lines[static_cast<std::size_t>(warp * words + n)]; };
          const int side = warp / warps % 2, loaded = word - loaded_at;
          if (word < words) cache.write(of(word), side);
          if (loaded >= 0 && loaded < words) cache.read(of(loaded), side);
        }
    }
  return {static_cast<double>(cache.written_back_sectors() * 32), static_cast<double>(cache.filled_sectors() * 32)};
}

/// Rows of frames where a process has them that sets no stack limit, whose words are loaded from `least` tenths of the
/// frame behind their stores on: L1 has what is loaded sooner. How far what is written back may be off, and the sum of
/// what is read back.
void expect_written_back(const char* name, const std::string& file, std::size_t calls, double each,
                         double read_back_low, double read_back_high) {
  constexpr int least = 3;
  const DeviceSpec device = load_device(name);
  std::map<std::pair<int, int>, Respilled> predicted;
  double off = 0, read_back = 0, predicted_back = 0;
  int at_last = 0;
  for (const MeasuredRow& row : measured_rows(file)) {
    if (row.at("how") != "local" || !row.at("stack_limit").empty() || row.at("shared_mib") != "0") continue;
    const int words = std::stoi(row.at("words")), behind = std::stoi(row.at("behind"));
    if (behind > 0 && 10 * behind < least * words) continue;
    const std::pair<int, int> call(words, behind);
    if (!predicted.contains(call)) {
      predicted[call] = respilled(words, behind, device);
      DeviceSpec at_random = device;
      at_random.local_memory_sets = 1;
      if (behind == 0)
        std::printf("%s, %d words in all sets at random: written %.1f MB\n", name, words,
                    respilled(words, 0, at_random).written / 1e6);
    }
    const Respilled& model = predicted[call];
    const double written = 1e6 * std::stod(row.at("dram_write_mb")), read = 1e6 * std::stod(row.at("dram_read_mb"));
    std::printf("%s, %d words, %d behind: written %.1f MB, predicted %.1f; read back %.2f MB, predicted %.2f\n", name,
                words, behind, written / 1e6, model.written / 1e6, read / 1e6, model.read / 1e6);
    EXPECT_NEAR(model.written, written, each * written) << words << ", " << behind;
    read_back += read, predicted_back += model.read;
    if (behind == 0) off += model.written / written - 1, ++at_last;
  }
  EXPECT_EQ(predicted.size(), calls);
  EXPECT_NEAR(off / at_last, 0, 0.02);
  EXPECT_GT(predicted_back, read_back_low * read_back);
  EXPECT_LT(predicted_back, read_back_high * read_back);
}

TEST(L2Measured, LocalMemoryIsWrittenBackAsMeasured) {
  expect_written_back("h200", ATTEST_H200_L2 "/local_places.csv", 9, 0.16, 0.3, 1.4);
  expect_written_back("h100", ATTEST_H100 "/local_places.csv", 3, 0.085, 0.9, 9.1);
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

}  // namespace
}  // namespace attest
