// A row's scores, softmax, O and LSE.
#pragma once
#include "budget.cuh"
#include "row.cuh"

namespace attest::reference64 {

// scores; errors gets scale |q| |k|, deviations the derivative of softcap. A warp a key.
__device__ inline void score(const Row& row) {
  __shared__ double q[largest_dim];
  const RowCall& call = row.call;
  __syncthreads();
  const double scale = call.score_scale[row.b * call.nheads_k + row.h_k];
  const std::int64_t from =
      ((static_cast<std::int64_t>(row.b) * call.seqlen_q + row.i) * call.nheads + row.h) * call.headdim;
  for (int d = threadIdx.x; d < call.headdim; d += num_threads) q[d] = scale * call.q[from + d];
  __syncthreads();
  const int lane = threadIdx.x % 32;
  row.each_of_strip(threadIdx.x / 32, num_warps, [&](int j) {
    if (!row.sees(j)) return;
    const float* const k = row.key(j);
    double s = 0, A = 0;
    for (int d = lane; d < call.headdim; d += 32) {
      const double x = q[d] * static_cast<double>(k[d]);
      s += x;
      A += fabs(x);
    }
    for (int lanes = 16; lanes > 0; lanes /= 2) {
      s += __shfl_xor_sync(~0u, s, lanes);
      A += __shfl_xor_sync(~0u, A, lanes);
    }
    if (lane != 0) return;
    double slope = 1;
    if (call.softcap > 0) {
      const double x = s / call.softcap, w = expm1(-2 * fabs(x));
      s = call.softcap * copysign(-w / (2 + w), x);
      slope = 4 * exp(-2 * fabs(x)) / ((2 + w) * (2 + w));
    }
    if (call.slopes) s -= row.alibi(j);
    if (call.bias) s += row.bias(j);
    row.array[scores][j] = s;
    row.array[errors][j] = A;
    row.array[deviations][j] = slope;
  });
  __syncthreads();
}

__device__ inline Softmax soften(const Row& row) {
  const RowCall& call = row.call;
  Softmax x{};
  x.sink = call.sink ? call.sink[row.h] : -infinity;
  double max = x.sink, keys = 0, runs = 0;
  row.each_key([&](int j) {
    const double s = row.array[scores][j];
    max = s > max ? s : max;  // passes over NaN, which its exponential brings back
    ++keys;
    runs += !row.sees(j - 1);
  });
  x.max = max_over_cta(max);
  if (x.max == -infinity) x.max = 0;
  x.num_keys = static_cast<std::int64_t>(sum_over_cta(keys));
  x.num_runs = static_cast<int>(sum_over_cta(runs));
  double sum = 0;
  row.each_key([&](int j) { sum += row.array[weights][j] = exp_below(row.array[scores][j] - x.max); });
  x.sink_weight = exp_below(x.sink - x.max);
  x.sum = sum_over_cta(sum) + x.sink_weight;
  return x;
}

// O into `o`, in every thread's reach.
__device__ inline void output(const Row& row, const Softmax& x, double (&o)[largest_dim]) {
  __shared__ double shared[1][num_threads];
  const RowCall& call = row.call;
  sum_columns(row, shared, [&](double(&sums)[1], int j, float v) {
    if (!row.sees(j)) return;
    double w = row.array[weights][j];
    // A weight that underflowed still gives an Inf its sign; that of a score of -Inf is 0, and 0 Inf is NaN.
    if (!isfinite(v) && w == 0 && row.array[scores][j] != -infinity) w = 0x1p-1022;
    sums[0] += w * static_cast<double>(v);
  });
  const double v_scale = call.v_scale[row.b * call.nheads_k + row.h_k];
  for (int d = threadIdx.x; d < call.headdim_v; d += num_threads) {
    double sum = 0;
    for (int at = d; at < num_threads / call.headdim_v * call.headdim_v; at += call.headdim_v) sum += shared[0][at];
    o[d] = x.sum != 0 ? sum * (v_scale / x.sum) : sum;
    call.o[row.row_of_o() + d] = o[d];
  }
  if (threadIdx.x == 0) call.lse[row.at_lse()] = x.max + log(x.sum);
  __syncthreads();
}

}  // namespace attest::reference64
