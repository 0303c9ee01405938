// The terms of the error budget of one row: docs/numerics.md, whose names these are.
#pragma once
#include "rows.h"

namespace attest::reference64 {

inline constexpr double u32 = 0x1p-24, infinity = __builtin_huge_val();
inline constexpr double log_near_one = 0x1.82p-22;  // __logf on [0.5, 2]
inline constexpr double log_elsewhere = 3 * 0x1p-23 + u32;
inline constexpr double approximate_division = 6 * u32;
inline constexpr double hopeless = 1e60;
inline constexpr double no_weight = 1e4;  // a score of -Inf is this far below the maximum

__device__ inline double compounded(double x) { return x < 1 ? x / (1 - x) : hopeless; }
__device__ inline double square(double x) { return x * x; }
__device__ inline double exp_below(double x) { return x < -708 ? 0 : exp(x); }  // NaN stays

struct Constants {
  double N, T, g_pv, g_l, g_d, exp_error, max_change, lag, scale_error, max_roundings, split, split_s, combine,
      division, own_division;
};

/// `num_keys` visible keys in `num_runs` intervals, whose largest score is `max`.
__device__ inline Constants constants_of(const RowCall& call, std::int64_t num_keys, int num_runs, double max) {
  const Rounding& n = call.rounding;
  const bool splits = n.num_splits > 1;
  const int breaks = (num_runs > 1) + (call.sink != nullptr) + (splits ? n.num_splits : 0);
  const double d = call.headdim, S = n.num_splits;
  Constants c{};
  c.N = static_cast<double>(num_keys);
  c.T = (num_keys <= 1 ? 1 : 1 + ceil((c.N - 1) / n.smallest_tile)) + breaks;
  c.g_pv = compounded((c.N + 2 * ceil(c.N / 16)) * n.u_acc + c.T * u32);
  c.g_l = compounded((ceil(c.N / n.chain) + 2 + 2 * c.T) * u32);
  c.g_d = compounded((d + 2 * ceil(d / 16)) * n.u_acc);
  c.exp_error = n.eps_exp * c.T;
  c.max_change = c.T > 1 ? 1 : 0;
  c.lag = log(fmax(1.0, n.max_P));
  c.scale_error = (call.is_fp8 ? 7 : 4) * u32;
  c.max_roundings = n.lse_max_roundings + (call.is_fp8 ? 3 : 0);
  c.own_division = n.normalises_first ? approximate_division : 0;
  c.division = c.g_l + (n.normalises_first ? 0 : approximate_division) + (call.is_fp8 ? 2 : 0) * u32;
  if (splits) {
    const double log_N = log(fmax(1.0, c.N)) + c.lag;
    c.split = n.eps_exp + log_near_one + log_elsewhere * log_N + 3 * u32 * log_N;
    c.split_s = (c.max_roundings + 3) * u32;
    c.combine = log_near_one + log_elsewhere * log(S) + 3 * u32 * (fabs(max) + log_N);
    c.g_pv += compounded((S + 4) * u32);
    c.division += c.combine;
  }
  return c;
}

/// How far the logarithm of a key's weight may be off, in O and in LSE.
struct Tau {
  double o, lse;
};
__device__ inline Tau tau_of(const Constants& c, double moved, double s, double m) {
  const double largest = fmax(fabs(s), fabs(m)) + c.lag;
  const double base =
      moved + c.scale_error * ((m - s) + 2 * moved + c.lag) + c.exp_error + c.split + c.split_s * largest;
  return {base + c.max_change * u32 * (largest + fabs(m) + c.lag), base + u32 * largest};
}

// Upper bounds of expm1(t) for t <= 1/2 and of 1 - exp(-t).
inline constexpr double small_tau = 0.5;
__device__ inline double expm1_above(double t) { return t * (1 + t * (0.5 + t * 0.25)); }
__device__ inline double one_minus_exp_above(double t) { return t * (1 - t * (0.5 - t * (1.0 / 6))); }
__device__ inline double grown(double e, double below, double t) { return fmax(0.0, exp(fmin(below + t, 700.0)) - e); }

/// The error of a score: its bound, and how large it typically is.
struct ScoreError {
  double moved, typical;
};

/// `A` = scale |q| |k|; `slope` softcap's derivative at it; `alibi` and `bias` what was added, by magnitude, and
/// whether either is.
__device__ inline ScoreError score_error(const RowCall& call, const Constants& c, double s, double A, double slope,
                                         double alibi, double bias) {
  const Rounding& n = call.rounding;
  const double from_products = 0.5 * c.g_d / sqrt(static_cast<double>(call.headdim));
  const double additions = (call.slopes != nullptr) + (call.bias != nullptr);
  if (call.softcap == 0 && additions == 0) {
    const double rounded = n.u_S * fabs(s);
    return {c.g_d * A + rounded, from_products * A + rounded};
  }
  A = A < infinity ? A : 0;  // an Inf that the cap took in
  double off = c.g_d * A + n.u_S * A, typical = from_products * A + n.u_S * A;
  if (call.softcap > 0) {
    const double cap = call.softcap, y = (off + 3 * u32 * A) / cap, t = sqrt(fmax(0.0, 1 - slope));
    off = cap * (fmin(y, slope * y + 0.385 * y * y) + n.eps_tanh * t);
    typical = slope * typical + 0.6 * n.eps_tanh * cap * t;
    A = fmin(A, cap);
  }
  const double rounded =
      additions > 0 ? u32 * ((3 + additions) * A + (4 + additions) * alibi + (2 + additions) * bias) : 0;
  return {off + rounded, typical + 0.5 * rounded};
}

__device__ inline double ulp32(double x) { return fabs(x) >= 0x1p-126 ? ldexp(1.0, ilogb(x) - 23) : 0x1p-149; }

__device__ inline double output_spacing(const Rounding& n, double o) {
  return o == 0 ? 2 * n.floor_out : fmax(2 * n.u_out * ldexp(1.0, ilogb(o)), 2 * n.floor_out);
}

/// What e is divided by before P is rounded.
__device__ inline double divisor_of_P(const Rounding& n, double l) { return n.normalises_first ? l : 1; }

/// The variance of P's rounding, over l^2.
__device__ inline double rounding_variance(const Rounding& n, double e, double l) {
  const double exact = n.max_P > 1 || n.normalises_first ? -1 : 1;
  const double divisor = divisor_of_P(n, l), p = e / divisor;
  const double binade = p > 0 ? ldexp(1.0, ilogb(p)) : 0;
  const double ulp = p == exact ? 0 : fmax(binade * 2 * n.u_P, 2 * n.a_P);
  const bool alike = n.normalises_first && p < n.min_normal_P;
  return (alike ? n.a_P * n.a_P : ulp * ulp / 12) * (divisor / l) * (divisor / l);
}

}  // namespace attest::reference64
