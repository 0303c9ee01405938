// What kernels of a key tile share: exponentials, packing and storing fragments, the softmax of wgmma's
// scores, copies and waiting for them.
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

/// Begins a bulk copy to shared memory, which `barrier`, an mbarrier's address, waits for.
__device__ inline void copy_bulk(std::uint32_t to, const std::uint8_t* from, int bytes, std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes));
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
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

/// Of a warpgroup's 64 rows in 16 bits at `panels`, 64 swizzled columns a panel: the one that a thread's stmatrix
/// names.
__device__ __forceinline__ std::uint32_t stored_row(std::uint32_t panels) {
  return panels + threadIdx.x % 128 / 32 * 16 * 128 + threadIdx.x % 16 * 128;
}
/// Stores 16 columns of those rows, the `i`th.
__device__ __forceinline__ void store_columns(std::uint32_t row, int i, std::uint32_t a, std::uint32_t b,
                                              std::uint32_t c, std::uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   row + i / 4 * 64 * 128 + (((i % 4 * 2 + threadIdx.x / 16 % 2) ^ threadIdx.x % 8) << 4)),
               "r"(a), "r"(b), "r"(c), "r"(d)
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
