// Where in memory frames of local memory and buffers lie: by which sets of L2 their lines fall into. CSV to standard
// output.
//
//     memory_places h200 > memory_places.csv         of a process as it is
//     memory_places h200 2048 > memory_places_2048.csv    with that stack limit
//     memory_places h200 counted > memory_places_counted.csv    while CUPTI counts
//     memory_places slots > local_slots.csv          which places for warps (%warpid), each with a frame, CTAs get
//
// What is looked for is read, then lines of the first buffer that the model's hash (simulator/l2_hash.h) has in half of
// the sets, by a bit of their number, which drive out what lies there; then the same again, by the clock.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "attest/counters/counter_reader.h"
#include "attest/hardware/l2_set_finder.cuh"
#include "hashed_buffer.cuh"
#include "whole_number.h"

namespace attest::hardware {
namespace {

constexpr int kWords = 240;  // of a frame: what a process has without a stack limit; and lines of a piece of a buffer
constexpr int kThreads = 1024, kWarpsACta = kThreads / 32, kWarpsAnSm = 64;
constexpr int kL1Bytes = 64 << 10;  // twice what L1 has beside that much shared memory
constexpr int kIndexBits = 9, kSliceBits = 6, kBits = kIndexBits + kSliceBits;

/// Each SM's warp in that place (%warpid) reads its frame's words, or a line of the piece for each, one by one.
__global__ void __launch_bounds__(kThreads, 2)
    read_words(std::uint32_t warp, const std::uint8_t* piece, const std::uint8_t* other, unsigned* ctas_of_sm,
               std::uint32_t* first_byte, std::uint16_t* cycles, unsigned* sink) {
  std::uint32_t array[kWords];
  const auto first = static_cast<std::uint32_t>(__cvta_generic_to_local(array));
  const std::uint32_t sm = sm_id();
  if (threadIdx.x == 0) {
    atomicAdd(ctas_of_sm + sm, 1u);
    while (*static_cast<volatile unsigned*>(ctas_of_sm + sm) < kWarpsAnSm / kWarpsACta) {  // so that all are there
    }
  }
  __syncthreads();
  std::uint32_t place;
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(place));
  if (place != warp) return;
  std::uint32_t sum = 0;
  for (int at = 16 * static_cast<int>(threadIdx.x % 32); at < kL1Bytes; at += 512) {
    std::uint32_t x;
    asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(x) : "l"(other + at) : "memory");
    sum += x;
  }
  if (sum == kNever) *sink = sum;
  __syncwarp();
  long long before = clock64();
  for (int word = 0; word < kWords; ++word) {
    const int at = word + (before == kNever ? 1 : 0);
    std::uint32_t x;
    if (piece != nullptr)
      x = read(piece + kLineBytes * at);
    else
      asm volatile("ld.local.u32 %0, [%1];" : "=r"(x) : "r"(first + 4 * at) : "memory");
    if (__any_sync(0xffffffff, x == kNever)) *sink = x;
    const long long now = clock64();
    if (threadIdx.x % 32 == 0) cycles[sm * kWords + word] = static_cast<std::uint16_t>(min(now - before, 65535ll));
    __syncwarp();
    before = clock64();
  }
  *first_byte = first;
}

/// The SMs of each side read all lines of a list.
__global__ void __launch_bounds__(kThreads, 1)
    drive_out(const std::uint8_t* buffer, const int* rank_of_side, int readers, const std::uint32_t* list, int count,
              unsigned* sink) {
  std::uint32_t sum = 0;
  for (int i = rank_of_side[sm_id()] * kThreads + static_cast<int>(threadIdx.x); i < count; i += readers * kThreads)
    sum += read(buffer + kLineBytes * list[i]);
  if (sum != 0) *sink = sum;
}

/// Of each line, by home: the number of its set, or -1 where that is not clear.
using Labels = std::vector<std::array<int, 2>>;

struct Found {
  std::uint64_t line = 0;
  int agree = 0, differ = 0;
};

class MemoryPlaces {
 public:
  explicit MemoryPlaces(const std::string& device)
      : sms_(locate_sms()), first_(kFirstBytes), places_(device, first_.data()), other_(kL1Bytes + 512), sink_(1) {
    Lines all(kFirstBytes / kLineBytes);
    std::iota(all.begin(), all.end(), 0);
    places_.find_first(all);
    std::printf("first buffer,,,%zu,0,%llu,,\n", kFirstBytes, static_cast<unsigned long long>(places_.in_memory(0)));
    constexpr std::size_t lines_a_set = 40;
    const std::size_t slices = places_.hash().slices();
    std::vector<Lines> sets(2 * slices * L2Hash::sets_a_slice);
    for (const std::uint32_t line : all) {
      const L2Hash::Place p = places_.of(line);
      Lines& set = sets[(p.home * slices + p.slice) * L2Hash::sets_a_slice + p.index];
      if (set.size() < lines_a_set) set.push_back(line);
    }
    for (std::size_t home = 0; home < 2; ++home)
      for (int bit = 0; bit < kBits; ++bit)
        for (std::size_t value = 0; value < 2; ++value) {
          Lines lines;
          for (std::size_t n = 0; n < lines_a_set; ++n)
            for (std::size_t slice = 0; slice < slices; ++slice)
              for (std::size_t index = 0; index < L2Hash::sets_a_slice; ++index) {
                const Lines& set = sets[(home * slices + slice) * L2Hash::sets_a_slice + index];
                if (((slice << kIndexBits | index) >> bit & 1) == value && n < set.size()) lines.push_back(set[n]);
              }
          sizes_.push_back(static_cast<int>(lines.size()));
          lists_.emplace_back(lines);
        }
    std::vector<int> ranks;
    for (const SmPlace& sm : sms_) {
      ranks.push_back(sm.rank_of_side);
      readers_ = std::max(readers_, sm.rank_of_side + 1);
    }
    ranks_.emplace_back(ranks);
    check(cudaFuncSetAttribute(read_words, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemTwoCtasAnSm));
    check(cudaFuncSetAttribute(drive_out, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemOneCtaAnSm));
  }

  /// Frames of some SMs' warps, wherever they lie in the first 2 GiB.
  void print_frames() const {
    for (const std::uint32_t warp : {0, 1, 31, 32, 63}) {
      const auto [labels, first_byte] = label(warp, nullptr);
      for (const std::size_t sm : {std::size_t{0}, std::size_t{1}, sms_.size() / 2, sms_.size() - 1}) {
        const Labels of_sm(labels.begin() + static_cast<std::ptrdiff_t>(sm * kWords),
                           labels.begin() + static_cast<std::ptrdiff_t>((sm + 1) * kWords));
        std::printf("frame,%zu,%u,,%u,", sm, warp, first_byte);
        print(find(of_sm, 1, std::uint64_t{2} << 10));
      }
    }
  }

  /// The begin, the middle and the end of buffers of many sizes, one after the other, in the first 16 GiB.
  void print_buffers() const {
    std::vector<DeviceArray<std::uint8_t>> buffers;
    for (const int mib : {1, 1, 1, 2, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048})
      buffers.emplace_back(static_cast<std::size_t>(mib) << 20);
    const std::uint64_t lines_a_page = kPageBytes / kLineBytes;
    for (const DeviceArray<std::uint8_t>& buffer : buffers) {
      const std::size_t pieces = buffer.size() >> 18;
      for (const std::size_t piece : {std::size_t{0}, pieces / 2, pieces - 1}) {
        const auto [labels, first_byte] = label(0, buffer.data() + (piece << 18));
        std::printf("buffer,,,%zu,%zu,", buffer.size(), piece << 18);
        print(find(Labels(labels.begin(), labels.begin() + kWords), lines_a_page, std::uint64_t{16} << 10));
      }
    }
  }

 private:
  /// Of each SM's warp, one SM's after the other.
  std::pair<Labels, std::uint32_t> label(std::uint32_t warp, const std::uint8_t* piece) const {
    const auto ctas = static_cast<unsigned>(sms_.size());
    const DeviceArray<std::uint32_t> first_byte(1);
    const DeviceArray<std::uint16_t> cycles(sms_.size() * kWords);
    const auto words = [&] {
      const DeviceArray<unsigned> ctas_of_sm(sms_.size());
      read_words<<<2 * ctas, kThreads, kSmemTwoCtasAnSm>>>(warp, piece, other_.data(), ctas_of_sm.data(),
                                                           first_byte.data(), cycles.data(), sink_.data());
      check(cudaGetLastError());
      return cycles.download();
    };
    std::vector<std::vector<std::uint16_t>> took;
    for (std::size_t round = 0; round < lists_.size(); ++round) {
      words();
      drive_out<<<ctas, kThreads, kSmemOneCtaAnSm>>>(first_.data(), ranks_.front().data(), readers_,
                                                     lists_[round].data(), sizes_[round], sink_.data());
      check(cudaGetLastError());
      took.push_back(words());
    }
    Labels labels;
    for (std::size_t line = 0; line < sms_.size() * kWords; ++line)
      labels.push_back({decoded(took, 0, line), decoded(took, std::size_t{2} * kBits, line)});
    return {labels, first_byte.download()[0]};
  }

  /// The set's number if each bit's two rounds clearly differ.
  static int decoded(const std::vector<std::vector<std::uint16_t>>& took, std::size_t round, std::size_t line) {
    constexpr int apart = 100;  // cycles
    int set = 0;
    for (std::size_t bit = 0; bit < kBits; ++bit) {
      const int longer = took[round + 2 * bit + 1][line] - took[round + 2 * bit][line];
      if (std::abs(longer) <= apart) return -1;
      set |= (longer > 0 ? 1 : 0) << bit;
    }
    return set;
  }

  /// The line, a multiple of `step`, with which lines that follow it have those sets most often.
  Found find(const Labels& labels, std::uint64_t step, std::uint64_t mib) const {
    Found best;
    for (std::uint64_t line = 0; line < mib * kLinesAMib; line += step) {
      Found here{line};
      for (std::size_t i = 0; i < labels.size() && here.differ < 2 * (here.agree + 1); ++i) {
        const L2Hash::Place p = places_.of_memory(line + i);
        const int set = labels[i][p.home];
        if (set >= 0) ++(set == static_cast<int>(p.slice << kIndexBits | p.index) ? here.agree : here.differ);
      }
      if (here.agree > best.agree) best = here;
    }
    return best;
  }
  static void print(const Found& found) {
    std::printf("%llu,%d,%d\n", static_cast<unsigned long long>(found.line), found.agree, found.differ);
    std::fflush(stdout);
  }

  std::vector<SmPlace> sms_;
  DeviceArray<std::uint8_t> first_;
  HashedBuffer places_;
  DeviceArray<std::uint8_t> other_;
  DeviceArray<unsigned> sink_;
  std::vector<DeviceArray<std::uint32_t>> lists_;  // by home, bit and value
  std::vector<int> sizes_;
  std::vector<DeviceArray<int>> ranks_;  // one
  int readers_ = 0;
};

/// In the order in which CTAs begin on an SM, the place of each of their warps. They last longer and longer.
__global__ void note_places(unsigned* ctas_of_sm, std::uint32_t* sms, std::uint32_t* orders, std::uint32_t* places) {
  __shared__ unsigned order;
  if (threadIdx.x == 0) order = atomicAdd(ctas_of_sm + sm_id(), 1u);
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    std::uint32_t place;
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(place));
    places[blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32] = place;
  }
  sms[blockIdx.x] = sm_id(), orders[blockIdx.x] = order;
  const long long began = clock64();
  while (clock64() - began < 20'000 + 500 * static_cast<int>(blockIdx.x % 97)) {
  }
}

void slots() {
  constexpr int kib[] = {0, 160, 100, 70, 50};  // of shared memory, with which so many CTAs fill an SM
  check(cudaFuncSetAttribute(note_places, cudaFuncAttributeMaxDynamicSharedMemorySize, kib[1] << 10));
  const std::size_t sms = locate_sms().size();
  std::printf("warps,ctas,sm,order,places\n");
  for (const auto& [warps, ctas] : {std::pair{4, 1}, {4, 2}, {4, 3}, {4, 4}, {8, 1}, {8, 2}, {12, 1}, {12, 2}}) {
    const std::size_t all = sms * static_cast<std::size_t>(ctas) * 3;
    const DeviceArray<unsigned> ctas_of_sm(sms);
    const DeviceArray<std::uint32_t> of_sm(all), orders(all), places(all * static_cast<std::size_t>(warps));
    note_places<<<static_cast<unsigned>(all), 32 * static_cast<unsigned>(warps), kib[ctas] << 10>>>(
        ctas_of_sm.data(), of_sm.data(), orders.data(), places.data());
    check(cudaGetLastError());
    const std::vector<std::uint32_t> sm = of_sm.download(), order = orders.download(), place = places.download();
    for (std::size_t cta = 0; cta < all; ++cta) {
      if (sm[cta] % 33 != 0) continue;
      std::printf("%d,%d,%u,%u,", warps, ctas, sm[cta], order[cta]);
      for (int warp = 0; warp < warps; ++warp)
        std::printf("%s%u", warp == 0 ? "" : " ",
                    place[cta * static_cast<std::size_t>(warps) + static_cast<std::size_t>(warp)]);
      std::printf("\n");
    }
  }
}

/// Its frames, found while CUPTI counts.
class Counted : public CountedWork {
 public:
  explicit Counted(const MemoryPlaces& places) : places_(places) {}
  void launch() override { places_.print_frames(); }
  void wait() override { check(cudaDeviceSynchronize()); }
  void empty_l2() override {}

 private:
  const MemoryPlaces& places_;
};

}  // namespace
}  // namespace attest::hardware

int main(int argc, char** argv) try {
  using namespace attest::hardware;
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 1 && words[0] == "slots") return slots(), 0;
  if (words.size() != 1 && words.size() != 2)
    throw std::runtime_error("needs DEVICE [STACK_LIMIT | counted], or slots");
  const bool counted = words.size() == 2 && words[1] == "counted";
  if (words.size() == 2 && !counted)
    check(cudaDeviceSetLimit(cudaLimitStackSize,
                             static_cast<std::size_t>(whole_number(words[1], "stack limit", 1, 524288))));
  std::printf("what,sm,warp,bytes,at,line,agree,differ\n");
  const MemoryPlaces places(words[0]);
  if (counted) {
    Counted work(places);
    attest::CounterReader({"dram__bytes_read.sum"}).read(work, false);
    return 0;
  }
  places.print_frames();
  places.print_buffers();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "memory_places: %s\n", error.what());
  return 1;
}
