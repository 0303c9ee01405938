#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "attest/hardware/device.h"
#include "attest/hardware/key_tile.cuh"
#include "attest/hardware/wgmma.h"
#include "gates.h"

namespace attest::hardware {
namespace {

constexpr int kPasses = 256, kUnrolled = 8, kBatch = 8, kBatches = 128;
constexpr int kBegin = 4000;  // cycles after products have begun
constexpr int kGroups = 4;    // warpgroups: who is measured, its partner, who multiplies, and a producer's warp

enum class Gate { over, arrive, ring, turn };

__device__ void begin_barrier(std::uint32_t at, int count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory");
}
__device__ void arrive(std::uint32_t at) { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(at) : "memory"); }

template <Gate G, int Slots>
__global__ void __launch_bounds__(128 * kGroups, 1) probe_gates(float* sink, bool products, long long* cycles) {
  extern __shared__ __align__(1024) std::uint8_t smem[];
  __shared__ __align__(8) std::uint64_t barriers[2 * Slots + 1];
  const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(smem));
  const auto full = static_cast<std::uint32_t>(__cvta_generic_to_shared(barriers)), empty = full + 8 * Slots,
             spare = empty + 8 * Slots;
  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
  const bool leads = threadIdx.x % 32 == 0;
  if (threadIdx.x == 0) {
    for (int i = 0; i < Slots; ++i) begin_barrier(full + 8 * i, 1), begin_barrier(empty + 8 * i, 4);
    begin_barrier(spare, 1 << 19);
  }
  __syncthreads();
  const long long first = clock64();
  if (group == 2) {
    float d[64];
    for (float& x : d) x = 0;
    for (int batch = 0; batch < (products ? kBatches : 0); ++batch) {
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
        Wgmma<128, false>::multiply(d, tile_descriptor(base + i % 4 * 32, 16),
                                    tile_descriptor(base + 8192 + i % 4 * 32, 16), 1);
      wgmma_commit();
      wgmma_wait<1>();
    }
    wgmma_wait<0>();
    float all = 0;
    for (const float x : d) all += x;
    sink[threadIdx.x] = all;
    if (threadIdx.x == 2 * 128) cycles[2] = clock64() - first;
  } else if (group == 3) {
    if (G == Gate::ring && threadIdx.x == 128 * 3)
      for (int i = 0; i < kPasses; ++i) {
        wait_for(empty + 8 * (i % Slots), i / Slots % 2 ^ 1);
        arrive(full + 8 * (i % Slots));
      }
  } else if (G == Gate::turn || group == 0) {
    while (clock64() - first < kBegin) {
    }
    if (G == Gate::turn && group == 1) asm volatile("bar.arrive 1, 256;" ::: "memory");
    const long long began = clock64();
#pragma unroll 1
    for (int i = 0; i < kPasses; i += kUnrolled)
#pragma unroll
      for (int k = 0; k < kUnrolled; ++k) {
        if constexpr (G == Gate::over) wait_for(full, 1);
        if constexpr (G == Gate::arrive)
          if (leads) arrive(spare);
        if constexpr (G == Gate::ring) {
          wait_for(full + 8 * (k % Slots), (i + k) / Slots % 2);
          __syncwarp();
          if (leads) arrive(empty + 8 * (k % Slots));
        }
        if constexpr (G == Gate::turn) {
          asm volatile("bar.sync %0, 256;" ::"r"(1 + group) : "memory");
          asm volatile("bar.arrive %0, 256;" ::"r"(2 - group) : "memory");
        }
      }
    const long long ended = clock64();
    if (G == Gate::turn && group == 0) asm volatile("bar.sync 1, 256;" ::: "memory");  // which nobody waits for
    if (threadIdx.x == 0) cycles[0] = ended - began, cycles[1] = ended - first;
  }
}

template <Gate G, int Slots>
void measure(const char* kind, std::ostream& rows) {
  constexpr int smem = 8192 + 128 * 128 + 1024;
  const auto kernel = probe_gates<G, Slots>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
  const DeviceArray<float> sink(128 * kGroups);
  const DeviceArray<long long> cycles(3);
  for (const bool products : {false, true}) {
    std::vector<double> all;
    for (int i = 0; i < 5; ++i) {
      kernel<<<1, 128 * kGroups, smem>>>(sink.data(), products, cycles.data());
      check(cudaGetLastError());
      const std::vector<long long> at = cycles.download();
      if (products && at[2] < at[1]) throw std::logic_error("gates: products end before passes do");
      all.push_back(static_cast<double>(at[0]) / kPasses / (G == Gate::turn ? 2 : 1));
    }
    std::sort(all.begin(), all.end());
    rows << kind << ',' << Slots << ',' << products << ',' << all[2] << '\n';
  }
}

}  // namespace

void measure_gates(std::ostream& rows) {
  measure<Gate::over, 1>("over", rows);
  measure<Gate::arrive, 1>("arrive", rows);
  measure<Gate::ring, 1>("ring", rows), measure<Gate::ring, 2>("ring", rows), measure<Gate::ring, 4>("ring", rows);
  measure<Gate::turn, 1>("turn", rows);
}

}  // namespace attest::hardware
