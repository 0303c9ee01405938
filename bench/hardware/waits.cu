#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "attest/hardware/device.h"
#include "turn_over.cuh"
#include "waits.h"

namespace attest::hardware {
namespace {

constexpr int kWarps = 8, kTurnBytes = 4096, kTurns = 2;
constexpr std::int64_t kRowStride = 4096;

struct Slices {
  int row_bytes, ctas, share, slices, between, around;
  bool in_l2;
};

struct Waited {
  unsigned long long turn, square, longest;
};

/// Behind all accesses before it.
__device__ long long now() {
  long long cycles;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles)::"memory");
  return cycles;
}

__device__ void spin(int cycles) {
  const long long began = now();
  while (now() - began < cycles) {
  }
}

__global__ void __launch_bounds__(32 * kWarps) probe_waits(Slices s, const std::uint8_t* buffer, Waited* waited) {
  extern __shared__ __align__(16) std::uint8_t smem[];
  __shared__ unsigned longest[kTurns];
  const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(smem)) + threadIdx.x * 16;
  const int rows_a_turn = kTurnBytes / s.row_bytes, lanes_a_row = s.row_bytes / 16;
  // a slice is 128 rows in turns, whose next bytes the next one has; or of wider rows the next ones
  const bool same_rows = s.row_bytes == 64;
  const std::int64_t rows_a_group = same_rows ? kTurns * rows_a_turn : std::int64_t{kTurns} * rows_a_turn * s.slices;
  const std::uint8_t* const mine = buffer + blockIdx.x / s.share * rows_a_group * kRowStride;
  unsigned long long turn = 0, square = 0, of_longest = 0;
  for (int pass = s.in_l2 ? 0 : 1; pass < 2; ++pass) {
    spin(s.around);
    turn = square = of_longest = 0;
    for (int slice = 0; slice < s.slices; ++slice) {
      if (threadIdx.x < kTurns) longest[threadIdx.x] = 0;
      __syncthreads();
      for (int t = 0; t < kTurns; ++t) {
        const std::int64_t row = t * rows_a_turn + static_cast<int>(threadIdx.x) / lanes_a_row +
                                 (same_rows ? 0 : std::int64_t{kTurns} * rows_a_turn * slice);
        const std::uint8_t* const from = mine + row * kRowStride + (same_rows ? slice * s.row_bytes : 0) +
                                         static_cast<int>(threadIdx.x) % lanes_a_row * 16;
        const long long asked = now();
        uint4 x;
        asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                     : "l"(from)
                     : "memory");
        asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to + t * kTurnBytes), "r"(x.x), "r"(x.y),
                     "r"(x.z), "r"(x.w)
                     : "memory");
        const auto took = static_cast<unsigned>(now() - asked);
        turn += took, square += took * took;
        if (threadIdx.x % 32 == 0) atomicMax(longest + t, took);
      }
      __syncthreads();
      for (const unsigned l : longest) of_longest += l;
      spin(s.between);
      __syncthreads();
    }
    spin(s.around);
  }
  if (threadIdx.x % 32 == 0) atomicAdd(&waited->turn, turn), atomicAdd(&waited->square, square);
  if (threadIdx.x == 0) atomicAdd(&waited->longest, of_longest);
}

}  // namespace

void measure_waits(std::ostream& rows) {
  const std::int64_t buffer_bytes = std::int64_t{2304} << 20;
  const DeviceArray<std::uint8_t> buffer(buffer_bytes), other(kTurnOverBytes);
  const DeviceArray<Waited> waited(1);
  constexpr int smem = 56 * 1024;  // as products: 132 KiB of an SM are set aside
  check(cudaFuncSetAttribute(probe_waits, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
  constexpr int of_s = 20000, of_slice = 3000;
  std::vector<Slices> runs;
  for (const int row_bytes : {64, 256})
    for (const int ctas : {1, 64, 264}) {
      runs.push_back({row_bytes, ctas, 1, 4, of_slice, 0, true});
      runs.push_back({row_bytes, ctas, 1, 64, of_slice, 0, false});
    }
  runs.push_back({256, 264, 16, 64, of_slice, 0, false});
  for (const int share : {1, 8, 16, 64}) runs.push_back({64, 2112, share, 4, of_slice, of_s, false});
  for (const Slices& s : runs) {
    std::vector<std::array<double, 3>> all;
    for (int repeat = 0; repeat < 4; ++repeat) {
      turn_over(other);
      waited.upload({{}});
      probe_waits<<<s.ctas, 32 * kWarps, smem>>>(s, buffer.data(), waited.data());
      check(cudaGetLastError());
      const Waited w = waited.download()[0];
      const double turns = static_cast<double>(s.ctas) * s.slices * kTurns;
      const double mean = static_cast<double>(w.turn) / turns / kWarps;
      const double deviation = std::sqrt(static_cast<double>(w.square) / turns / kWarps - mean * mean);
      if (repeat > 0) all.push_back({mean, deviation, static_cast<double>(w.longest) / turns});
    }
    std::sort(all.begin(), all.end());
    rows << s.row_bytes << ',' << s.ctas << ',' << s.share << ',' << s.slices << ',' << s.between << ',' << s.around
         << ',' << (s.in_l2 ? "l2" : "dram");
    for (const double x : all[1]) rows << ',' << x;
    rows << '\n';
  }
}

}  // namespace attest::hardware
