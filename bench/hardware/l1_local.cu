// L1 as local memory sees it, row by row: l1_rows for frames, by one warp and by eight that take turns. CSV to standard
// output.
//
//     bench/hardware/last_uses.py build/cuda/bin/l1_local && build/cuda/bin/l1_local > docs/results/h200-l1/local.csv
//
// A row is four words of a warp. Letters as l1_rows has them: r reads, w writes, u a last use; of a buffer's rows, and
// in capitals of words of local memory. No PTX asks for the last use of a word of local memory: last_uses.py makes
// loads that stand kLastUse bytes beyond their register last uses, and without it they are loads. Columns: of each warp
// its place in the SM (%warpid), where its words begin (a byte of its local memory).
#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "attest/hardware/device.h"

namespace attest::hardware {
namespace {

constexpr std::int64_t kBytes = std::int64_t{64} << 20, kRowBytes = 512;
constexpr int kWarps = 8, kSmemKib = 228, kSmemReservedKib = 1, kRows = 60;  // of a warp: 960 bytes a thread
constexpr int kHit = 250, kMiss = 340, kWritten = 900;  // cycles: a hit at most, a miss at least, a store
constexpr unsigned kPrefixRows = 43;                    // one more than 28 KiB of L1 hold
constexpr int kPrefix = 2200, kAccesses = 1600;
constexpr std::uint32_t kNever = 12345;  // the buffer holds zeros, and words what is stored: zeros
constexpr std::uint32_t kLastUse = 2048;

struct Access {
  std::uint16_t letter, row;  // of a warp's words: kRows times the warp, and its row
};

struct Places {
  std::uint32_t sm, first_byte;
  std::array<std::uint32_t, kWarps> warps;
};

/// `last_use` is kLastUse, which the compiler does not know.
__global__ void __launch_bounds__(32 * kWarps, 1) play(std::uint8_t* buffer, const Access* accesses, int count,
                                                       std::uint32_t last_use, std::uint16_t* cycles, Places* places) {
  extern __shared__ __align__(16) std::uint8_t smem[];
  std::uint32_t words[4 * kRows];
  auto* const list = reinterpret_cast<Access*>(smem);
  auto* const took = reinterpret_cast<std::uint16_t*>(list + count);
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    std::uint32_t access;  // past L1
    asm volatile("ld.global.cv.u32 %0, [%1];" : "=r"(access) : "l"(accesses + i));
    list[i] = {static_cast<std::uint16_t>(access), static_cast<std::uint16_t>(access >> 16)};
  }
  const auto local = static_cast<std::uint32_t>(__cvta_generic_to_local(words));
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane == 0) {
    std::uint32_t place, sm;
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(place));
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    places->warps[warp] = place;
    if (warp == 0) places->sm = sm, places->first_byte = local;
  }
  std::uint32_t sum = 0;
  for (int i = 0; i < count; ++i) {
    const Access a = list[i];
    const bool of_frame = a.letter < 'a';
    __syncthreads();
    if (warp != (of_frame ? a.row / kRows : 0)) continue;
    std::uint8_t* const at = buffer + kRowBytes * a.row + 16 * lane;
    const std::uint32_t word = local + 16 * (a.row % kRows), last = word - last_use;
    uint4 x{0, 0, 0, 0};
    const long long began = clock64();
    switch (a.letter) {
      case 'r':
        asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                     : "l"(at)
                     : "memory");
        break;
      case 'L':
        asm volatile("ld.local.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                     : "r"(word)
                     : "memory");
        break;
      case 'U':
        asm volatile("ld.local.v4.u32 {%0, %1, %2, %3}, [%4+%5];"
                     : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                     : "r"(last), "n"(kLastUse)
                     : "memory");
        break;
      default:
        asm volatile("st.local.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(word), "r"(0) : "memory");
    }
    sum += x.x ^ x.y ^ x.z ^ x.w;
    if (sum == kNever) __trap();  // a branch on what is read keeps the clock behind it
    if (lane == 0) took[i] = static_cast<std::uint16_t>(min(clock64() - began, 65535ll));
    while (a.letter == 'W' && clock64() - began < kWritten) {
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += blockDim.x) cycles[i] = took[i];
}

using Random = std::mt19937;

class L1 {
 public:
  L1() { check(cudaMemset(buffer_.data(), 0, kBytes)); }

  /// Accesses of `letters` at random after a prefix of reads; `row` of a letter. Prints a line: of each access h or m,
  /// - of a store.
  void play(const std::string& name, std::string_view letters, Random& random,
            const std::function<std::uint32_t(char)>& row) const {
    std::vector<Access> list;
    for (int i = 0; i < kPrefix; ++i) list.push_back({'r', static_cast<std::uint16_t>(random() % kPrefixRows)});
    for (int i = 0; i < kAccesses; ++i) {
      const char letter = letters[random() % letters.size()];
      list.push_back({static_cast<std::uint16_t>(letter), static_cast<std::uint16_t>(row(letter))});
    }
    const int smem = 1024 * (kSmemKib - kSmemReservedKib);
    check(cudaFuncSetAttribute(hardware::play, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
    const DeviceArray<Access> accesses(list);
    const DeviceArray<std::uint16_t> cycles(list.size());
    const DeviceArray<Places> places(1);
    hardware::play<<<1, 32 * kWarps, smem>>>(buffer_.data(), accesses.data(), static_cast<int>(list.size()), kLastUse,
                                             cycles.data(), places.data());
    check(cudaGetLastError());
    const std::vector<std::uint16_t> took = cycles.download();
    const Places lie = places.download().front();
    std::printf("%s,%d,%u,", name.c_str(), kSmemKib, lie.sm);
    for (const std::uint32_t place : lie.warps) std::printf("%u ", place);
    std::printf(",%u,", lie.first_byte);
    for (const Access& a : list) std::printf("%c%u ", a.letter, a.row);
    std::printf(",");
    for (std::size_t i = 0; i < took.size(); ++i) {
      const bool stored = list[i].letter == 'W';
      if (!stored && took[i] > kHit && took[i] < kMiss)
        throw std::runtime_error(name + ": " + std::to_string(took[i]) + " cycles are neither a hit nor a miss");
      std::printf("%c", stored ? '-' : took[i] <= kHit ? 'h' : 'm');
    }
    std::printf("\n");
  }

 private:
  DeviceArray<std::uint8_t> buffer_{kBytes};
};

void measure() {
  const L1 l1;
  Random random(7);
  std::printf("sequence,smem_kib,sm,warps,first_byte,accesses,held\n");
  for (const char* letters : {"L", "LW", "LU", "WU", "LWU"})
    l1.play(std::string("one_") + letters, letters, random, [&](char) { return random() % 50; });
  const auto of_any_warp = [&](std::uint32_t rows) {
    const auto warp = static_cast<std::uint32_t>(random() % kWarps);
    return static_cast<std::uint32_t>(warp * kRows + random() % rows);
  };
  for (const char* letters : {"L", "LU", "LWU"})
    l1.play(std::string("eight_") + letters, letters, random, [&](char) { return of_any_warp(8); });
  l1.play("beside_rL", "rL", random,
          [&](char letter) { return letter == 'r' ? static_cast<std::uint32_t>(random() % 30) : of_any_warp(5); });
}

}  // namespace
}  // namespace attest::hardware

int main() { return attest::hardware::run("l1_local", &attest::hardware::measure); }
