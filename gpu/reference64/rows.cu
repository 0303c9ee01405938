// A CTA a row: scores, softmax, O and LSE, and the bounds and variances of both, by sums over the keys that the row
// sees.
#include "attest/gpu/cuda_error.h"
#include "budget.cuh"

namespace attest::reference64 {
namespace {

constexpr int num_threads = 256, num_warps = num_threads / 32, largest_dim = 256;
enum Array { scores, weights, errors, deviations, variances, num_arrays };

// Sums and maxima over the CTA, the same in every thread and every run.
__shared__ double of_warp[num_warps];

template <class Combine>
__device__ double over_cta(double x, const Combine& combine) {
  for (int lanes = 16; lanes > 0; lanes /= 2) x = combine(x, __shfl_xor_sync(~0u, x, lanes));
  __syncthreads();  // the last result has been read
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = x;
  __syncthreads();
  double all = of_warp[0];
  for (int w = 1; w < num_warps; ++w) all = combine(all, of_warp[w]);
  return all;
}
__device__ double sum_over_cta(double x) {
  return over_cta(x, [](double a, double b) { return a + b; });
}
__device__ double max_over_cta(double x) {
  return over_cta(x, [](double a, double b) { return a > b ? a : b; });
}
__device__ double min_over_cta(double x) {
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

// scores; errors gets scale |q| |k|, deviations the derivative of softcap. A warp a key.
__device__ void score(const Row& row) {
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

struct Softmax {
  std::int64_t num_keys;
  int num_runs;
  double max, sum, sink, sink_weight;
};

__device__ Softmax soften(const Row& row) {
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

// Sums over keys for every column of V: body(sums of a column, j, v) adds, and the CTA's threads share the keys.
template <int num_sums, class Body>
__device__ void sum_columns(const Row& row, double (&shared)[num_sums][num_threads], const Body& body) {
  const int dim = row.call.headdim_v, groups = num_threads / dim;
  const int d = threadIdx.x % dim, group = threadIdx.x / dim;
  double sums[num_sums] = {};
  if (group < groups) row.each_of_strip(group, groups, [&](int j) { body(sums, j, row.value(j, d)); });
  __syncthreads();
  for (int n = 0; n < num_sums; ++n) shared[n][threadIdx.x] = sums[n];
  __syncthreads();
}

// O into `o`, in every thread's reach.
__device__ void output(const Row& row, const Softmax& x, double (&o)[largest_dim]) {
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

struct Shares {
  double max_tau, o_shrink, o_grow, lse_shrink, lse_grow;
};

// Over keys and sink, of e and not p.
__device__ Shares shares_of(const Row& row, const Constants& c, const Softmax& x) {
  Shares sums{};
  row.each_key([&](int j) {
    const Tau t = tau_of(c, row.array[errors][j], row.array[scores][j], x.max);
    sums.max_tau = fmax(sums.max_tau, fmax(t.o, t.lse));
  });
  sums.max_tau = max_over_cta(sums.max_tau);
  const bool small = sums.max_tau <= small_tau;
  const auto add = [&](double e, double s, double moved, bool by_series) {
    const Tau t = tau_of(c, moved, s, x.max);
    sums.o_shrink += by_series ? e * one_minus_exp_above(t.o) : -e * expm1(-t.o);
    sums.o_grow += by_series ? e * expm1_above(t.o) : grown(e, s - x.max, t.o);
    sums.lse_shrink += by_series ? e * one_minus_exp_above(t.lse) : -e * expm1(-t.lse);
    sums.lse_grow += by_series ? e * expm1_above(t.lse) : grown(e, s - x.max, t.lse);
  };
  row.each_key([&](int j) { add(row.array[weights][j], row.array[scores][j], row.array[errors][j], small); });
  for (double* sum : {&sums.o_shrink, &sums.o_grow, &sums.lse_shrink, &sums.lse_grow}) *sum = sum_over_cta(*sum);
  if (x.sink_weight > 0) {
    const double moved = 3 * u32 * fabs(x.sink);
    const Tau t = tau_of(c, moved, x.sink, x.max);
    sums.max_tau = fmax(sums.max_tau, fmax(t.o, t.lse));
    add(x.sink_weight, x.sink, moved, false);
  }
  return sums;
}

__device__ double lse_bound(const Row& row, const Constants& c, const Softmax& x, const Shares& sums) {
  const double W = 1 - sums.lse_shrink / x.sum;
  if (!(W > 0)) return infinity;
  const double log_l = fabs(log(x.sum)) + c.lag;
  const double log_error = (x.sum <= 2.01 ? log_near_one : 0) + log_elsewhere * log_l;
  return sums.lse_grow / x.sum / W + c.g_l + log_error + c.combine +
         u32 * (c.max_roundings * (fabs(x.max) + c.lag) + fabs(row.call.lse[row.at_lse()]));
}

struct Statistics {
  double sum_t;
  bool spread;
};

// deviations becomes t = p^2 st^2.
__device__ Statistics deviate(const Row& row, const Constants& c, const Softmax& x) {
  constexpr double smallest_spread = 0.1, largest_shared_error = 0.25;
  const Rounding& n = row.call.rounding;
  double sum = 0, below = 0, below_squared = 0;
  row.each_key([&](int j) {
    const double distance = x.max - row.array[scores][j];
    const double st = row.array[deviations][j] + u32 * distance + 0.6 * n.eps_exp + 0.5 * c.split;
    const double off = row.array[weights][j] / x.sum * st;
    row.array[deviations][j] = off * off;
    sum += off * off;
    below += distance;
    below_squared += distance * distance;
  });
  sum = sum_over_cta(sum);
  const double mean = sum_over_cta(below) / c.N, mean_square = sum_over_cta(below_squared) / c.N;
  if (x.sink_weight > 0) {
    const double st = 3 * u32 * fabs(x.sink) + u32 * (x.max - x.sink) + 0.6 * n.eps_exp + 0.5 * c.split;
    sum += square(x.sink_weight / x.sum * st);
  }
  const bool spread = mean_square - mean * mean > smallest_spread * smallest_spread;
  return {sum, spread && sqrt(sum) < largest_shared_error * n.u_P};
}

__device__ double lse_variance(const Row& row, const Constants& c, const Softmax& x, const Statistics& stats) {
  const Rounding& n = row.call.rounding;
  const double lse = row.call.lse[row.at_lse()], log_l = log(x.sum) + c.lag;
  double variance = stats.sum_t + square(0.3 * u32) * (c.N / n.chain + 2 * c.T);
  if (x.sum <= 2.01) variance += 0x1p-44 / 3;
  variance += square(0x1p-23 * log_l) + (square(ulp32(lse)) + 3 * square(ulp32(x.max))) / 12;
  if (n.num_splits > 1) variance += square(0.5 * c.combine) + square(ulp32(lse)) / 6;
  return variance;
}

// errors becomes the weights of |V| in the bound of O.
__device__ void weigh_errors(const Row& row, const Constants& c, const Softmax& x, const Shares& sums, double W) {
  const Rounding& n = row.call.rounding;
  const double over_W = 1 / (x.sum * W), rounded = (n.u_P + c.g_pv) * (1 + 2 * c.g_l), tiny = n.a_P / x.sum;
  const bool small = sums.max_tau <= small_tau;
  row.each_key([&](int j) {
    const double e = row.array[weights][j], s = row.array[scores][j];
    const double tau = tau_of(c, row.array[errors][j], s, x.max).o;
    const double g = small ? e * expm1_above(tau) : grown(e, s - x.max, tau);
    const double largest = small ? n.min_normal_P * (1 + expm1_above(tau)) : n.min_normal_P * exp(fmin(tau, 700.0));
    row.array[errors][j] = over_W * (g + rounded * (e + g)) + (e < largest ? tiny : 0);
  });
}

__device__ int first_of_largest(const Row& row) {
  double largest = -infinity;
  row.each_key([&](int j) { largest = fmax(largest, row.array[scores][j]); });
  largest = max_over_cta(largest);
  double first = row.keys;
  row.each_key([&](int j) { first = row.array[scores][j] == largest && j < first ? j : first; });
  return static_cast<int>(min_over_cta(first));
}

__device__ void bound(const Row& row, const Softmax& x, const double (&o)[largest_dim]) {
  __shared__ double shared[5][num_threads];
  enum { weighted, largest, t_v, rounded_v2, e2_v2 };
  const RowCall& call = row.call;
  const Rounding& n = call.rounding;
  if (x.max == infinity && threadIdx.x == 0) call.lse_bound[row.at_lse()] = infinity;
  if (!(x.sum > 0)) return;  // nothing weighs anything, or a score is NaN or +Inf

  const Constants c = constants_of(call, x.num_keys, x.num_runs, x.max);
  row.each_key([&](int j) {
    double& s = row.array[scores][j];
    const ScoreError error = score_error(call, c, s, row.array[errors][j], row.array[deviations][j],
                                         call.slopes ? row.alibi(j) : 0, call.bias ? fabs(row.bias(j)) : 0);
    const bool weighs = s != -infinity;
    row.array[errors][j] = weighs ? error.moved : 0;
    row.array[deviations][j] = weighs ? error.typical : 0;
    if (!weighs) s = x.max - no_weight;
  });
  const Shares sums = shares_of(row, c, x);
  if (threadIdx.x == 0) call.lse_bound[row.at_lse()] = lse_bound(row, c, x, sums);
  if (x.num_keys == 0) return;

  const double W = fmax(0.0, 1 - sums.o_shrink / x.sum);
  const int top = first_of_largest(row);
  const double s_top = row.array[scores][top];
  const double tau_top = tau_of(c, row.array[errors][top], s_top, x.max).o;
  const double top_error = grown(row.array[weights][top], s_top - x.max, tau_top) / (x.sum * W);
  const bool statistical = call.lse_variance != nullptr;
  Statistics stats{};
  if (statistical) stats = deviate(row, c, x);
  __syncthreads();  // the top's error has been read
  weigh_errors(row, c, x, sums, W);
  const bool with_o_variance = call.o_variance != nullptr && stats.spread;
  if (with_o_variance)
    row.each_key([&](int j) {
      row.array[variances][j] = rounding_variance(n, row.array[weights][j], x.sum) + row.array[deviations][j];
    });
  __syncthreads();
  if (threadIdx.x == 0) {
    row.array[errors][top] -= top_error;
    if (stats.spread) call.lse_variance[row.at_lse()] = lse_variance(row, c, x, stats);
  }
  if (with_o_variance && call.roundings) {
    double sum = 0, squares = 0;
    row.each_key([&](int j) {
      sum += row.array[variances][j];
      squares += row.array[variances][j] * row.array[variances][j];
    });
    sum = sum_over_cta(sum);
    squares = sum_over_cta(squares);
    if (threadIdx.x == 0) call.roundings[row.at_lse()] = squares > 0 ? sum * sum / squares : 1;
  }
  __syncthreads();

  const double v_scale = call.v_scale[row.b * call.nheads_k + row.h_k];
  const auto finite = [&](float v) { return isfinite(v) ? v_scale * static_cast<double>(v) : 0; };
  sum_columns(row, shared, [&](double(&column)[5], int j, float value) {
    const double v = finite(value);
    column[largest] = fmax(column[largest], fabs(v));  // of all the strip's keys
    if (!row.sees(j)) return;
    column[weighted] += row.array[errors][j] * fabs(v);
    if (!with_o_variance) return;
    const double e = row.array[weights][j];
    column[t_v] += row.array[deviations][j] * v;
    column[rounded_v2] += row.array[variances][j] * v * v;
    column[e2_v2] += e * e * v * v;
  });
  const double off = sums.max_tau + c.division;
  const bool exact = x.num_keys == 1 && x.sink_weight == 0 && n.max_P == 1 && off < n.u_P / 2 && off < n.u_out / 2;
  const double grow = fmax(0.0, sums.o_grow / x.sum / W - top_error);
  const auto through_output = [&](double value, double pre) {
    return pre + n.u_out * (fabs(value) + pre) + n.floor_out + (c.N + 1) * 0x1p-126 * fmax(1.0, v_scale);
  };
  for (int d = threadIdx.x; d < call.headdim_v; d += num_threads) {
    double column[5] = {};
    for (int at = d; at < num_threads / call.headdim_v * call.headdim_v; at += call.headdim_v)
      for (int sum = 0; sum < 5; ++sum)
        column[sum] = sum == largest ? fmax(column[sum], shared[sum][at]) : column[sum] + shared[sum][at];
    double& bounded = call.o_bound[row.row_of_o() + d];
    if (exact) {
      bounded = fabs(o[d]) < 0x1p-126 ? fabs(o[d]) : 0;
      if (call.is_fp8) bounded = through_output(o[d], 2 * u32 * fabs(o[d]));
    } else {
      const double summed = column[weighted] + grow * fabs(o[d]) + top_error * fabs(finite(row.value(top, d)) - o[d]);
      const double pre = summed * (1 + 2 * c.division) + c.division * fabs(o[d]);
      const double average = column[largest] == 0 ? 0 : column[largest] * (1 + 2 * (n.u_P + c.g_pv + c.division));
      const double trivial = average + fabs(o[d]);
      bounded = through_output(o[d], pre < trivial ? pre : trivial);
    }
    if (!with_o_variance) continue;
    const double ulp = output_spacing(n, o[d]);
    const double drift = c.N / 16 * 0.18 * n.u_acc * (fabs(o[d]) + sqrt(column[e2_v2]) / x.sum);
    const double of_keys = column[rounded_v2] - 2 * o[d] * column[t_v] + o[d] * o[d] * stats.sum_t;
    if (call.roundings && of_keys < ulp * ulp / 12) continue;
    call.o_variance[row.row_of_o() + d] = ulp * ulp / 12 + fmax(0.0, of_keys) + drift * drift;
  }
}

__global__ void __launch_bounds__(num_threads) rows(const RowCall call) {
  __shared__ double o[largest_dim];
  const std::int64_t total = static_cast<std::int64_t>(call.batch) * call.nheads * call.seqlen_q;
  const int strips = (call.seqlen_q + rows_per_strip - 1) / rows_per_strip;
  for (std::int64_t at = blockIdx.x; at < total; at += gridDim.x) {
    const int i = static_cast<int>(at % call.seqlen_q), h = static_cast<int>(at / call.seqlen_q % call.nheads);
    const int b = static_cast<int>(at / call.seqlen_q / call.nheads);
    const int queries = call.queries[b], keys = call.keys[b];
    if (i >= queries) continue;
    const std::int64_t off = call.top_left ? 0 : keys - queries;
    Row row{call,
            b,
            h,
            h / (call.nheads / call.nheads_k),
            i,
            queries,
            keys,
            off,
            call.intervals[b * strips + i / rows_per_strip],
            {}};
    for (int n = 0; n < num_arrays; ++n)
      row.array[n] = call.scratch + (static_cast<std::int64_t>(blockIdx.x) * num_arrays + n) * call.seqlen_k;
    score(row);
    const Softmax x = soften(row);
    __syncthreads();
    output(row, x, o);
    bound(row, x, o);
    __syncthreads();
  }
}

}  // namespace

std::size_t scratch_bytes(int seqlen_k, int num_ctas) {
  return sizeof(double) * num_arrays * static_cast<std::size_t>(seqlen_k) * static_cast<std::size_t>(num_ctas);
}

void launch_rows(const RowCall& call, cudaStream_t stream) {
  if (call.num_ctas == 0) return;
  rows<<<static_cast<unsigned>(call.num_ctas), num_threads, 0, stream>>>(call);
  cuda_check_launch("reference64 rows");
}

}  // namespace attest::reference64
