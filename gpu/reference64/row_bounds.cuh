// The bounds and variances of a row's O and LSE, from what row_forward.cuh left in its arrays.
#pragma once
#include "budget.cuh"
#include "row.cuh"

namespace attest::reference64 {

struct Shares {
  double max_tau, o_shrink, o_grow, lse_shrink, lse_grow;
};

// Over keys and sink, of e and not p.
__device__ inline Shares shares_of(const Row& row, const Constants& c, const Softmax& x) {
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

__device__ inline double lse_bound(const Row& row, const Constants& c, const Softmax& x, const Shares& sums) {
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
__device__ inline Statistics deviate(const Row& row, const Constants& c, const Softmax& x) {
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

__device__ inline double lse_variance(const Row& row, const Constants& c, const Softmax& x, const Statistics& stats) {
  const Rounding& n = row.call.rounding;
  const double lse = row.call.lse[row.at_lse()], log_l = log(x.sum) + c.lag;
  double variance = stats.sum_t + square(0.3 * u32) * (c.N / n.chain + 2 * c.T);
  if (x.sum <= 2.01) variance += 0x1p-44 / 3;
  variance += square(0x1p-23 * log_l) + (square(ulp32(lse)) + 3 * square(ulp32(x.max))) / 12;
  if (n.num_splits > 1) variance += square(0.5 * c.combine) + square(ulp32(lse)) / 6;
  return variance;
}

// errors becomes the weights of |V| in the bound of O.
__device__ inline void weigh_errors(const Row& row, const Constants& c, const Softmax& x, const Shares& sums,
                                    double W) {
  const Rounding& n = row.call.rounding;
  const double over_W = 1 / (x.sum * W), divisor = divisor_of_P(n, x.sum), tiny = n.a_P * divisor / x.sum;
  const double rounded = (n.u_P + c.own_division * (1 + n.u_P) + c.g_pv) * (1 + 2 * c.g_l);
  const double larger = (1 + sums.o_grow / x.sum) * (1 + 2 * (c.division + c.own_division));
  const double min_normal = n.min_normal_P * divisor * (n.normalises_first ? larger : 1);
  const double lost_below = 0x1p-126 * fmax(1.0, n.max_P) * x.sum * larger;
  const bool small = sums.max_tau <= small_tau;
  row.each_key([&](int j) {
    const double e = row.array[weights][j], s = row.array[scores][j];
    const double tau = tau_of(c, row.array[errors][j], s, x.max).o;
    const double g = small ? e * expm1_above(tau) : grown(e, s - x.max, tau);
    const double grows = small ? 1 + expm1_above(tau) : exp(fmin(tau, 700.0));
    const double subnormal = e < min_normal * grows ? tiny : 0, lost = e < lost_below * grows ? e / x.sum : 0;
    row.array[errors][j] = over_W * (g + rounded * (e + g)) + fmax(subnormal, lost);
  });
}

__device__ inline int first_of_largest(const Row& row) {
  double largest = -infinity;
  row.each_key([&](int j) { largest = fmax(largest, row.array[scores][j]); });
  largest = max_over_cta(largest);
  double first = row.keys;
  row.each_key([&](int j) { first = row.array[scores][j] == largest && j < first ? j : first; });
  return static_cast<int>(min_over_cta(first));
}

__device__ inline void bound(const Row& row, const Softmax& x, const double (&o)[largest_dim]) {
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
  const double off = sums.max_tau + c.division + c.own_division;
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
      const double weights_sum =
          1 + 2 * (n.u_P + c.own_division + c.g_pv + c.division) + (n.normalises_first ? c.N * n.a_P : 0);  // at most
      const double average = column[largest] == 0 ? 0 : column[largest] * weights_sum;
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

}  // namespace attest::reference64
