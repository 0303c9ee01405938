// Frames of local memory in L2 beside what micro-benchmarks counted (docs/results/h200-l2.md, docs/results/h100.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "attest/simulator/calibration.h"
#include "attest/simulator/comparison.h"
#include "attest/simulator/device.h"
#include "attest/simulator/l2_cache.h"
#include "local_place.h"
#include "measured_rows.h"

namespace attest {
namespace {

CachedLine line(std::uint32_t tag, int home = 0, int set = 0) {
  return {tag, static_cast<std::uint16_t>(set), static_cast<std::uint8_t>(home), 15};
}

/// Lines of frames of so many words, of 264 CTAs of four warps, warp by warp, in a sampled L2.
constexpr int frame_ctas = 264, frame_warps = 4;
std::vector<CachedLine> frame_lines(int words, const LineSampler& sampler, const DeviceSpec& device) {
  constexpr std::int64_t warps = frame_ctas * frame_warps;
  const LocalPlaces places(
      {warps, words}, words, [](std::int64_t warp) { return static_cast<int>(warp / frame_warps % 2); }, sampler,
      device);
  std::vector<CachedLine> lines;
  for (std::int64_t warp = 0; warp < warps; ++warp)
    for (int word = 0; word < words; ++word) {
      const auto tag = static_cast<std::uint32_t>(lines.size());
      const std::optional<LocalPlace> place = places.of(warp, word);
      CachedLine of = place ? line(tag, place->home, place->set) : line(tag);
      if (!place) of.sectors = 0;  // not followed
      lines.push_back(of);
    }
  return lines;
}
L2Cache l2_of(const DeviceSpec& device, const LineSampler& sampler) {
  return {2, sampler.sets(), static_cast<int>(device.l2_ways), static_cast<int>(device.l2_dirty_ways),
          sampler.directory_sets()};
}

struct Respilled {
  double written = 0, read = 0;
};

/// `local_places` of bench/hardware: bytes that go to DRAM of frames of so many words, which CTAs store in each turn
/// and load, each when so many more have been stored or, if 0, when all have.
Respilled respilled(int words, int behind, const DeviceSpec& device) {
  constexpr int turns = 64;
  const int at_once = behind == 0 ? 8 : 1, loaded_at = behind == 0 ? (words + 7) / 8 * 8 : behind;
  const LineSampler sampler(device, 1);
  L2Cache cache = l2_of(device, sampler);
  const std::vector<CachedLine> lines = frame_lines(words, sampler, device);
  std::mt19937 random(1);
  std::vector<int> order(std::size_t{frame_ctas} * frame_warps);
  std::iota(order.begin(), order.end(), 0);
  for (int turn = 0; turn < turns; ++turn)
    for (int first = 0; first < words + loaded_at; first += at_once) {
      std::shuffle(order.begin(), order.end(), random);
      for (const int warp : order)
        for (int word = first; word < first + at_once; ++word) {
          const auto of = [&](int n) -> const CachedLine& {
            return lines[static_cast<std::size_t>(warp) * static_cast<std::size_t>(words) +
                         static_cast<std::size_t>(n)];
          };
          const int side = warp / frame_warps % 2, loaded = word - loaded_at;
          if (word < words) cache.write(of(word), side);
          if (loaded >= 0 && loaded < words) cache.read(of(loaded), side);
        }
    }
  return {static_cast<double>(cache.written_back_sectors() * 32), static_cast<double>(cache.filled_sectors() * 32)};
}

/// Calls f(line, side) of the lines that are followed, CTA by CTA.
template <class F>
void each_line(const std::vector<CachedLine>& lines, int words, F&& f) {
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (lines[i].sectors != 0) f(lines[i], static_cast<int>(i) / (frame_warps * words) % 2);
}

/// `local_places sets`: frames of 131 words, stored once and loaded in each turn, beside a range that fills sets
/// evenly.
void expect_displaced(const DeviceSpec& device, const char* file, double each, double in_all) {
  const LineSampler sampler(device, 4);
  const int words = 131;
  const std::vector<CachedLine> lines = frame_lines(words, sampler, device);
  std::map<int, std::map<int, double>> counted;  // MB, by MiB of the range, of 2 turns and of 18
  for (const MeasuredRow& row : measured_rows(file))
    if (row.at("how") == "local" && std::stoi(row.at("words")) == words)
      counted[std::stoi(row.at("even_mib"))][std::stoi(row.at("turns"))] = std::stod(row.at("dram_read_mb"));
  double all = 0, predicted_all = 0;
  for (const auto& [mib, read] : counted) {
    L2Cache cache = l2_of(device, sampler);
    std::vector<CachedLine> even;
    sampler.for_lines(0, std::int64_t{mib} << 20, [&](const CachedLine& line) { even.push_back(line); });
    each_line(lines, words, [&](const CachedLine& line, int side) { cache.write(line, side); });
    std::int64_t before = 0;
    for (int turn = 0; turn < 10; ++turn) {
      if (turn == 2) before = cache.filled_sectors();
      for (const CachedLine& line : even) cache.read(line, 0), cache.read(line, 1);
      each_line(lines, words, [&](const CachedLine& line, int side) { cache.read(line, side); });
    }
    const double a_turn = (read.at(18) - read.at(2)) / 16,
                 predicted = static_cast<double>(cache.filled_sectors() - before) * 32e-6 / sampler.share() / 8;
    std::printf("%2d MiB: %5.2f MB a turn counted, %5.2f predicted\n", mib, a_turn, predicted);
    EXPECT_NEAR(predicted, a_turn, each) << mib;
    all += a_turn, predicted_all += predicted;
  }
  EXPECT_EQ(counted.size(), 15);
  EXPECT_NEAR(predicted_all / all, 1, in_all);
}

TEST(L2Measured, FramesAreDisplacedByAnEvenRange) {
  expect_displaced(load_device("h200"), ATTEST_H200_L2 "/local_sets.csv", 2.6, 0.05);
  // whose frames fill sets more evenly than one number says
  expect_displaced(load_device("h100"), ATTEST_H100 "/local_sets.csv", 4.6, 0.08);
}

void expect_census(const DeviceSpec& device, const std::string& file, double mean) {
  std::map<int, std::vector<int>> lines;  // by words
  for (const MeasuredRow& row : measured_rows(file))
    lines[std::stoi(row.at("words"))].push_back(std::stoi(row.at("lines")));
  EXPECT_EQ(std::ranges::count(lines.at(0), 0), std::ssize(lines.at(0)));
  lines.erase(0);
  std::map<int, FrameSpread> counted;
  for (const auto& [words, of_sets] : lines) {
    const FrameSpread& spread = counted[words] = frame_spread(of_sets);
    const FrameSpread predicted = frame_spread(words, device);
    std::printf("%s, %d words: %.2f lines a set counted, %.2f predicted; variance over mean %.2f, %.2f\n",
                device.name.c_str(), words, spread.mean, predicted.mean, spread.variance_over_mean,
                predicted.variance_over_mean);
    EXPECT_NEAR(spread.mean / predicted.mean, 1, mean);
    EXPECT_NEAR(spread.variance_over_mean, predicted.variance_over_mean, 0.2);  // four H100s differ by as much
  }
  EXPECT_EQ(counted.size(), 3);
  const double sets = local_memory_sets_of(counted, device);
  std::printf("local_memory_sets of the census: %.2f\n", sets);
  EXPECT_NEAR(sets, device.local_memory_sets, device.local_memory_sets > 1 ? 0.1 : 0.02);
}

// The censuses, of which calibrate takes local_memory_sets.
TEST(L2Measured, SetsHaveAsManyLinesOfFramesAsCounted) {
  expect_census(load_device("h100"), ATTEST_H100 "/local_census.csv", 0.03);
  expect_census(load_device("h200"), ATTEST_H200_L2 "/local_census.csv", 0.02);
}

// `respill`, of frames that are stored and loaded in each turn beside heads that are read four times, in the order in
// which CTAs begin: by plain loads and by last ones, of words that the compiler spills.
TEST(L2Measured, FramesAreWrittenBackBesideHeadsAsMeasured) {
  DeviceSpec device = load_device("h200");
  device.local_memory_sets = local_memory_sets_through_ncu;
  const LineSampler sampler(device, 8);
  double off = 0, reads_off = 0;
  int rows = 0, all_rows = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_L2 "/respill.csv")) {
    const bool last = row.at("how") == "registers";
    const int words = std::stoi(row.at("words")), turns = std::stoi(row.at("turns")),
              mib = std::stoi(row.at("shared_mib"));
    if (mib == 0 || words == 0 || (row.at("how") != "local" && !last) || (!last && row.at("loads") == "0")) continue;
    const std::vector<CachedLine> lines = frame_lines(words, sampler, device);
    std::vector<std::vector<CachedLine>> tiles(static_cast<std::size_t>(mib) * 32), frames(frame_ctas);
    for (std::size_t tile = 0; tile < tiles.size(); ++tile) {
      const auto at = static_cast<std::int64_t>(tile) * 32'768;
      sampler.for_lines(at, at + 32'768, [&](const CachedLine& line) { tiles[tile].push_back(line); });
    }
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (lines[i].sectors != 0) frames[i / static_cast<std::size_t>(frame_warps * words)].push_back(lines[i]);
    L2Cache cache = l2_of(device, sampler);
    std::vector<std::size_t> order(frame_ctas);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    for (int turn = 0; turn < turns; ++turn)
      for (const std::size_t cta : order) {
        const int side = static_cast<int>(cta % 2);
        const std::size_t of_head = tiles.size() / 8;
        for (const CachedLine& line : tiles[cta * 8 / frame_ctas * of_head + static_cast<std::size_t>(turn) % of_head])
          cache.read(line, side);
        for (const CachedLine& line : frames[cta]) cache.write(line, side);
        for (const CachedLine& line : frames[cta]) cache.read(line, side, last);
      }
    const auto mb = [&](std::int64_t sectors) { return static_cast<double>(sectors) * 32e-6 / sampler.share(); };
    const double written = std::stod(row.at("dram__bytes_write.sum")) / 1e6,
                 read = std::stod(row.at("dram__bytes_read.sum")) / 1e6;
    std::printf("%3d words beside %2d MiB%s: written %6.1f MB, predicted %6.1f; read %5.1f MB, predicted %5.1f\n",
                words, mib, last ? ", loaded for the last time" : "", written, mb(cache.written_back_sectors()), read,
                mb(cache.filled_sectors()));
    ++all_rows, reads_off += std::abs(mb(cache.filled_sectors()) / read - 1);
    off += written < 10 ? 0 : std::abs(mb(cache.written_back_sectors()) / written - 1);
    rows += written < 10 ? 0 : 1;
  }
  std::printf("%d rows of 10 MB or more are off by %.3f on average, reads of %d rows by %.3f\n", rows, off / rows,
              all_rows, reads_off / all_rows);
  EXPECT_EQ(rows, 17);
  EXPECT_LE(off / rows, 0.12);
  EXPECT_EQ(all_rows, 24);
  EXPECT_LE(reads_off / all_rows, 0.12);
}

struct Limits {
  double each, mean;                     // how far a row's writes may be off, and all of them together
  double read_back_low, read_back_high;  // the sum of what is read back, over the counter
};

/// Rows of frames of a process with that stack limit, whose words are loaded from three tenths of the frame behind
/// their stores on: L1 has what is loaded sooner. What is stored in one burst and then loaded is written back by a
/// tenth less than what is stored between loads, which is not in the model: it is to lie between them.
void expect_written_back(const DeviceSpec& device, const std::string& file, const std::string& stack_limit,
                         const Limits& limits) {
  constexpr int least = 3;
  const char* const name = device.name.c_str();
  std::map<std::pair<int, int>, Respilled> predicted;
  std::map<bool, double> off;  // in one burst
  double read_back = 0, predicted_back = 0;
  for (const MeasuredRow& row : measured_rows(file)) {
    if (row.at("how") != "local" || row.at("stack_limit") != stack_limit || row.at("shared_mib") != "0") continue;
    const int words = std::stoi(row.at("words")), behind = std::stoi(row.at("behind"));
    if (behind > 0 && 10 * behind < least * words) continue;
    const std::pair<int, int> call(words, behind);
    if (!predicted.contains(call)) predicted[call] = respilled(words, behind, device);
    const Respilled& model = predicted[call];
    const double written = 1e6 * std::stod(row.at("dram_write_mb")), read = 1e6 * std::stod(row.at("dram_read_mb"));
    std::printf("%s, %d words, %d behind: written %.1f MB, predicted %.1f; read back %.2f MB, predicted %.2f\n", name,
                words, behind, written / 1e6, model.written / 1e6, read / 1e6, model.read / 1e6);
    EXPECT_NEAR(model.written, written, limits.each * written) << words << ", " << behind;
    read_back += read, predicted_back += model.read;
    off[behind == 0] += (model.written / written - 1) / (behind == 0 ? 6 : 12);  // of two runs
  }
  EXPECT_EQ(predicted.size(), 9);
  std::printf("%s: %.3f off in one burst, %.3f between loads; read back %.2f\n", name, off[true], off[false],
              predicted_back / read_back);
  EXPECT_NEAR((off[true] + off[false]) / 2, 0, limits.mean);
  EXPECT_GT(predicted_back, limits.read_back_low * read_back);
  EXPECT_LT(predicted_back, limits.read_back_high * read_back);
}

TEST(L2Measured, LocalMemoryIsWrittenBackAsMeasured) {
  DeviceSpec h200 = load_device("h200"), h100 = load_device("h100");
  expect_written_back(h200, ATTEST_H200_L2 "/local_places.csv", "", {0.12, 0.05, 0.8, 2.3});
  expect_written_back(h100, ATTEST_H100 "/local_places.csv", "", {0.19, 0.05, 0.9, 3.4});
  h200.local_memory_sets = h100.local_memory_sets = local_memory_sets_through_ncu;
  expect_written_back(h200, ATTEST_H200_L2 "/local_places.csv", "2048", {0.2, 0.08, 0.3, 2});
  expect_written_back(h100, ATTEST_H100 "/local_places.csv", "2048", {0.2, 0.05, 0.1, 4});
}

// All accesses to L2 here are of frames of 131 words. In a burst of stores alone lines are cleaned later than where
// loads come between, and so more of them are stored again while they are dirty.
TEST(L2Measured, BurstsOfStoresAreWrittenBackLess) {
  std::map<std::string, double> written;  // by how words are loaded
  for (const MeasuredRow& row : measured_rows(ATTEST_H100 "/local_bursts.csv"))
    if (row.at("words") == "131" && row.at("pause") == "0" && row.at("in_turn") == "0")
      written[row.at("loads") == "0" ? "never" : row.at("behind")] = std::stod(row.at("write_mb"));
  ASSERT_EQ(written.size(), 4);
  EXPECT_LT(written["never"], 0.65 * written["52"]);
  EXPECT_NEAR(written["0"] / written["52"], 1, 0.03);  // a load at a time
}

}  // namespace
}  // namespace attest
