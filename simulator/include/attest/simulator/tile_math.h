// The arithmetic of a tile on the CPU, in the precisions of the kernel: fp32 with rounding where the kernel rounds.
#pragma once
#include <cstddef>
#include <cstdint>

#include "attest/problem/dtype.h"

namespace attest::tile_math {

/// `n` elements of `dtype` at `from`, as fp32, and back (round to nearest even; 8-bit formats saturate).
void load(Dtype dtype, const void* from, int n, float* to);
void store(Dtype dtype, const float* from, int n, void* to);
/// Rounds `n` values (a multiple of 8) to `dtype` and back to fp32.
void round(Dtype dtype, float* x, int n);

/// Largest of `n` values (a multiple of 8) and `start`; NaN is passed over, as fmaxf does.
float max(const float* x, int n, float start);

/// x = 2^(x * scale - shift), each in one fused multiply-add and an exponential within 2 ulp; flushes results below
/// 2^-126. Adds the results to the 8 partial sums. `n` is a multiple of 8.
void exponentials(float* x, int n, float scale, float shift, float* partial_sums);

/// s[rows x n] = q[rows x d] k[n x d]^T, all row-major with the strides given, accumulated in fp32.
void multiply_transposed(const float* q, int q_stride, const float* k, int k_stride, int rows, int n, int d, float* s,
                         int s_stride);
/// o[rows x d] += p[rows x n] v[n x d].
void multiply_add(const float* p, int p_stride, const float* v, int v_stride, int rows, int n, int d, float* o,
                  int o_stride);
/// o[n x d] += p[rows x n]^T x[rows x d].
void add_transposed_multiple(const float* p, int p_stride, const float* x, int x_stride, int rows, int n, int d,
                             float* o, int o_stride);

}  // namespace attest::tile_math
