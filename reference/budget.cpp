// How far a right kernel may be from the truth. The derivation is in docs/numerics.md, whose names these are.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "attest/reference/sum_errors.h"
#include "strip.h"
#include "vector_math.h"

namespace attest {
namespace {

constexpr double u32 = 0x1p-24;
constexpr double infinity = std::numeric_limits<double>::infinity();

// A sum of n rounded steps of at most x = n u in all is off by x / (1 - x) of the sum of magnitudes.
double compounded(double x) { return x < 1 ? x / (1 - x) : infinity; }

// What is the same for every element of a row.
struct RowConstants {
  double N;  // visible keys
  double T, g_pv, g_l;
  double g_d;
  double exp_error;   // of a key's own exponential and of all rescales
  double max_change;  // 1 where the running maximum may change, else 0
  double lag;         // ln of the largest P: how far below the maximum a kernel may keep its reference
};

RowConstants row_constants(const Numerics& n, std::int64_t headdim, std::int64_t num_keys) {
  RowConstants c{};
  c.N = static_cast<double>(num_keys);
  const SumErrors sums = sum_errors(n, num_keys);
  c.T = sums.T, c.g_pv = sums.g_pv, c.g_l = sums.g_l;
  const auto d = static_cast<double>(headdim);
  c.g_d = compounded((d + 2 * std::ceil(d / 16)) * n.u_acc);
  c.exp_error = n.eps_exp * c.T;
  c.max_change = c.T > 1 ? 1 : 0;
  c.lag = std::log(std::max(1.0, n.max_P));
  return c;
}

// expm1(t) <= t + t^2/2 + t^3/4 for 0 <= t <= 1/2 (the terms left out sum to less than t^3/12), and
// 1 - exp(-t) <= t - t^2/2 + t^3/6 for every t >= 0.
constexpr double small_tau = 0.5;
inline double expm1_above(double t) { return t * (1 + t * (0.5 + t * 0.25)); }
inline double one_minus_exp_above(double t) { return t * (1 - t * (0.5 - t * (1.0 / 6))); }

// tau of key j: how far the logarithm of its weight may be off. In O, what all keys share has cancelled.
struct Tau {
  double o, lse;
};
inline Tau tau_of(const RowConstants& c, const Numerics& n, double A, double s, double m) {
  const double moved = c.g_d * A + n.u_S * std::abs(s);
  const double largest = std::max(std::abs(s), std::abs(m));
  const double base = moved + 4 * u32 * ((m - s) + 2 * moved + c.lag) + c.exp_error;
  return {base + c.max_change * u32 * (largest + std::abs(m) + 2 * c.lag), base + u32 * (largest + c.lag)};
}

// Sums over a row's visible keys, unnormalised (of e, not p).
struct RowSums {
  double max_tau = 0;
  double o_shrink = 0;  // sum e (1 - exp(-tauO))
  double o_grow = 0;    // sum e expm1(tauO)
  double lse_shrink = 0, lse_grow = 0;
};

RowSums sum_row(const RowConstants& c, const Numerics& n, const RowSoftmax& row, const double* A, const double* s,
                const double* e) {
  double max_tau = 0, o_shrink = 0, o_grow = 0, lse_shrink = 0, lse_grow = 0;
  const double m = row.max;
  for (const KeyRange& part : row.columns)
#pragma omp simd reduction(max : max_tau) reduction(+ : o_shrink, o_grow, lse_shrink, lse_grow)
    for (std::int64_t j = part.begin; j < part.end; ++j) {
      const Tau t = tau_of(c, n, A[j], s[j], m);
      const double larger = t.o > t.lse ? t.o : t.lse;
      max_tau = larger > max_tau ? larger : max_tau;
      o_shrink += e[j] * one_minus_exp_above(t.o);
      o_grow += e[j] * expm1_above(t.o);
      lse_shrink += e[j] * one_minus_exp_above(t.lse);
      lse_grow += e[j] * expm1_above(t.lse);
    }
  if (max_tau <= small_tau) return {max_tau, o_shrink, o_grow, lse_shrink, lse_grow};
  RowSums sums;
  sums.max_tau = max_tau;
  for (const KeyRange& part : row.columns)
    for (std::int64_t j = part.begin; j < part.end; ++j) {
      const Tau t = tau_of(c, n, A[j], s[j], m);
      sums.o_shrink -= e[j] * std::expm1(-t.o);
      sums.o_grow += e[j] * std::expm1(t.o);
      sums.lse_shrink -= e[j] * std::expm1(-t.lse);
      sums.lse_grow += e[j] * std::expm1(t.lse);
    }
  return sums;
}

double ulp32(double x) {
  if (!(std::abs(x) >= 0x1p-126)) return 0x1p-149;
  return std::ldexp(1.0, std::ilogb(x) - 23);
}

double lse_bound(const RowConstants& c, const Numerics& n, const RowSoftmax& row, const RowSums& sums, double lse) {
  const double W = 1 - sums.lse_shrink / row.sum;
  if (!(W > 0)) return infinity;
  const double log_l = std::abs(std::log(row.sum)) + c.lag;
  const double log_error = (row.sum <= 2.01 ? 0x1.82p-22 : 0) + (3 * 0x1p-23 + u32) * log_l;  // 2^-21.41 <= 0x1.82p-22
  return sums.lse_grow / row.sum / W + c.g_l + log_error +
         u32 * (n.lse_max_roundings * (std::abs(row.max) + c.lag) + std::abs(lse));
}

// A pre-rounding bound goes through the output's rounding.
double through_output(const Numerics& n, const RowConstants& c, double o, double pre) {
  return pre + n.u_out * (std::abs(o) + pre) + n.floor_out + (c.N + 1) * 0x1p-126;
}

// One visible key: P is within tau of 1 and rounds to 1 where tau is below half of P's spacing under 1, l is 1 within
// tau, and a quotient closer to V than half of O's spacing rounds to V itself.
bool one_key_is_exact(const Numerics& n, const RowConstants& c, const RowSums& sums) {
  const double off = sums.max_tau + c.g_l + 6 * u32;
  return c.N == 1 && n.max_P == 1 && off < n.u_P / 2 && off < n.u_out / 2;
}

// The strip A becomes X, the weights of |V| in the bound: everything in it that is a sum over keys.
void weights_of_abs_v(const RowConstants& c, const Numerics& n, const RowSoftmax& row, const RowSums& sums, double W,
                      const double* s, const double* e, double* A) {
  const double m = row.max;
  const double over_W = 1 / (row.sum * W);
  const double rounded = (n.u_P + c.g_pv) * (1 + 2 * c.g_l);
  const double tiny = n.a_P / row.sum, min_normal = n.min_normal_P;
  if (sums.max_tau <= small_tau) {
    for (const KeyRange& part : row.columns)
#pragma omp simd
      for (std::int64_t j = part.begin; j < part.end; ++j) {
        const double E = expm1_above(tau_of(c, n, A[j], s[j], m).o);
        const double x = e[j] * over_W * (E + rounded * (1 + E));
        A[j] = x + (e[j] < min_normal * (1 + E) ? tiny : 0.0);
      }
  } else {
    for (const KeyRange& part : row.columns)
      for (std::int64_t j = part.begin; j < part.end; ++j) {
        const double E = std::expm1(tau_of(c, n, A[j], s[j], m).o);
        const double x = e[j] * over_W * (E + rounded * (1 + E));
        A[j] = x + (e[j] < min_normal * (1 + E) ? tiny : 0.0);
      }
  }
}

struct StatisticalRow {
  double sum_t = 0;     // sum p^2 st^2
  bool spread = false;  // whether the scores differ enough for their roundings to be independent
};

// Scores closer together than this give weights within a few spacings of each other, whose roundings go one way, and
// rows whose outputs round alike: softmax_scale 0, a single key. 0.1 is 25 spacings of bf16.
constexpr double smallest_spread = 0.1;
// An error of a weight moves all columns of a row together, so a row of hundreds of columns is then one observation and
// not hundreds. Where such errors reach a quarter of P's own rounding, as they do at very large scales, the
// row is left to the worst case.
constexpr double largest_shared_error = 0.25;

// The variance t = p^2 st^2 of each key's weight from its score's errors.
StatisticalRow score_variance(const RowConstants& c, const Numerics& n, std::int64_t headdim, const RowSoftmax& row,
                              const double* s, const double* e, const double* A, double* t) {
  const double from_products = 0.5 * c.g_d / std::sqrt(static_cast<double>(headdim));
  const double m = row.max, over_l = 1 / row.sum;
  double sum = 0, below = 0, below_squared = 0;
  for (const KeyRange& part : row.columns)
#pragma omp simd reduction(+ : sum, below, below_squared)
    for (std::int64_t j = part.begin; j < part.end; ++j) {
      const double st = from_products * A[j] + u32 * (m - s[j]) + 0.6 * n.eps_exp + n.u_S * std::abs(s[j]);
      const double off = e[j] * over_l * st;
      t[j] = off * off;
      sum += off * off;
      below += m - s[j];
      below_squared += (m - s[j]) * (m - s[j]);
    }
  const double mean = below / c.N;
  const bool spread = below_squared / c.N - mean * mean > smallest_spread * smallest_spread;
  return {sum, spread && std::sqrt(sum) < largest_shared_error * n.u_P};
}

// w becomes the variance of P's rounding over l^2, plus t: ulp(e)^2 / (12 l^2) + t, no rounding where e is exactly 1.
void add_rounding_variance(const Numerics& n, const RowSoftmax& row, const double* e, const double* t, double* w) {
  const double factor = 1 / (12 * row.sum * row.sum);
  const double spacing = 2 * n.u_P, smallest = 2 * n.a_P;
  const double exact = n.max_P > 1 ? -1 : 1;  // a lazily rescaled maximum is no longer at 1
  for (const KeyRange& part : row.columns)
#pragma omp simd
    for (std::int64_t j = part.begin; j < part.end; ++j) {
      const double binade = std::bit_cast<double>(std::bit_cast<std::uint64_t>(e[j]) & 0x7ff0000000000000);
      const double ulp = e[j] == exact ? 0 : std::max(binade * spacing, smallest);
      w[j] = ulp * ulp * factor + t[j];
    }
}

double output_spacing(const Numerics& n, double o) {
  if (o == 0) return 2 * n.floor_out;
  return std::max(2 * n.u_out * std::ldexp(1.0, std::ilogb(o)), 2 * n.floor_out);
}

}  // namespace

SumErrors sum_errors(const Numerics& n, std::int64_t num_keys) {
  const auto N = static_cast<double>(num_keys);
  SumErrors sums{};
  sums.T = num_keys <= 1 ? 1 : 1 + std::ceil((N - 1) / n.smallest_tile);
  sums.g_pv = compounded((N + 2 * std::ceil(N / 16)) * n.u_acc + sums.T * u32);
  sums.g_l = compounded((std::ceil(N / n.chain) + 2 + 2 * sums.T) * u32);
  return sums;
}

void strip_budget(const PreparedInputs& in, const StripPlace& place, BudgetStrips strips, const RowSoftmax* rows,
                  Truth& truth) {
  auto [scores, weights, slopes, spare] = strips;
  if (place.width() == 0) return;
  const Numerics& n = truth.numerics;
  const std::int64_t width = place.width(), headdim = in.problem.headdim, dim = in.problem.headdim_v;
  const bool statistical = !truth.lse_variance.values.empty(), statistical_o = !truth.o_variance.values.empty();
  RowMatrix v(width, dim), abs_k(width, headdim);
  for_each_range(place, [&](const KeyRange& range, std::int64_t column) {
    v.middleRows(column, range.size()) = head_rows(in.finite_v(), place.b, place.h_k, range.begin, range.size());
    abs_k.middleRows(column, range.size()) =
        head_rows(in.inputs.k, place.b, place.h_k, range.begin, range.size()).cwiseAbs();
  });
  const RowMatrix abs_v = v.cwiseAbs();
  const RowMatrix abs_q = std::abs(in.score_scale(place.b, place.h_k)) *
                          head_rows(in.inputs.q, place.b, place.h, place.first_row, place.num_rows).cwiseAbs();
  StripMap(spare, place.num_rows, width).noalias() = abs_q * abs_k.transpose();

  std::array<RowConstants, rows_per_strip> constants;
  std::array<RowSums, rows_per_strip> sums;
  std::array<double, rows_per_strip> top_error{};  // p expm1(tauO) of the row's largest weight
  std::array<StatisticalRow, rows_per_strip> stats{};
  std::array<std::int64_t, rows_per_strip> top{};
  for (std::int64_t r = 0; r < place.num_rows; ++r) {
    const RowSoftmax& row = rows[r];
    if (row.columns.empty()) continue;
    constants[r] = row_constants(n, headdim, row.columns.size());
    double *A = spare + r * width, *s = scores + r * width, *e = weights + r * width;
    sums[r] = sum_row(constants[r], n, row, A, s, e);
    truth.lse_bound.at(place.b, place.h, place.first_row + r, 0) =
        lse_bound(constants[r], n, row, sums[r], truth.forward.lse.at(place.b, place.h, place.first_row + r, 0));
    const double W = std::max(0.0, 1 - sums[r].o_shrink / row.sum);
    top[r] = row.columns.begin()->begin;  // where no score is the maximum, there is a NaN
    for (const KeyRange& part : row.columns) {
      const double* const largest = std::find(s + part.begin, s + part.end, row.max);
      if (largest != s + part.end) top[r] = largest - s;
    }
    const double tau_top = tau_of(constants[r], n, A[top[r]], s[top[r]], row.max).o;
    const double E_top = std::expm1(tau_top);
    top_error[r] = e[top[r]] * E_top / (row.sum * W);
    if (statistical) {
      // X overwrites A and t overwrites s, and each needs both: t goes through a row of its own.
      thread_local std::vector<double> t;
      t.resize(static_cast<std::size_t>(width));
      stats[r] = score_variance(constants[r], n, headdim, row, s, e, A, t.data());
      weights_of_abs_v(constants[r], n, row, sums[r], W, s, e, A);
      for (const KeyRange& part : row.columns) std::copy(t.begin() + part.begin, t.begin() + part.end, s + part.begin);
    } else {
      weights_of_abs_v(constants[r], n, row, sums[r], W, s, e, A);
    }
    A[top[r]] -= top_error[r];  // its |v - O| is taken as it is, below
  }
  clear_unseen(place, rows, spare);

  RowMatrix weighted = StripMap(spare, place.num_rows, width) * abs_v;
  const Eigen::RowVectorXd largest_v = abs_v.colwise().maxCoeff();
  for (std::int64_t r = 0; r < place.num_rows; ++r) {
    const RowSoftmax& row = rows[r];
    if (row.columns.empty()) continue;
    const RowConstants& c = constants[r];
    const double W = std::max(0.0, 1 - sums[r].o_shrink / row.sum);
    const double grow = std::max(0.0, sums[r].o_grow / row.sum / W - top_error[r]);
    const bool exact = one_key_is_exact(n, c, sums[r]);
    const double division = c.g_l + 6 * u32;
    for (std::int64_t d = 0; d < dim; ++d) {
      const double o = truth.forward.o.at(place.b, place.first_row + r, place.h, d);
      double& bound = truth.o_bound.at(place.b, place.first_row + r, place.h, d);
      if (exact) {
        bound = std::abs(o) < 0x1p-126 ? std::abs(o) : 0;  // fp32 subnormals may be flushed
        continue;
      }
      const double summed = weighted(r, d) + grow * std::abs(o) + top_error[r] * std::abs(v(top[r], d) - o);
      const double pre = summed * (1 + 2 * division) + division * std::abs(o);
      // Whatever its errors, a kernel averages V: |O| stays below the largest |V| and its own roundings.
      const double average = largest_v(d) == 0 ? 0 : largest_v(d) * (1 + 2 * (n.u_P + c.g_pv + c.g_l));
      const double trivial = average + std::abs(o);
      bound = through_output(n, c, o, pre < trivial ? pre : trivial);
    }
  }
  if (!statistical) return;

  for (std::int64_t r = 0; r < place.num_rows; ++r) {
    const RowSoftmax& row = rows[r];
    if (row.columns.empty()) continue;
    const RowConstants& c = constants[r];
    const double lse = truth.forward.lse.at(place.b, place.h, place.first_row + r, 0);
    const double log_l = std::log(row.sum) + c.lag;
    if (!stats[r].spread) continue;
    double variance = stats[r].sum_t + std::pow(0.3 * u32, 2) * (c.N / n.chain + 2 * c.T);
    if (row.sum <= 2.01) variance += 0x1p-44 / 3;
    variance += std::pow(0x1p-23 * log_l, 2) + (std::pow(ulp32(lse), 2) + 3 * std::pow(ulp32(row.max), 2)) / 12;
    truth.lse_variance.at(place.b, place.h, place.first_row + r, 0) = variance;
  }
  if (!statistical_o) return;

  // t V^2 - 2 O t V + O^2 sum t = sum p^2 st^2 (v - O)^2
  clear_unseen(place, rows, scores);
  const RowMatrix v_squared = v.cwiseAbs2();
  const RowMatrix t_v = StripMap(scores, place.num_rows, width) * v;
  for (std::int64_t r = 0; r < place.num_rows; ++r)
    if (!rows[r].columns.empty())
      add_rounding_variance(n, rows[r], weights + r * width, scores + r * width, spare + r * width);
  clear_unseen(place, rows, spare);
  const RowMatrix rounded_v2 = StripMap(spare, place.num_rows, width) * v_squared;
  StripMap w(weights, place.num_rows, width);
  w.array() *= w.array();
  const RowMatrix e2_v2 = w * v_squared;
  for (std::int64_t r = 0; r < place.num_rows; ++r) {
    const RowSoftmax& row = rows[r];
    if (!stats[r].spread) continue;
    const RowConstants& c = constants[r];
    const double truncation = c.N / 16 * 0.18 * n.u_acc;
    for (std::int64_t d = 0; d < dim; ++d) {
      const double o = truth.forward.o.at(place.b, place.first_row + r, place.h, d);
      const double ulp = output_spacing(n, o);
      const double drift = truncation * (std::abs(o) + std::sqrt(e2_v2(r, d)) / row.sum);
      const double keys = rounded_v2(r, d) - 2 * o * t_v(r, d) + o * o * stats[r].sum_t;
      truth.o_variance.at(place.b, place.first_row + r, place.h, d) =
          ulp * ulp / 12 + std::max(0.0, keys) + drift * drift;
    }
  }
}

}  // namespace attest
