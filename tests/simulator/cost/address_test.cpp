#include "address.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hardware/page_numbers.h"
#include "l2_probe.h"
#include "measured_rows.h"

namespace attest {
namespace {

constexpr std::int64_t mib = 1 << 20;

/// The share of reads that miss on the second to fourth walk over chunks, both sides reading.
double cyclic_misses(const LineSampler& sampler, std::int64_t buffer, const std::vector<std::int64_t>& chunks,
                     std::int64_t chunk_bytes) {
  L2Cache cache(2, sampler.sets(), 16, 7, sampler.directory_sets());
  std::int64_t misses = 0, reads = 0;
  for (int round = 0; round < 4; ++round)
    for (const std::int64_t at : chunks)
      sampler.for_lines(buffer + at, buffer + at + chunk_bytes, [&](const CachedLine& line) {
        const bool missed = cache.read(line, 0) == L2Cache::Outcome::miss;
        cache.read(line, 1);
        if (round > 0) ++reads, misses += missed;
      });
  return static_cast<double>(misses) / static_cast<double>(reads);
}

/// Which bytes are read: where chunks begin, and how long they are.
struct Chunks {
  std::vector<std::int64_t> at;
  std::int64_t bytes;
};

Chunks contiguous(std::int64_t /*unit*/, std::int64_t bytes, std::uint64_t /*seed*/) { return {{0}, bytes}; }

/// Chunks of `unit` bytes anywhere in 64 GiB, as scattered pages are, or in the 512 MiB of chunk_read.
Chunks scattered(std::int64_t unit, std::int64_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::int64_t within = unit < 32 << 10 ? std::int64_t{1} << 36 : 512 * mib;
  std::set<std::int64_t> taken;  // each once
  while (static_cast<std::int64_t>(taken.size()) < bytes / unit)
    taken.insert(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(within / unit)));
  Chunks chunks{{}, unit};
  for (const std::int64_t at : taken) chunks.at.push_back(at * unit);
  std::shuffle(chunks.at.begin(), chunks.at.end(), random);
  return chunks;
}

/// The first part of each range of `unit` bytes, in 32 MiB.
Chunks first_parts(std::int64_t unit, std::int64_t bytes, std::uint64_t /*seed*/) {
  const std::int64_t ranges = 32 * mib / unit;
  Chunks chunks{{}, bytes / ranges};
  for (std::int64_t r = 0; r < ranges; ++r) chunks.at.push_back(r * unit);
  return chunks;
}

/// Rows of 256 bytes, one every `unit` bytes.
Chunks strided(std::int64_t unit, std::int64_t bytes, std::uint64_t /*seed*/) {
  Chunks chunks{{}, 256};
  for (std::int64_t row = 0; row < bytes / 256; ++row) chunks.at.push_back(row * unit);
  return chunks;
}

/// An H200 whose hash is not known, by how many slices it has.
DeviceSpec another_gpu() {
  DeviceSpec device = load_device("h200");
  device.l2_slices_per_partition = 40;
  return device;
}

struct Curve {
  const char* name;
  Chunks (*chunks)(std::int64_t unit, std::int64_t bytes, std::uint64_t seed);
  std::int64_t unit;
  double tolerance;
  std::vector<std::pair<int, double>> measured;  // MiB, the share that missed
};

// docs/results/h200-l2.md: cyclic_read, chunk_read and strided_read. Tolerances are what is reached, not what is
// wanted. Of chunks of 32 to 512 KiB one choice of 40 to 960 was measured, and sets that chunks of one choice share are
// many: of eight choices in the model 24 MiB of 32 KiB miss .31 to .38. An H200's own hash has each of these rows
// (below). Of another GPU, whose hash is not known, ranges that fill the cache conflict too early: they fill sets
// evenly as wholes of 4 MiB alone.
const Curve curves[] = {
    {"contiguous, fits", contiguous, 0, 0.01, {{16, 0}, {20, 0}, {24, 0}, {26, 0}, {28, .002}}},
    {"contiguous, full", contiguous, 0, 0.15, {{30, .298}, {32, .695}, {34, .982}}},
    {"4 KiB scattered", scattered, 4 << 10, 0.06, {{16, .016}, {20, .081}, {24, .230}, {28, .454}, {32, .654}}},
    {"16 KiB scattered", scattered, 16 << 10, 0.06, {{16, .031}, {20, .118}, {24, .290}, {28, .480}, {32, .653}}},
    {"32 KiB scattered", scattered, 32 << 10, 0.05, {{22, .204}, {24, .279}, {26, .375}, {28, .468}, {30, .556}}},
    {"128 KiB scattered", scattered, 128 << 10, 0.11, {{22, .207}, {24, .358}, {26, .400}, {28, .504}, {30, .590}}},
    {"512 KiB scattered", scattered, 512 << 10, 0.11, {{22, .251}, {24, .314}, {26, .375}, {28, .436}, {30, .513}}},
    {"first of 8 MiB", first_parts, 8 * mib, 0.04, {{24, .104}, {26, .172}}},
    {"first of 4 MiB", first_parts, 4 * mib, 0.04, {{24, .117}, {26, .193}}},
    {"first of 8 MiB, full", first_parts, 8 * mib, 0.12, {{28, .244}}},
    {"first of 4 MiB, full", first_parts, 4 * mib, 0.18, {{28, .199}}},
    {"256 bytes of 1 KiB", strided, 1 << 10, 0.07, {{20, .030}, {24, .119}, {28, .367}}},
    {"256 bytes of 4 KiB", strided, 4 << 10, 0.07, {{20, .045}, {24, .179}, {28, .410}}},
};

/// How far the share that misses is off on average.
double off(const LineSampler& sampler) {
  std::printf("missed again, predicted (measured), at MiB\n");
  double sum = 0;
  int points = 0;
  for (const Curve& curve : curves) {
    std::printf("%20s:", curve.name);
    for (const auto& [size, measured] : curve.measured) {
      const int seeds = curve.chunks == scattered ? 4 : 1;
      double predicted = 0;
      for (int seed = 1; seed <= seeds; ++seed) {
        const Chunks chunks = curve.chunks(curve.unit, size * mib, static_cast<std::uint64_t>(seed));
        predicted += cyclic_misses(sampler, 0, chunks.at, chunks.bytes) / seeds;
      }
      std::printf("  %d: %.3f(%.3f)", size, predicted, measured);
      EXPECT_NEAR(predicted, measured, curve.tolerance) << curve.name << ", " << size << " MiB";
      sum += std::abs(predicted - measured), ++points;
    }
    std::printf("\n");
  }
  std::printf("mean error %.3f\n", sum / points);
  return sum / points;
}

TEST(TileWalk, TheHashOfSetsConflictsAsMeasured) { EXPECT_LT(off(LineSampler(another_gpu(), 4)), 0.04); }

// Every row of chunk_read, whose pages and place in memory are known.
TEST(TileWalk, AnH200sHashOfSetsConflictsAsMeasured) {
  using namespace hardware;
  const LineSampler sampler(load_device("h200"), 4);
  double sum = 0;
  int rows = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_L2 "/chunk_read.csv")) {
    const std::int64_t kib = std::stoll(row.at("chunk_kib")), size = std::stoll(row.at("mib")) * mib;
    std::vector<std::uint32_t> pages =
        row.at("layout") == "random"
            ? scattered_pages(512 * mib / kListedPageBytes, static_cast<std::uint32_t>(kib * 1024 / kListedPageBytes))
            : hardware::first_parts(static_cast<int>(32 * 1024 / kib), kib * 1024, size);
    pages.resize(static_cast<std::size_t>(size / kListedPageBytes));
    Chunks chunks{{}, kListedPageBytes};
    for (const std::uint32_t page : pages) chunks.at.push_back(page * kListedPageBytes);
    const double misses = cyclic_misses(sampler, probe_buffer(load_device("h200")), chunks.at, chunks.bytes),
                 counted = (std::stod(row.at("dram__bytes_read.sum")) / static_cast<double>(size) - 1) / 4;
    std::printf("%s, %ld KiB, %ld MiB: %.3f (%.3f)\n", row.at("layout").c_str(), static_cast<long>(kib),
                static_cast<long>(size / mib), misses, counted);
    EXPECT_NEAR(misses, counted, 0.045);
    sum += std::abs(misses - counted), ++rows;
  }
  EXPECT_EQ(rows, 60);
  EXPECT_LT(sum / rows, 0.0085);
}

struct Strides {
  double off, correlation;
};
/// head_strides: rows of two lines, so many lines from row to row, read by both sides. How far misses are off, and by
/// how much those of 20 MiB go with what is counted.
Strides strides(const char* device, const std::string& file) {
  const LineSampler sampler(load_device(device), 1);
  double off = 0;
  int rows = 0;
  std::vector<double> predicted, measured;
  for (const MeasuredRow& row : measured_rows(file)) {
    const std::int64_t size = std::stoll(row.at("mib")), bytes = size * mib;
    const double counted = (std::stod(row.at("dram__bytes_read.sum")) / static_cast<double>(bytes) - 1) / 4;
    const Chunks chunks = strided(128 * std::stoll(row.at("lines")), bytes, 1);
    const double misses = cyclic_misses(sampler, probe_buffer(load_device(device)), chunks.at, chunks.bytes);
    off += std::abs(misses - counted);
    ++rows;
    if (size == 20) predicted.push_back(misses), measured.push_back(counted);
  }
  EXPECT_EQ(rows, 56);
  const auto product = [n = static_cast<double>(predicted.size())](const auto& x, const auto& y) {
    return std::inner_product(x.begin(), x.end(), y.begin(), 0.0) / n -
           std::reduce(x.begin(), x.end()) / n * (std::reduce(y.begin(), y.end()) / n);
  };
  const Strides s{off / rows, product(predicted, measured) /
                                  std::sqrt(product(predicted, predicted) * product(measured, measured))};
  std::printf("%s: %.4f off, correlation of 20 MiB %.2f\n", device, s.off, s.correlation);
  return s;
}

// Counted on the day before the hash was known.
TEST(TileWalk, TheHashOfSetsKnowsStrides) {
  const Strides h200 = strides("h200", ATTEST_H200_L2 "/head_strides.csv"),
                h100 = strides("h100", ATTEST_H100 "/head_strides.csv");
  EXPECT_LT(h200.off, 0.0095);
  EXPECT_GT(h200.correlation, 0.995);
  EXPECT_LT(h100.off, 0.0152);
  EXPECT_GT(h100.correlation, 0.86);
}

TEST(LineSampler, KeepsItsShareOfLinesAndSpreadsThemOverItsSets) {
  for (const DeviceSpec& device : {load_device("h200"), load_device("h100"), another_gpu()})
    for (const int sampling : {1, 8, 64, 128}) {
      const LineSampler sampler(device, sampling);
      std::vector<int> of_set(static_cast<std::size_t>(sampler.sets()));
      std::int64_t kept = 0, at_home[2] = {0, 0};
      sampler.for_lines(0, device.l2_bytes, [&](const CachedLine& line) {
        ++kept, ++at_home[line.home], ++of_set.at(line.set);
        EXPECT_EQ(line.sectors, 15);
      });
      EXPECT_NEAR(static_cast<double>(kept) * 128 / static_cast<double>(device.l2_bytes), sampler.share(),
                  0.02 * sampler.share());
      EXPECT_NEAR(sampler.share() * sampling, 1,
                  sampling > 64 ? 0.2 : 0.1);  // slices are followed whole, some in pairs
      EXPECT_NEAR(static_cast<double>(at_home[0]) / static_cast<double>(kept), 0.5, 0.02);
      // 32 of each set if they were dealt evenly
      EXPECT_GE(*std::min_element(of_set.begin(), of_set.end()), 20) << sampling;
      EXPECT_LE(*std::max_element(of_set.begin(), of_set.end()), 44) << sampling;
    }
}

// The other partition keeps a copy in a set that is followed too.
TEST(LineSampler, KeepsPairsOfSets) {
  for (const int sampling : {1, 8, 64}) {
    const LineSampler sampler(load_device("h200"), sampling);
    std::vector<int> paired(static_cast<std::size_t>(sampler.sets()), -1);
    std::int64_t lines = 0, of_pairs = 0;
    sampler.for_lines(0, 60 * mib, [&](const CachedLine& line) {
      EXPECT_TRUE(paired.at(line.set) < 0 || paired.at(line.set) == line.paired) << line.set;
      paired[line.set] = line.paired;
      ++lines, of_pairs += line.paired;
    });
    for (std::size_t set = 0; set < paired.size(); ++set)
      EXPECT_EQ(paired.at(set ^ (paired[set] == 1 ? 4 : 0)), paired[set]);
    EXPECT_NEAR(static_cast<double>(of_pairs) / static_cast<double>(lines), 40.0 / 47, 0.03) << sampling;
  }
  LineSampler(load_device("h100"), 8).for_lines(0, mib, [](const CachedLine& line) { EXPECT_EQ(line.paired, 0); });
}

TEST(LineSampler, NamesSectorsOfLinesInPart) {
  const LineSampler sampler(load_device("h200"), 1);
  std::vector<int> sectors;
  sampler.for_lines(96, 96 + 33 + 128, [&](const CachedLine& line) { sectors.push_back(line.sectors); });
  EXPECT_EQ(sectors, (std::vector<int>{8, 15, 1}));
  sectors.clear();
  sampler.for_lines(30, 34, [&](const CachedLine& line) { sectors.push_back(line.sectors); });
  EXPECT_EQ(sectors, (std::vector<int>{3})) << "four bytes of two sectors";
}

}  // namespace
}  // namespace attest
