// What a CTA that works on one row has at hand: what the row sees, sums over its keys, its arrays.
#pragma once
#include "rows.h"

namespace attest::reference64 {

inline constexpr int num_threads = 256, num_warps = num_threads / 32, largest_dim = 256;
enum Array { scores, weights, errors, deviations, variances, num_arrays };

// Sums and maxima over the CTA, the same in every thread and every run.
template <class Combine>
__device__ double over_cta(double x, const Combine& combine) {
  __shared__ double of_warp[num_warps];
  for (int lanes = 16; lanes > 0; lanes /= 2) x = combine(x, __shfl_xor_sync(~0u, x, lanes));
  __syncthreads();  // the last result has been read
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = x;
  __syncthreads();
  double all = of_warp[0];
  for (int w = 1; w < num_warps; ++w) all = combine(all, of_warp[w]);
  return all;
}
__device__ inline double sum_over_cta(double x) {
  return over_cta(x, [](double a, double b) { return a + b; });
}
__device__ inline double max_over_cta(double x) {
  return over_cta(x, [](double a, double b) { return a > b ? a : b; });
}
__device__ inline double min_over_cta(double x) {
  return over_cta(x, [](double a, double b) { return a < b ? a : b; });
}

struct Row {
  const RowCall& call;
  int b, h, h_k, i;
  int queries, keys;
  std::int64_t off;
  Intervals strip;
  double* array[num_arrays];

  // What attention is asked for, read once more.
  __device__ bool sees(int j) const {
    if (j < 0 || j >= keys) return false;
    if (call.document && call.document[i] != call.document[j]) return false;
    if (j < call.prefix) return true;
    if (call.causal && j > i + off) return false;
    if (call.right >= 0 && j > i + off + call.right) return false;
    return !(call.left >= 0 && j < i + off - call.left);
  }

  // body(j) for every key of the strip, shared out over `count` by turns.
  template <class Body>
  __device__ void each_of_strip(int first, int count, const Body& body) const {
    for (int part = 0; part < 2; ++part)
      for (int j = strip.edges[2 * part] + first; j < strip.edges[2 * part + 1]; j += count) body(j);
  }
  template <class Body>
  __device__ void each_key(const Body& body) const {
    each_of_strip(threadIdx.x, num_threads, [&](int j) {
      if (sees(j)) body(j);
    });
  }

  __device__ const float* key(int j) const {
    return call.k + ((static_cast<std::int64_t>(b) * call.seqlen_k + j) * call.nheads_k + h_k) * call.headdim;
  }
  __device__ float value(int j, int d) const {
    return call.v[((static_cast<std::int64_t>(b) * call.seqlen_k + j) * call.nheads_k + h_k) * call.headdim_v + d];
  }
  __device__ double bias(int j) const {
    const std::int64_t per_batch = call.bias_per_batch ? b : 0, per_head = call.bias_per_head ? h : 0;
    const std::int64_t heads = call.bias_per_head ? call.nheads : 1;
    return call.bias[((per_batch * heads + per_head) * call.seqlen_q + i) * call.seqlen_k + j];
  }
  __device__ double alibi(int j) const {
    return call.slopes[b * call.nheads + h] * fabs(static_cast<double>(i + off - j));
  }
  __device__ std::int64_t row_of_o() const {
    return ((static_cast<std::int64_t>(b) * call.seqlen_q + i) * call.nheads + h) * call.headdim_v;
  }
  __device__ std::int64_t at_lse() const {
    return (static_cast<std::int64_t>(b) * call.nheads + h) * call.seqlen_q + i;
  }
};

struct Softmax {
  std::int64_t num_keys;
  int num_runs;
  double max, sum, sink, sink_weight;
};

// Sums over keys for every column of V: body(sums of a column, j, v) adds, and the CTA's threads share the keys.
template <int num_sums, class Body>
__device__ inline void sum_columns(const Row& row, double (&shared)[num_sums][num_threads], const Body& body) {
  const int dim = row.call.headdim_v, groups = num_threads / dim;
  const int d = threadIdx.x % dim, group = threadIdx.x / dim;
  double sums[num_sums] = {};
  if (group < groups) row.each_of_strip(group, groups, [&](int j) { body(sums, j, row.value(j, d)); });
  __syncthreads();
  for (int n = 0; n < num_sums; ++n) shared[n][threadIdx.x] = sums[n];
  __syncthreads();
}

}  // namespace attest::reference64
