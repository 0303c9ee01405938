// What the kernels of the drift benchmark share: one start for all CTAs, and clocks that can be compared.
#pragma once

#include <vector>

#include "attest/hardware/device.h"
#include "attest/hardware/drift.h"
#include "attest/hardware/key_tile.cuh"
#include "attest/hardware/random_numbers.h"
#include "attest/hardware/sm_clock.h"

namespace attest::hardware {

inline constexpr std::int64_t kQueryBytes = std::int64_t{256} << 20;

/// What a CTA notes down.
struct DriftLog {
  unsigned sm;
  long long began;                                                             ///< its SM's clock at the common start
  ClockReadings before, after;                                                 ///< the tiles
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

/// Called by every thread; all CTAs of the grid leave at the same time of the global timer. Returns this SM's clock.
__device__ inline long long start_together(const DriftArguments& a) {
  __shared__ long long began;
  DriftLog& log = a.logs[blockIdx.x];
  unsigned generation = 0;
  if (threadIdx.x == 0) log.sm = sm_id();
  grid_barrier(a.arrived, generation, gridDim.x);
  if (threadIdx.x == 0) {
    read_clock(log.before);
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
