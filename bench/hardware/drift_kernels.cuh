// What the kernels of the drift benchmark share: one start for all CTAs, and clocks that can be compared.
#pragma once

#include <vector>

#include "attest/hardware/device.h"
#include "attest/hardware/key_tile.cuh"

namespace attest::hardware {

inline constexpr int kDriftTiles = 320;
inline constexpr int kClockReadings = 32;
inline constexpr std::int64_t kQueryBytes = std::int64_t{256} << 20;

/// What a CTA notes down.
struct DriftLog {
  unsigned sm;
  long long began;                      ///< its SM's clock at the common start
  long long clock[2][kClockReadings];   ///< of its SM, as the global timer moves on,
  std::uint64_t ns[2][kClockReadings];  ///< to these: before the tiles and after them
  std::uint32_t asked[kDriftTiles], asked_v[kDriftTiles], ended[kDriftTiles];  ///< cycles from `began`
};

struct DriftArguments {
  DriftLog* logs;
  unsigned* arrived;        ///< zero
  std::uint64_t* start_ns;  ///< zero
  const std::uint8_t* tiles;
  int share;                    ///< consecutive CTAs that read one head; 0: nothing is copied
  int distinct;                 ///< tiles a head has; they are read again after that
  int keys_a_query;             ///< divides kDriftTiles; then O leaves and the next Q comes
  const std::uint8_t* queries;  ///< kQueryBytes, read in turn
  std::uint8_t* outputs;        ///< as many
  const float* start;
  float* sink;
};

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
  const std::int64_t queries = kDriftTiles / a.keys_a_query;
  return (blockIdx.x * queries + query) * bytes % (kQueryBytes / bytes * bytes);
}

/// A kernel whose drift is measured. `tile_bytes` are K's, or V's; `query_bytes` Q's, 0 where it stays.
struct DriftKernel {
  const char* matrix;
  int tile_n, headdim, warpgroups;  ///< of four warps, also where mma.sync knows none
  bool turns;                       ///< warpgroups issue their products in turn
  int ctas_an_sm, tile_bytes, query_bytes;
  void (*launch)(int sms, const DriftArguments& a);
};
std::vector<DriftKernel> drift_kernels_wgmma();
std::vector<DriftKernel> drift_kernels_mma();

}  // namespace attest::hardware
