// What the kernels of the drift benchmark share: one start for all CTAs, and clocks that can be compared.
#pragma once

#include <vector>

#include "attest/hardware/device.h"
#include "attest/hardware/drift.h"
#include "attest/hardware/key_tile.cuh"

namespace attest::hardware {

inline constexpr int kClockReadings = 32;
inline constexpr std::int64_t kQueryBytes = std::int64_t{256} << 20;

/// What a CTA notes down.
struct DriftLog {
  unsigned sm;
  long long began;                      ///< its SM's clock at the common start
  long long clock[2][kClockReadings];   ///< of its SM, as the global timer moves on,
  std::uint64_t ns[2][kClockReadings];  ///< to these: before the tiles and after them
  std::uint32_t asked[drift_tiles], asked_v[drift_tiles], ended[drift_tiles];  ///< cycles from `began`
};

struct DriftArguments {
  DriftLog* logs;
  unsigned* arrived;        ///< zero
  std::uint64_t* start_ns;  ///< zero
  const std::uint8_t* tiles;
  int share, distinct, keys_a_query;  ///< as DriftSource has them
  const std::uint8_t* queries;        ///< kQueryBytes, read in turn
  std::uint8_t* outputs;              ///< as many
  const float* start;
  float* sink;
};

/// Two numbers of bf16 between -2 and 2, as matrix units of a kernel with data have them: what they are made of decides
/// how much power is drawn, and so the clocks.
__device__ inline std::uint32_t random_pair(std::uint32_t i) {
  std::uint32_t x = i * 2654435761u;
  x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu, x ^= x >> 16;
  const auto number = [](std::uint32_t of_16_bits) {
    return __float_as_uint(static_cast<float>(of_16_bits) * 0x1p-14F - 2) >> 16;
  };
  return number(x & 0xffff) | number(x >> 16) << 16;
}

__device__ inline void read_clocks(DriftLog& log, int when) {
  for (int i = 0; i < kClockReadings; ++i) {
    const std::uint64_t before = global_time_ns();
    std::uint64_t now = before;
    while (now == before) now = global_time_ns();
    log.clock[when][i] = clock64();
    log.ns[when][i] = now;
  }
}

/// Called by every thread; all CTAs of the grid leave at the same time of the global timer. Returns this SM's clock.
__device__ inline long long start_together(const DriftArguments& a) {
  __shared__ long long began;
  DriftLog& log = a.logs[blockIdx.x];
  unsigned generation = 0;
  if (threadIdx.x == 0) log.sm = sm_id();
  grid_barrier(a.arrived, generation, gridDim.x);
  if (threadIdx.x == 0) {
    read_clocks(log, 0);
    if (blockIdx.x == 0) *static_cast<volatile std::uint64_t*>(a.start_ns) = global_time_ns() + 100'000;
    std::uint64_t start = 0;
    while (start == 0) start = *static_cast<volatile std::uint64_t*>(a.start_ns);
    while (global_time_ns() < start) {
    }
    log.began = began = clock64();
  }
  __syncthreads();
  return began;
}

/// Byte of the buffer at which the CTA's t-th tile of `bytes` is.
__device__ inline std::int64_t tile_at(const DriftArguments& a, int t, int bytes) {
  return (static_cast<std::int64_t>(blockIdx.x) / a.share * a.distinct + t % a.distinct) * bytes;
}

/// Byte at which the CTA's Q and O of `bytes` are.
__device__ inline std::int64_t query_at(const DriftArguments& a, int query, int bytes) {
  const std::int64_t queries = drift_tiles / a.keys_a_query;
  return (blockIdx.x * queries + query) * bytes % (kQueryBytes / bytes * bytes);
}

std::vector<DriftKernel> drift_kernels_wgmma();
std::vector<DriftKernel> drift_kernels_mma();

}  // namespace attest::hardware
