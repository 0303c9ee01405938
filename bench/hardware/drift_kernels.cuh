// What the kernels of the drift benchmark share: one start for all CTAs, and clocks that can be compared.
#pragma once

#include "device.h"

namespace attest::hardware {

inline constexpr int kDriftTiles = 320;
inline constexpr int kClockReadings = 32;

/// What a CTA notes down.
struct DriftLog {
  unsigned sm;
  long long began;                                       ///< its SM's clock at the common start
  long long clock[2][kClockReadings];                    ///< of its SM, as the global timer moves on,
  std::uint64_t ns[2][kClockReadings];                   ///< to these: before the tiles and after them
  std::uint32_t asked[kDriftTiles], ended[kDriftTiles];  ///< cycles from `began`
};

struct DriftArguments {
  DriftLog* logs;
  unsigned* arrived;        ///< zero
  std::uint64_t* start_ns;  ///< zero
  const std::uint8_t* tiles;
  int share;     ///< consecutive CTAs that read one head; 0: nothing is copied
  int distinct;  ///< tiles a head has; they are read again after that
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

__device__ inline float exp2_of(float x) {
  float y;
  asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline std::uint32_t packed(float low, float high) {
  std::uint32_t x;
  asm volatile("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(x) : "f"(high), "f"(low));
  return x;
}

/// Launch one CTA, or two, on each of `sms` SMs.
void launch_drift_wgmma(int sms, const DriftArguments& a);
void launch_drift_mma(int sms, const DriftArguments& a);

}  // namespace attest::hardware
