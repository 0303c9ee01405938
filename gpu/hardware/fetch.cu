#include <algorithm>
#include <array>

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

// A loop of `Instructions` fma on all warps of an SM, each of `Chains` that depend on one another. Warps are in
// `streams` groups of neighbours; each begins `skew` cycles after the one before, so that it is elsewhere in the loop,
// and the CTA of one SM a part of that after the SM's before.
template <int Instructions, int Chains>
__global__ void __launch_bounds__(512, 1)
    probe_streams(float* sink, const float* start, int rounds, int streams, int skew, long long* cycles) {
  float x[Chains];
  const float a = start[0], b = start[1];
  for (float& y : x) y = start[2] + static_cast<float>(threadIdx.x);
  const int warp = static_cast<int>(threadIdx.x / 32), warps = static_cast<int>(blockDim.x / 32);
  const int cta = static_cast<int>(blockIdx.x), ctas = static_cast<int>(gridDim.x);
  const int wait = warp * streams / warps * skew + cta * skew / ctas;
  __syncthreads();
  const long long first = clock64();
  while (clock64() - first < wait) {
  }
  const long long entered = clock64();
  long long began = 0;
#pragma unroll 1
  for (int round = 0; round <= rounds; ++round) {
    if (round == 1) began = clock64();
#pragma unroll
    for (int i = 0; i < Instructions; ++i)
      asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x[i % Chains]) : "f"(a), "f"(b));
  }
  const long long ended = clock64();
  float all = 0;
  for (const float y : x) all += y;
  sink[threadIdx.x] = all;
  if (threadIdx.x % 32 == 0) cycles[cta * warps + warp] = ended - (rounds == 0 ? entered : began);
}

template <int Instructions, int Chains>
void measure_streams(std::vector<FetchOfStreams>& rows) {
  constexpr int rounds = 4;  // few, since who follows another within what is cached catches up
  for (const int sms : {1, 2, 132})
    for (const int warps : {1, 2}) {
      const DeviceArray<float> sink(512), start(std::vector<float>{1.0F, 0.0F, 0.5F, 0.0F});
      const DeviceArray<long long> cycles(static_cast<std::size_t>(sms * 4 * warps));
      double turn = 0;
      for (const int streams : {1, warps, 4 * warps}) {
        if (streams == 1 && turn != 0) continue;
        const int skew = streams == 1 ? 0 : static_cast<int>(turn / streams);
        const auto cycles_of = [&](int turns_after_the_first) {
          return longest_of_five(cycles, sms * 4 * warps, [&] {
            probe_streams<Instructions, Chains>
                <<<sms, 128 * warps>>>(sink.data(), start.data(), turns_after_the_first, streams, skew, cycles.data());
          });
        };
        const double t = cycles_of(rounds) / rounds;
        if (streams == 1) turn = t;
        rows.push_back({Instructions, Chains, sms, warps, streams, t / Instructions, cycles_of(0) / Instructions});
      }
    }
}

__device__ long long now() {
  long long t;
  asm volatile("mov.u64 %0, %clock64;" : "=l"(t)::"memory");
  return t;
}

// CTAs of a warp a scheduler, two an SM, that walk `Instructions` fma straight, each waiting for the one before, and
// then stay in 8 KB of code for `turns`; each begins elsewhere. Their warps meet after every kMeet, as in a key tile.
template <int Instructions>
__global__ void __launch_bounds__(128, 2)
    probe_walks(float* sink, const float* start, int rounds, int turns, int spread, long long* cycles) {
  constexpr int kMeet = 512;
  float x = start[2] + static_cast<float>(threadIdx.x);
  const float a = start[0], b = start[1];
  const auto fma = [&] { asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x) : "f"(a), "f"(b)); };
  const long long entered = now();
  const long long wait = blockIdx.x * 2654435761u % 1024 * static_cast<long long>(spread) / 1024;
  while (now() - entered < wait) {
  }
  long long walked = 0, all = 0;
#pragma unroll 1
  for (int round = 0; round <= rounds; ++round) {
    const long long began = now();
#pragma unroll
    for (int part = 0; part < Instructions / kMeet; ++part) {
#pragma unroll
      for (int i = 0; i < kMeet; ++i) fma();
      __syncthreads();
    }
    const long long there = now();
#pragma unroll 1
    for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
      for (int i = 0; i < kMeet; ++i) fma();
    }
    if (round > 0) walked += there - began, all += now() - began;
  }
  if (x == 0) sink[threadIdx.x] = x;
  if (threadIdx.x == 0) cycles[2 * blockIdx.x] = walked, cycles[2 * blockIdx.x + 1] = all;
}

template <int Instructions>
void measure_walks(std::vector<WalkedCode>& rows, int sms) {
  const DeviceArray<float> sink(512), start(std::vector<float>{1.0F, 0.0F, 0.5F, 0.0F});
  constexpr int rounds = 8;
  for (const int used : {1, sms})
    for (const bool apart : {false, true})
      for (const int turns : {0, 2, 4, 8, 16, 32, 64}) {
        const DeviceArray<long long> cycles(static_cast<std::size_t>(4 * used));
        const int spread = apart ? 4 * (Instructions + 512 * turns) : 0;
        std::vector<std::array<double, 2>> all;
        for (int run = 0; run < 5; ++run) {
          probe_walks<Instructions>
              <<<2 * used, 128, kSmemTwoCtasAnSm>>>(sink.data(), start.data(), rounds, turns, spread, cycles.data());
          check(cudaGetLastError());
          std::array<double, 2> sum{};
          const std::vector<long long> each = cycles.download();
          for (std::size_t i = 0; i < each.size(); ++i) sum[i % 2] += static_cast<double>(each[i]);
          all.push_back(sum);
        }
        std::sort(all.begin(), all.end());
        const double walks = 2.0 * used * rounds;
        rows.push_back({Instructions, used, turns, apart, all[2][0] / walks / Instructions, all[2][1] / walks});
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

std::vector<FetchOfStreams> measure_fetch_of_streams() {
  std::vector<FetchOfStreams> rows;
  measure_streams<1024, 16>(rows), measure_streams<2048, 16>(rows), measure_streams<4096, 16>(rows);
  measure_streams<6144, 16>(rows), measure_streams<8192, 16>(rows), measure_streams<12288, 16>(rows);
  measure_streams<1024, 1>(rows), measure_streams<2048, 1>(rows), measure_streams<4096, 1>(rows);
  measure_streams<6144, 1>(rows), measure_streams<8192, 1>(rows), measure_streams<12288, 1>(rows);
  return rows;
}

std::vector<WalkedCode> measure_walked_code() {
  std::vector<WalkedCode> rows;
  int sms = 0;
  check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const auto two_an_sm = [](auto kernel) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemTwoCtasAnSm));
  };
  two_an_sm(probe_walks<1024>), two_an_sm(probe_walks<2048>), two_an_sm(probe_walks<4096>);
  two_an_sm(probe_walks<6144>), two_an_sm(probe_walks<8192>);
  measure_walks<1024>(rows, sms), measure_walks<2048>(rows, sms), measure_walks<4096>(rows, sms);
  measure_walks<6144>(rows, sms), measure_walks<8192>(rows, sms);
  return rows;
}

}  // namespace attest::hardware
