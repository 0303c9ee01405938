// What kernels of a key tile share: exponentials, packing, the softmax of wgmma's scores, and waiting for a copy.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace attest::hardware {

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

/// Until `barrier`, an mbarrier's address, has left `phase`.
__device__ inline void wait_for(std::uint32_t barrier, int phase) {
  unsigned done = 0;
  while (done == 0)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(barrier), "r"(phase)
                 : "memory");
}

/// The online softmax of a tile's scores, of which a thread has N, of two rows, each shared by four lanes: s becomes
/// the exponentials, in units of 1 / c above each row's new maximum, and what was summed before is to be scaled.
template <int N>
__device__ __forceinline__ void online_softmax(float (&s)[N], float c, float (&most)[2], float (&sum)[2],
                                               float (&scale)[2]) {
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float x = most[row];
#pragma unroll
    for (int i = row * 2; i < N; i += i % 2 == 0 ? 1 : 3) x = fmaxf(x, s[i]);
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 2));
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    scale[row] = exp2_of((most[row] - x) * c);
    most[row] = x;
    sum[row] *= scale[row];
  }
  const float at[2] = {most[0] * c, most[1] * c};
#pragma unroll
  for (int i = 0; i < N; ++i) s[i] = exp2_of(fmaf(s[i], c, -at[i / 2 % 2]));
#pragma unroll
  for (int i = 0; i < N; ++i) sum[i / 2 % 2] += s[i];
}

}  // namespace attest::hardware
