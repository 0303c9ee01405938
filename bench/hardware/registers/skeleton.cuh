// What the compile-only kernels of this folder share: arguments, the instructions, a row's softmax.
#pragma once

constexpr float minus_infinity = -__builtin_huge_valf();

struct Arguments {
  const char *q, *k, *v;
  char* o;
  float* lse;
  long long q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row;  // bytes
  int seqlen_q, seqlen_k, group;  // group: query heads that share a head of K and V
  bool causal;
  float scale_log2;
};

__device__ inline unsigned smem_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__device__ inline void cp_async(unsigned smem, const void* global, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(smem), "l"(global), "r"(inside ? 16 : 0)
               : "memory");
}
__device__ inline void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int pending>
__device__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

__device__ inline void ldmatrix(unsigned (&f)[4], unsigned smem) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3])
               : "r"(smem)
               : "memory");
}
__device__ inline void ldmatrix_transposed(unsigned (&f)[4], unsigned smem) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3])
               : "r"(smem)
               : "memory");
}
__device__ inline void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline unsigned pack(float low, float high) {
  unsigned x;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(x) : "f"(high), "f"(low));
  return x;
}
__device__ inline void pack_step(unsigned (&p)[4], const float (&left)[4], const float (&right)[4]) {
  p[0] = pack(left[0], left[1]), p[1] = pack(left[2], left[3]);
  p[2] = pack(right[0], right[1]), p[3] = pack(right[2], right[3]);
}
__device__ inline void store_shared(char* at, unsigned x) { *reinterpret_cast<unsigned*>(at) = x; }

__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline float log2_fast(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}
__device__ inline float lse_of(float maximum, float total, float scale_log2) {
  return total == 0 ? minus_infinity : (maximum * scale_log2 + log2_fast(total)) * 0.693147181f;
}

// One row's part of S in a lane, S[n][2 * half + i]: P in its place, maximum and sum brought up to date. Returns what O
// is to be multiplied by.
template <int tile_n>
__device__ float softmax_scores(float (&s)[tile_n / 8][4], int half, float& maximum, float& sum, float scale_log2) {
  float largest = maximum;
#pragma unroll
  for (int n = 0; n < tile_n / 8; ++n) largest = fmaxf(largest, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
  largest = quad_max(largest);
  const float shift = largest == minus_infinity ? 0 : largest * scale_log2;
  const float factor = exp2_fast(maximum * scale_log2 - shift);
  maximum = largest;
  sum *= factor;
#pragma unroll
  for (int n = 0; n < tile_n / 8; ++n)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      s[n][2 * half + i] = exp2_fast(s[n][2 * half + i] * scale_log2 - shift);
      sum += s[n][2 * half + i];
    }
  return factor;
}
// The same with O rescaled.
template <int tile_n, int headdim_v>
__device__ void softmax_row(float (&s)[tile_n / 8][4], float (&o)[headdim_v / 8][4], int half, float& maximum,
                            float& sum, float scale_log2) {
  const float factor = softmax_scores<tile_n>(s, half, maximum, sum, scale_log2);
#pragma unroll
  for (int n = 0; n < headdim_v / 8; ++n) o[n][2 * half] *= factor, o[n][2 * half + 1] *= factor;
}
template <int headdim_v>
__device__ void rescale(float (&o)[headdim_v / 8][4], const float (&factor)[2]) {
#pragma unroll
  for (int n = 0; n < headdim_v / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) o[n][i] *= factor[i / 2];
}
