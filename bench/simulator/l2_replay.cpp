// The micro-benchmarks of docs/results/h200-l2 through the simulator's L2: what it predicts beside what was counted.
//
//     l2_replay docs/results/h200-l2
//
// SMs of both sides walk a list of pages in step, four pages an SM; a step's pages are read in any order. Old dirty
// lines are there at the start, as measured.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "address.h"
#include "attest/simulator/tile_walk.h"
#include "hardware/page_numbers.h"
#include "measured/counted_calls.h"
#include "memory_map.h"

namespace {

using namespace attest;
using namespace attest::hardware;
using Pages = std::vector<std::uint32_t>;

constexpr int sampling = 16, cycles = 5;
constexpr std::int64_t sms_a_side = 66, pages_a_step = 4;

/// An L2 and what was read through it.
class Replay {
 public:
  Replay(const DeviceSpec& device, const LineSampler& sampler)
      : sampler_(sampler),
        buffer_(MemoryMap(device, true).buffers()),
        cache_(2, sampler.sets(), static_cast<int>(device.l2_ways), static_cast<int>(device.l2_dirty_ways),
               sampler.directory_sets()) {
    constexpr std::int64_t elsewhere = std::int64_t{1} << 40;
    int side = 0;
    sampler_.for_lines(elsewhere, elsewhere + TileWalkOptions{}.dirty_bytes_at_start,
                       [&](const CachedLine& line) { cache_.write(line, side ^= 1); });
  }
  /// Whose the pages are that SMs of both sides split, neighbouring ones on one side.
  static int side_of_part(std::size_t page) { return static_cast<int>(page / (2 * pages_a_step) % 2); }
  /// SMs of both sides read a part each.
  void read_split(const Pages& pages, std::int64_t base) {
    for (std::size_t i = 0; i < pages.size(); ++i) read_page(base + pages[i] * kListedPageBytes, side_of_part(i));
  }
  /// SMs of each side in `sides` read all pages.
  void read(const Pages& pages, std::int64_t base, const std::vector<int>& sides) {
    struct Chunk {
      double at;
      int side;
      std::uint32_t page;
    };
    std::vector<Chunk> order;
    for (const int side : sides)
      for (std::size_t i = 0; i < pages.size(); ++i) {
        const std::int64_t step = static_cast<std::int64_t>(i) / (sms_a_side * pages_a_step);
        const double in_step = std::uniform_real_distribution<>(0, 1)(random_);
        order.push_back({static_cast<double>(step) + in_step, side, pages[i]});
      }
    std::stable_sort(order.begin(), order.end(), [](const Chunk& a, const Chunk& b) { return a.at < b.at; });
    for (const Chunk& chunk : order) read_page(base + chunk.page * kListedPageBytes, chunk.side);
  }
  /// SMs of one side write the pages, or of both a part each.
  void write(const Pages& pages, std::int64_t base, std::optional<int> one_side = {}) {
    for (std::size_t i = 0; i < pages.size(); ++i) {
      const int side = one_side.value_or(side_of_part(i));
      const std::int64_t at = base + pages[i] * kListedPageBytes;
      sampler_.for_lines(buffer_ + at, buffer_ + at + kListedPageBytes, [&](const CachedLine& line) {
        cache_.write(line, side);
        crossed_ += side != line.home ? 1 : 0;
      });
    }
  }
  /// MiB.
  double dram_reads() const { return of_lines(missed_); }
  double crossings() const { return of_lines(crossed_); }
  double dram_writes() const {
    return of_lines(cache_.written_back_sectors()) * LineSampler::sector_bytes / LineSampler::line_bytes;
  }

 private:
  void read_page(std::int64_t at, int side) {
    sampler_.for_lines(buffer_ + at, buffer_ + at + kListedPageBytes, [&](const CachedLine& line) {
      const L2Cache::Outcome outcome = cache_.read(line, side);
      missed_ += outcome == L2Cache::Outcome::miss ? 1 : 0;
      crossed_ += side != line.home && outcome != L2Cache::Outcome::near_hit ? 1 : 0;
    });
  }
  double of_lines(std::int64_t lines) const {
    return static_cast<double>(lines) * LineSampler::line_bytes / sampler_.share() / static_cast<double>(kMiB);
  }
  const LineSampler& sampler_;
  const std::int64_t buffer_;  // of l2_probe, which ran under Nsight Compute
  L2Cache cache_;
  std::mt19937 random_{1};
  std::int64_t missed_ = 0, crossed_ = 0;
};

struct Errors {
  double sum = 0;
  int n = 0;
};

/// Prints a row; what counts is what is read again, over `again` MiB that could be.
void print(Errors& errors, const std::string& what, const CountedCall& row, const Replay& l2, double first,
           double again) {
  const auto mib = [&](const char* name, double unit) { return row.at(name) * unit / static_cast<double>(kMiB); };
  const double measured = (mib("dram__bytes_read.sum", 1) - first) / again;
  const double predicted = (l2.dram_reads() - first) / again;
  errors.sum += std::abs(predicted - measured), ++errors.n;
  std::printf("%-34s read again %6.3f %6.3f  crossed %6.1f %6.1f  DRAM writes %6.2f %6.2f\n", what.c_str(), measured,
              predicted, mib("lts__t_sectors_srcunit_ltcfabric.sum", 32), l2.crossings(),
              mib("dram__bytes_write.sum", 1), l2.dram_writes());
}

void print_mean(const char* what, const Errors& errors) {
  std::printf("%s: mean error %.3f\n", what, errors.sum / errors.n);
}

/// Of the pages of the first 512 MiB.
std::vector<std::uint8_t> homes_of_pages(const DeviceSpec& device) {
  std::vector<std::uint8_t> homes(512 * kMiB / kListedPageBytes);
  const LineSampler all_lines(device, 1);
  for (std::size_t page = 0; page < homes.size(); ++page) {
    const auto at = MemoryMap(device, true).buffers() + static_cast<std::int64_t>(page) * kListedPageBytes;
    all_lines.for_lines(at, at + 1, [&](const CachedLine& line) { homes[page] = line.home; });
  }
  return homes;
}

void replay_cycles(const std::string& folder, const DeviceSpec& device, const LineSampler& sampler) {
  const std::vector<std::uint8_t> homes = homes_of_pages(device);
  const std::size_t count = homes.size();
  const auto replay = [&](Errors& errors, const std::string& what, const CountedCall& row, Pages pages, bool both) {
    const auto size = static_cast<std::int64_t>(row.at("mib"));
    pages.resize(static_cast<std::size_t>(size * kMiB / kListedPageBytes));
    Replay l2(device, sampler);
    for (int round = 0; round < cycles; ++round) l2.read(pages, 0, both ? std::vector{0, 1} : std::vector{0});
    print(errors, what + " " + std::to_string(size), row, l2, static_cast<double>(size),
          static_cast<double>((cycles - 1) * size));
  };
  Errors one_side, both_sides, chunks;
  for (const CountedCall& row : counted_calls(folder + "/cyclic_read.csv", 2)) {
    const std::string who = row.kernel.substr(0, row.kernel.find(' ')), layout = row.kernel.substr(who.size() + 1);
    if (who == "split") continue;
    const Pages pages = layout == "contiguous"   ? first_parts(1, 0, static_cast<std::int64_t>(64) * kMiB)
                        : layout == "random_4k"  ? scattered_pages(count, 1)
                        : layout == "random_16k" ? scattered_pages(count, 4)
                                                 : pages_of_home(homes, layout == "home0" ? 0 : 1);
    replay(who == "side0" ? one_side : both_sides, row.kernel, row, pages, who == "both_sides");
  }
  for (const CountedCall& row : counted_calls(folder + "/chunk_read.csv")) {
    const auto kib = static_cast<int>(row.at("chunk_kib"));
    const Pages pages = row.kernel == "random" ? scattered_pages(count, static_cast<std::uint32_t>(kib / 4))
                                               : first_parts(32 * 1024 / kib, std::int64_t{1024} * kib,
                                                             static_cast<std::int64_t>(row.at("mib")) * kMiB);
    replay(chunks, row.kernel + " " + std::to_string(kib) + " KiB", row, pages, true);
  }
  Errors of_home;
  for (const CountedCall& row : counted_calls(folder + "/home_read.csv", 0)) {  // every other page of twice as many
    const auto ranges = static_cast<int>(row.at("ranges"));
    const auto mib = static_cast<std::int64_t>(row.at("mib")), begins = static_cast<std::int64_t>(row.at("begins"));
    Pages pages;
    for (std::uint32_t page : first_parts(ranges, 64 / ranges * kMiB, 2 * mib * kMiB)) {
      page += static_cast<std::uint32_t>(begins * kMiB / kListedPageBytes);
      if (homes[page] == 0) pages.push_back(page);
    }
    replay(of_home, std::to_string(ranges) + " ranges from " + std::to_string(begins), row, pages, false);
  }
  print_mean("one side reads its home", of_home);
  print_mean("one side reads", one_side), print_mean("both sides read", both_sides), print_mean("chunks", chunks);
}

/// The phases of shrinking_read (bench/hardware/read_experiments.cpp).
void replay_waves(const std::string& folder, const DeviceSpec& device, const LineSampler& sampler) {
  Errors nothing_written, written;
  for (const CountedCall& row : counted_calls(folder + "/shrinking_read.csv", 0)) {
    const auto of = [&](const char* name) { return static_cast<int>(row.at(name)); };
    const int ranges = of("ranges"), writes = of("written_mib");
    const std::int64_t base = of("base") * kMiB;
    Replay l2(device, sampler);
    for (int size = 32; size >= 12; size -= of("step_mib")) {
      l2.read(backwards_side_by_side(first_parts(ranges, 32 / ranges * kMiB, size * kMiB), ranges), base, {0, 1});
      l2.write(first_parts(1, 0, writes * kMiB), base + (64 + std::int64_t{size} * writes) * kMiB);
    }
    print(writes == 0 ? nothing_written : written,
          std::to_string(ranges) + " ranges, " + std::to_string(of("step_mib")) + " less, writes " +
              std::to_string(writes) + " at " + std::to_string(of("base")),
          row, l2, 32, 1);
  }
  print_mean("waves, nothing written, MiB", nothing_written), print_mean("waves and writes, MiB", written);
}

/// The phases of displaced_read (bench/hardware/displace_experiments.cpp).
void replay_displaced(const std::string& folder, const DeviceSpec& device, const LineSampler& sampler) {
  constexpr std::int64_t resident_base = 256 * kMiB;
  const std::vector<std::uint8_t> homes = homes_of_pages(device);
  std::map<std::string, Errors> errors;
  for (const CountedCall& row : counted_calls(folder + "/displaced_read.csv")) {
    const auto resident = static_cast<std::int64_t>(row.at("resident_mib")),
               size = static_cast<std::int64_t>(row.at("mib"));
    Pages pages = first_parts(1, 0, resident * kMiB);
    Pages between = row.kernel == "write_home_by_home"    ? pages_of_home(homes, 0)
                    : row.kernel == "write_home_by_other" ? pages_of_home(homes, 1)
                                                          : first_parts(1, 0, size * kMiB);
    between.resize(static_cast<std::size_t>(size * kMiB / kListedPageBytes));
    const bool reads = row.kernel.starts_with("read");
    Replay l2(device, sampler);
    l2.read(pages, resident_base, {0, 1});
    for (int round = 0; round < static_cast<int>(row.at("rounds")); ++round) {
      if (row.kernel == "read") l2.read_split(between, 0);
      if (row.kernel == "read_by_both") l2.read(between, 0, {0, 1});
      if (!reads) l2.write(between, 0, row.kernel.starts_with("write_home") ? std::optional(0) : std::nullopt);
    }
    std::reverse(pages.begin(), pages.end());
    l2.read(pages, resident_base, {0, 1});
    print(errors[row.kernel], row.kernel + " " + std::to_string(resident) + " " + std::to_string(size), row, l2,
          static_cast<double>(resident + (reads ? size : 0)), 1);
  }
  for (const auto& [what, error] : errors) print_mean((what + ", MiB read again").c_str(), error);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: l2_replay docs/results/h200-l2\n");
    return 2;
  }
  try {
    const DeviceSpec device = load_device("h200");
    const LineSampler sampler(device, sampling);
    std::printf("measured, predicted; MiB\n");
    replay_cycles(argv[1], device, sampler);
    replay_waves(argv[1], device, sampler);
    replay_displaced(argv[1], device, sampler);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "l2_replay: %s\n", error.what());
    return 1;
  }
  return 0;
}
