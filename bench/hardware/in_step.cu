#include <algorithm>
#include <vector>

#include "attest/hardware/device.h"
#include "in_step.h"

namespace attest::hardware {
namespace {

constexpr int kTurns = 64, kMostWarps = 8, kMostCopies = 16, kCopyBytes = 512;

template <int stride, int copies>
__global__ void __launch_bounds__(32 * kMostWarps, 1)
    probe_in_step(const std::uint8_t* buffer, unsigned* cycles, unsigned* sink) {
  extern __shared__ __align__(128) std::uint8_t smem[];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(smem));
  const std::uint32_t to = base + 4096 + (warp * kMostCopies * kCopyBytes) + lane * 16;
  const std::uint8_t* const from = buffer + (warp * kMostCopies * 8 + lane / 4) * stride + lane % 4 * 16;
  std::uint32_t all = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    __syncthreads();
    long long began, ended;
    std::uint32_t x[4];
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(began)::"memory");
#pragma unroll
    for (int i = 0; i < copies; ++i)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + i * kCopyBytes), "l"(from + i * 8 * stride)
                   : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(base + lane * 16 + (all & 16))
                 : "memory");
    all += x[0] ^ x[1] ^ x[2] ^ x[3];
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(ended) : "r"(all) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    if (lane == 0) cycles[warp * kTurns + turn] = static_cast<unsigned>(ended - began);
  }
  sink[threadIdx.x] = all;
}

template <int stride, int copies>
void measure(std::ostream& rows) {
  const DeviceArray<std::uint8_t> buffer(1 << 20);
  const DeviceArray<unsigned> cycles(kMostWarps * kTurns), sink(32 * kMostWarps);
  constexpr int smem = 4096 + kMostWarps * kMostCopies * kCopyBytes;
  check(cudaFuncSetAttribute(probe_in_step<stride, copies>, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
  for (const int warps : {1, 2, 4, 8}) {
    probe_in_step<stride, copies><<<1, 32 * warps, smem>>>(buffer.data(), cycles.data(), sink.data());
    check(cudaGetLastError());
    std::vector<unsigned> each = cycles.download();
    double sum = 0;
    for (int w = 0; w < warps; ++w) {
      const auto first = each.begin() + w * kTurns;
      std::sort(first, first + kTurns);
      sum += first[kTurns / 2];
    }
    rows << stride << ',' << copies << ',' << warps << ',' << sum / warps << '\n';
  }
}

template <int stride>
void measure_stride(std::ostream& rows) {
  measure<stride, 0>(rows), measure<stride, 4>(rows), measure<stride, 8>(rows), measure<stride, 16>(rows);
}

}  // namespace

void measure_in_step(std::ostream& rows) {
  measure_stride<64>(rows), measure_stride<128>(rows), measure_stride<144>(rows), measure_stride<192>(rows),
      measure_stride<240>(rows);
}

}  // namespace attest::hardware
