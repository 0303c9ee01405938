// Which lines of memory fall into which of so many sets of the L2 partition of SM 0. CSV to standard output.
//
//     l2_labels 1000 > labels.csv      all lines of 256 MiB, and whether their home is that partition
//     l2_labels 150 60 > far.csv       of 60 GiB beside them, lines of 500 MiB drawn at random
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "attest/hardware/l2_set_finder.cuh"
#include "whole_number.h"

namespace attest::hardware {
namespace {

constexpr int kReaders = 256;
constexpr std::uint32_t kChunkLines = 8192;

/// The SMs of one side read so many lines of a buffer, or those of a list.
__global__ void __launch_bounds__(kReaders, 1)
    read_lines(const std::uint8_t* buffer, const int* rank_of_sm, int readers, const std::uint32_t* list, int count,
               unsigned* sink) {
  const int rank = rank_of_sm[sm_id()];
  if (rank < 0) return;
  std::uint32_t sum = 0;
  for (int i = rank * kReaders + static_cast<int>(threadIdx.x); i < count; i += readers * kReaders)
    sum += read(buffer + kLineBytes * (list != nullptr ? list[i] : static_cast<std::uint32_t>(i)));
  if (sum != 0) *sink = sum;
}

/// What each of a chunk's lines takes, in cycles; each SM of the side reads its part of them one by one.
__global__ void __launch_bounds__(32, 1)
    time_lines(const std::uint8_t* mib, const int* rank_of_sm, int readers, std::uint16_t* cycles) {
  const int rank = rank_of_sm[sm_id()];
  if (rank < 0 || threadIdx.x != 0) return;
  long long before = clock64();
  for (std::uint32_t i = static_cast<std::uint32_t>(rank); i < kChunkLines; i += static_cast<unsigned>(readers)) {
    if (read(mib + kLineBytes * i + (before == kNever ? 4 : 0)) == kNever) __trap();
    const long long now = clock64();
    cycles[i] = static_cast<std::uint16_t>(min(now - before, 65535ll));
    before = clock64();
  }
}

/// Of numbers below `count`.
int bits_of(int count) {
  int bits = 1;
  while (1 << bits < count) ++bits;
  return bits;
}

/// Every set has a number: the lines of all sets, three times over, whose number has `bit` as `value` says.
Lines drivers(const std::vector<Lines>& sets, int bit, int value) {
  Lines lines;
  for (int again = 0; again < 3; ++again)
    for (std::size_t set = 0; set < sets.size(); ++set)
      if (static_cast<int>(set >> bit & 1) == value) lines.insert(lines.end(), sets[set].begin(), sets[set].end());
  return lines;
}

/// The set of which it is a line: in all rounds but those that drive that set out it is near. Negative where that is
/// not clear of any bit.
int decoded(const std::vector<std::vector<std::uint16_t>>& took, std::size_t line) {
  constexpr int apart = 100;  // cycles
  int set = 0;
  for (std::size_t bit = 0; bit < took.size() / 2; ++bit) {
    const int longer = took[2 * bit + 1][line] - took[2 * bit][line];
    if (std::abs(longer) <= apart) return -1;
    set |= (longer > 0 ? 1 : 0) << bit;
  }
  return set;
}

/// Says which lines of a MiB fall into which of some sets of SM 0's partition. The MiB is read, then the lines of half
/// of the sets, which drive out what of the MiB falls into them, then the MiB again by the clock.
class Labels {
 public:
  explicit Labels(int count) : finder_(std::random_device{}()), sink_(1), cycles_(kChunkLines) {
    for (int set = 0; set < count; ++set) sets_.push_back(finder_.find());
    for (int round = 0; round < 2 * bits_of(count); ++round) {
      const Lines lines = drivers(sets_, round / 2, round % 2);
      sizes_.push_back(lines.size());
      lists_.emplace_back(lines);
    }
    std::vector<int> ranks;
    for (const SmPlace& sm : finder_.sms()) ranks.push_back(sm.side == finder_.sms()[0].side ? readers_++ : -1);
    rank_of_sm_.emplace_back(ranks);
    check(cudaFuncSetAttribute(read_lines, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemOneCtaAnSm));
    check(cudaFuncSetAttribute(time_lines, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemOneCtaAnSm));
  }
  const L2SetFinder& finder() const { return finder_; }
  const std::vector<Lines>& sets() const { return sets_; }

  /// Calls f(line of the MiB, set) for each.
  template <class F>
  void of_mib(const std::uint8_t* mib, F&& f) const {
    const auto ctas = static_cast<unsigned>(finder_.sms().size());
    const int* const ranks = rank_of_sm_.front().data();
    const auto read_all = [&](const std::uint8_t* at, const std::uint32_t* list, std::size_t lines) {
      read_lines<<<ctas, kReaders, kSmemOneCtaAnSm>>>(at, ranks, readers_, list, static_cast<int>(lines), sink_.data());
    };
    std::vector<std::vector<std::uint16_t>> took;
    for (std::size_t round = 0; round < lists_.size(); ++round) {
      read_all(mib, nullptr, kChunkLines);
      read_all(finder_.buffer(), lists_[round].data(), sizes_[round]);
      time_lines<<<ctas, 32, kSmemOneCtaAnSm>>>(mib, ranks, readers_, cycles_.data());
      check(cudaGetLastError());
      took.push_back(cycles_.download());
    }
    for (std::uint32_t line = 0; line < kChunkLines; ++line)
      if (const int set = decoded(took, line); set >= 0 && set < static_cast<int>(sets_.size())) f(line, set);
  }

 private:
  L2SetFinder finder_;
  std::vector<Lines> sets_;
  std::vector<DeviceArray<std::uint32_t>> lists_;
  std::vector<std::size_t> sizes_;
  std::vector<DeviceArray<int>> rank_of_sm_;  // one
  int readers_ = 0;
  DeviceArray<unsigned> sink_;
  DeviceArray<std::uint16_t> cycles_;
};

/// Of the finder's buffer, with whether a line's home is SM 0's partition.
void labels(int count) {
  const Labels labels(count);
  constexpr std::int64_t mibs = 256;
  const L2SetFinder& finder = labels.finder();
  const std::vector<std::uint8_t> homes = page_homes(finder.buffer(), mibs << 20, finder.sms());
  std::printf("line,set,home\n");
  for (std::int64_t mib = 0; mib < mibs; ++mib)
    labels.of_mib(finder.buffer() + (mib << 20), [&](std::uint32_t line, int set) {
      const auto at = static_cast<std::size_t>(mib * kChunkLines + line);
      const bool home = homes[at / (kPageBytes / kLineBytes)] == finder.sms()[0].side;
      std::printf("%zu,%d,%d\n", at, set, home ? 1 : 0);
    });
}

/// Of a further buffer, 1; and of the finder's, 0, two lines of each set.
void far_labels(int count, std::int64_t gib) {
  const Labels labels(count);
  const DeviceArray<std::uint8_t> buffer(static_cast<std::size_t>(gib) << 30);
  std::printf("buffer,line,set\n");
  for (int set = 0; set < count; ++set)
    for (const std::size_t i : {0, 1}) std::printf("0,%u,%d\n", labels.sets()[static_cast<std::size_t>(set)][i], set);
  std::mt19937_64 random(3);
  for (int i = 0; i < 500; ++i) {
    const auto mib = static_cast<std::int64_t>(random() % (static_cast<std::uint64_t>(gib) << 10));
    labels.of_mib(buffer.data() + (mib << 20), [&](std::uint32_t line, int set) {
      std::printf("1,%lld,%d\n", static_cast<long long>(mib * kChunkLines + line), set);
    });
  }
}

}  // namespace
}  // namespace attest::hardware

int main(int argc, char** argv) try {
  using namespace attest::hardware;
  if (argc != 2 && argc != 3) throw std::runtime_error("needs a number of sets, and GiB or nothing");
  const int sets = static_cast<int>(whole_number(argv[1], "sets", 1, 10'000));
  argc == 2 ? labels(sets) : far_labels(sets, whole_number(argv[2], "GiB", 1, 1000));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "l2_labels: %s\n", error.what());
  return 1;
}
