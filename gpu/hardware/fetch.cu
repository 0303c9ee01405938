#include "attest/hardware/pipes.h"
#include "pipes.cuh"

namespace attest::hardware {
namespace {

constexpr int kChains = 16, kBlock = 32;

// A loop of `Instructions` fma. With `Skips`, a branch is taken over as many after each kBlock of them. The second half
// of the warps starts `skew` cycles late, so that it is elsewhere in the loop.
template <int Instructions, bool Skips>
__global__ void __launch_bounds__(256, 1)
    probe_fetch(float* sink, const float* start, int rounds, int skew, bool never, long long* cycles) {
  float x[kChains];
  const float a = start[0], b = start[1];
  for (float& y : x) y = start[2] + static_cast<float>(threadIdx.x);
  const auto block = [&] {
#pragma unroll
    for (int i = 0; i < kBlock; ++i) asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x[i % kChains]) : "f"(a), "f"(b));
  };
  __syncthreads();
  const long long first = clock64();
  if (threadIdx.x >= 128)
    while (clock64() - first < skew) {
    }
  long long began = 0;
#pragma unroll 1
  for (int round = 0; round <= rounds; ++round) {
    if (round == 1) began = clock64();  // the first turn brings the code
#pragma unroll
    for (int i = 0; i < Instructions / kBlock; ++i) {
      block();
      if (Skips && never) block();
    }
  }
  const long long ended = clock64();
  float all = 0;
  for (const float y : x) all += y;
  sink[threadIdx.x] = all;
  if (threadIdx.x % 128 == 0) cycles[threadIdx.x / 128] = ended - began;
}

template <int Instructions, bool Skips>
void measure(std::vector<FetchRate>& rows) {
  const DeviceArray<float> sink(512), start(std::vector<float>{1.0F, 0.0F, 0.5F, 0.0F});
  const DeviceArray<long long> cycles(2);
  constexpr int rounds = 262144 / Instructions;
  for (const int warps : {1, 2})
    for (const bool apart : {false, true}) {
      if (warps == 1 && apart) continue;
      const double t = longest_of_five(cycles, warps, [&] {
        probe_fetch<Instructions, Skips>
            <<<1, 128 * warps>>>(sink.data(), start.data(), rounds, apart ? Instructions : 0, false, cycles.data());
      });
      rows.push_back({Instructions, Skips, warps, apart, t / (static_cast<double>(rounds) * Instructions * warps)});
    }
}

enum class Jump { none, uniform, reconverging };

// A loop of `Blocks` times `Block` fma; after each a branch is taken over `Skipped` more, uniform or one that the warp
// meets again behind.
template <int Block, int Skipped, int Blocks, Jump Kind>
__global__ void __launch_bounds__(512, 1)
    probe_jumps(float* sink, const float* start, int rounds, bool never, int no_lane, long long* cycles) {
  float x[kChains];
  const float a = start[0], b = start[1];
  for (float& y : x) y = start[2] + static_cast<float>(threadIdx.x);
  const auto fma = [&](int i) { asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x[i % kChains]) : "f"(a), "f"(b)); };
  __syncthreads();
  long long began = 0;
#pragma unroll 1
  for (int round = 0; round <= rounds; ++round) {
    if (round == 1) began = clock64();
#pragma unroll
    for (int k = 0; k < Blocks; ++k) {
#pragma unroll
      for (int i = 0; i < Block; ++i) fma(i);
      if (Kind == Jump::uniform ? never : Kind == Jump::reconverging && static_cast<int>(threadIdx.x) == no_lane + k) {
#pragma unroll
        for (int i = 0; i < Skipped; ++i) fma(i);
      }
    }
  }
  const long long ended = clock64();
  float all = 0;
  for (const float y : x) all += y;
  sink[threadIdx.x] = all;
  if (threadIdx.x % 128 == 0) cycles[threadIdx.x / 128] = ended - began;
}

template <int Block, int Skipped, int Blocks, Jump Kind>
double cycles_of_turn(int warps) {
  const DeviceArray<float> sink(512), start(std::vector<float>{1.0F, 0.0F, 0.5F, 0.0F});
  const DeviceArray<long long> cycles(4);
  constexpr int rounds = 2000;
  return longest_of_five(cycles, warps,
                         [&] {
                           probe_jumps<Block, Skipped, Blocks, Kind>
                               <<<1, 128 * warps>>>(sink.data(), start.data(), rounds, false, 1 << 20, cycles.data());
                         }) /
         rounds;
}

template <int Block, int Skipped, int Blocks>
void measure_jumps_over(std::vector<JumpTime>& rows) {
  for (const int warps : {1, 2, 4})
    rows.push_back({Block, Skipped, Blocks, warps, cycles_of_turn<Block, Skipped, Blocks, Jump::none>(warps),
                    cycles_of_turn<Block, Skipped, Blocks, Jump::uniform>(warps),
                    cycles_of_turn<Block, Skipped, Blocks, Jump::reconverging>(warps)});
}

}  // namespace

std::vector<JumpTime> measure_jumps() {
  std::vector<JumpTime> rows;
  measure_jumps_over<8, 16, 1>(rows), measure_jumps_over<8, 16, 2>(rows), measure_jumps_over<8, 16, 4>(rows);
  measure_jumps_over<8, 16, 8>(rows), measure_jumps_over<8, 16, 16>(rows), measure_jumps_over<8, 16, 64>(rows);
  measure_jumps_over<16, 16, 4>(rows), measure_jumps_over<32, 16, 4>(rows), measure_jumps_over<64, 16, 4>(rows);
  measure_jumps_over<8, 32, 4>(rows), measure_jumps_over<8, 64, 4>(rows), measure_jumps_over<8, 128, 4>(rows);
  measure_jumps_over<16, 32, 32>(rows), measure_jumps_over<32, 32, 64>(rows);
  return rows;
}

std::vector<FetchRate> measure_fetch() {
  std::vector<FetchRate> rows;
  measure<128, false>(rows), measure<512, false>(rows), measure<1024, false>(rows), measure<2048, false>(rows);
  measure<4096, false>(rows), measure<6144, false>(rows), measure<8192, false>(rows), measure<16384, false>(rows);
  measure<512, true>(rows), measure<1024, true>(rows), measure<2048, true>(rows), measure<4096, true>(rows);
  measure<8192, true>(rows);
  return rows;
}

}  // namespace attest::hardware
