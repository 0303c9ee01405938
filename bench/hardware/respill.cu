#include <stdexcept>

#include "attest/hardware/device.h"
#include "respill.h"

namespace attest::hardware {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kCtasAtATime = 264;
constexpr int kSms = kCtasAtATime / 2;
constexpr int kHeads = 8;
constexpr int kTileBytes = 32 * 1024;

__device__ int read_tile(const Respill& r, const std::uint8_t* buffer, int turn) {
  if (r.shared_bytes == 0) return turn;
  if (r.lag > 0 && blockIdx.x % 2 != 0) turn -= r.lag;
  if (turn < 0) return turn;
  const int tiles = static_cast<int>(r.shared_bytes / kHeads / kTileBytes);
  const int head = static_cast<int>(blockIdx.x) % kCtasAtATime * kHeads / kCtasAtATime;
  const int4* tile = reinterpret_cast<const int4*>(buffer + (static_cast<std::int64_t>(head) * tiles + turn % tiles) *
                                                                static_cast<std::int64_t>(kTileBytes));
  int sum = 0;
#pragma unroll 4
  for (int i = 0; i < kTileBytes / 16 / kThreads; ++i) {
    const int4 v = __ldcg(tile + i * kThreads + threadIdx.x);
    sum += v.x + v.y + v.z + v.w;
  }
  return sum;
}

constexpr int kCtasThatReadAll = 22;

__device__ int read_even(const Respill& r, const std::uint8_t* buffer) {
  const int4* const all = reinterpret_cast<const int4*>(buffer);
  int sum = 0;
#pragma unroll 4
  for (std::int64_t i = blockIdx.x % kCtasThatReadAll * kThreads + threadIdx.x; i < r.even_bytes / 16;
       i += kCtasThatReadAll * kThreads)
    sum += __ldcg(all + i).x;
  return sum;
}

struct Local {
  std::uint32_t first;
  __device__ void store(int word, int x) const {
    asm volatile("st.local.u32 [%0], %1;" ::"r"(first + 4 * word), "r"(x) : "memory");
  }
  __device__ int load(int word) const {
    int x;
    asm volatile("ld.local.u32 %0, [%1];" : "=r"(x) : "r"(first + 4 * word) : "memory");
    return x;
  }
};
struct Global {
  int* first;
  __device__ void store(int word, int x) const { __stcg(first + word * 32, x); }
  __device__ int load(int word) const { return __ldcg(first + word * 32); }
};

__device__ void let_pass(int cycles) {
  if (cycles <= 0) return;
  const long long began = clock64();
  while (clock64() - began < cycles) continue;
}

/// Where words go one by one, a branch before each keeps them from being put together.
template <bool apart, class Words>
__device__ int turns_of(const Respill& r, const std::uint8_t* buffer, unsigned* arrived, const Words& words) {
  int sum = 0;
  unsigned generation = 0;
  for (int w = r.words; w < r.words + r.parked; ++w) words.store(w, w);
  for (int turn = 0; turn < r.turns; ++turn) {
    sum += read_tile(r, buffer, turn) + read_even(r, buffer);
    if (r.in_turn) grid_barrier(arrived, generation, gridDim.x);
    if (r.behind > 0) {
      for (int w = 0; w < r.words + r.behind; ++w) {
        if constexpr (apart) let_pass(r.apart);
        if (w < r.words) words.store(w, sum + w);
        if (w >= r.behind) sum += words.load(w - r.behind);
      }
    } else {
      if (turn == 0 || !r.store_once)
#pragma unroll 8
        for (int w = 0; w < r.words; ++w) {
          if constexpr (apart) let_pass(r.apart);
          words.store(w, sum + w);
        }
      if (r.loads)
#pragma unroll 8
        for (int w = 0; w < r.words; ++w) {
          if constexpr (apart) let_pass(r.apart);
          sum += words.load(w);
        }
    }
    __syncthreads();  // the warps of a CTA stay in one tile
    if (r.in_turn) grid_barrier(arrived, generation, gridDim.x);
  }
  for (int w = r.words; w < r.words + r.parked; ++w) sum += words.load(w);
  return sum;
}

template <int frame, bool apart>
__global__ void __launch_bounds__(kThreads, 2)
    probe_respill_local(Respill r, const std::uint8_t* buffer, std::uint8_t*, unsigned* arrived, int* sink) {
  std::uint32_t array[frame];
  const Local words{static_cast<std::uint32_t>(__cvta_generic_to_local(array))};
  const int sum = turns_of<apart>(r, buffer, arrived, words);
  if (sum == 0x7fffffff) *sink = sum;
}

__global__ void __launch_bounds__(kThreads, 2)
    probe_respill_global(Respill r, const std::uint8_t* buffer, std::uint8_t* spilled, unsigned* arrived, int* sink) {
  const int cta = static_cast<int>(blockIdx.x) % kCtasAtATime, thread = static_cast<int>(threadIdx.x);
  const Global words{
      reinterpret_cast<int*>(spilled + cta % kSms * r.sm_stride + (cta / kSms * kWarps + thread / 32) * r.warp_stride) +
      thread % 32};
  const int sum = turns_of<false>(r, buffer, arrived, words);
  if (sum == 0x7fffffff) *sink = sum;
}

// Registers of which the compiler spills all but some. Only volatile accesses of shared memory stay in order.
template <int values>
__global__ void __maxnreg__(40)
    probe_respill_registers(Respill r, const std::uint8_t* buffer, std::uint8_t*, unsigned*, int* sink) {
  extern __shared__ __align__(16) std::uint8_t smem[];
  volatile int* const word = reinterpret_cast<int*>(smem) + threadIdx.x;
  *word = static_cast<int>(threadIdx.x);
  int sum = 0;
  for (int turn = 0; turn < r.turns; ++turn) {
    sum += read_tile(r, buffer, turn);
    int value[values];
#pragma unroll
    for (int i = 0; i < values; ++i) value[i] = *word;
#pragma unroll
    for (int i = 0; i < values; ++i) *word = value[i];
    __syncthreads();
  }
  if (sum == 0x7fffffff) *sink = sum;
}

using Kernel = void (*)(Respill, const std::uint8_t*, std::uint8_t*, unsigned*, int*);

Kernel of_registers(int values) {
  return values == 48    ? probe_respill_registers<48>
         : values == 96  ? probe_respill_registers<96>
         : values == 144 ? probe_respill_registers<144>
                         : probe_respill_registers<176>;
}

Kernel kernel_of(const Respill& r) {
  switch (r.store) {
    case Store::local:
      return r.apart < 0 ? probe_respill_local<160, false> : probe_respill_local<160, true>;
    case Store::local_256:
      return probe_respill_local<256, false>;
    case Store::global:
      return probe_respill_global;
    case Store::registers:
      return of_registers(r.words);
  }
  return nullptr;
}

}  // namespace

void run_respill(const Respill& respill, std::uint8_t* buffer, std::int64_t spill_base) {
  static const DeviceArray<int> sink(1);  // whose allocation is no part of what is counted
  static const DeviceArray<unsigned> arrived(1);
  const Kernel kernel = kernel_of(respill);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemTwoCtasAnSm));
  if (respill.in_turn) {
    if (respill.store == Store::registers) throw std::invalid_argument("respill: registers do not go in turn");
    int of_sm = 0, sms = 0;
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_sm, kernel, kThreads, kSmemTwoCtasAnSm));
    if (respill.ctas > of_sm * sms)
      throw std::invalid_argument("respill: its CTAs are not resident together, and would wait for each other");
    check(cudaMemset(arrived.data(), 0, sizeof(unsigned)));
  }
  kernel<<<respill.ctas, kThreads, kSmemTwoCtasAnSm>>>(respill, buffer, buffer + spill_base, arrived.data(),
                                                       sink.data());
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
}

int spilled_words(int values) {
  cudaFuncAttributes of{};
  check(cudaFuncGetAttributes(&of, of_registers(values)));
  return static_cast<int>(of.localSizeBytes / 4);
}

}  // namespace attest::hardware
