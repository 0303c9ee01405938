// How far a right kernel may be from the truth at worst. The derivation is in docs/numerics.md, whose names these are.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "budget_terms.h"

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// expm1(t) <= t + t^2/2 + t^3/4 for 0 <= t <= 1/2 (the terms left out sum to less than t^3/12), and
// 1 - exp(-t) <= t - t^2/2 + t^3/6 for every t >= 0.
constexpr double small_tau = 0.5;
inline double expm1_above(double t) { return t * (1 + t * (0.5 + t * 0.25)); }
inline double one_minus_exp_above(double t) { return t * (1 - t * (0.5 - t * (1.0 / 6))); }

// e expm1(t) for e = exp(below), where t may be beyond all bounds and e nothing.
double grown(double e, double below, double t) { return std::max(0.0, std::exp(std::min(below + t, 700.0)) - e); }

// Sums over a row's visible keys and its sink, unnormalised (of e, not p).
struct RowSums {
  double max_tau = 0;
  double o_shrink = 0;  // sum e (1 - exp(-tauO))
  double o_grow = 0;    // sum e expm1(tauO)
  double lse_shrink = 0, lse_grow = 0;

  void add(double e, double below, Tau t) {
    max_tau = std::max({max_tau, t.o, t.lse});
    o_shrink -= e * std::expm1(-t.o);
    o_grow += grown(e, below, t.o);
    lse_shrink -= e * std::expm1(-t.lse);
    lse_grow += grown(e, below, t.lse);
  }
};

RowSums sum_row(const RowConstants& c, const RowSoftmax& row, double sink, const double* moved, const double* s,
                const double* e) {
  double max_tau = 0, o_shrink = 0, o_grow = 0, lse_shrink = 0, lse_grow = 0;
  const double m = row.max;
  for (const KeyRange& part : row.columns) {
#pragma omp simd reduction(max : max_tau) reduction(+ : o_shrink, o_grow, lse_shrink, lse_grow)
    for (std::int64_t j = part.begin; j < part.end; ++j) {
      const Tau t = tau_of(c, moved[j], s[j], m);
      const double larger = t.o > t.lse ? t.o : t.lse;
      max_tau = larger > max_tau ? larger : max_tau;
      o_shrink += e[j] * one_minus_exp_above(t.o);
      o_grow += e[j] * expm1_above(t.o);
      lse_shrink += e[j] * one_minus_exp_above(t.lse);
      lse_grow += e[j] * expm1_above(t.lse);
    }
  }
  RowSums sums{max_tau, o_shrink, o_grow, lse_shrink, lse_grow};
  if (!(max_tau <= small_tau)) {
    sums = {};
    for (const KeyRange& part : row.columns)
      for (std::int64_t j = part.begin; j < part.end; ++j) sums.add(e[j], s[j] - m, tau_of(c, moved[j], s[j], m));
  }
  if (row.sink_weight > 0) sums.add(row.sink_weight, sink - m, tau_of(c, sink_moved(sink), sink, m));
  return sums;
}

double lse_bound(const RowConstants& c, const RowSoftmax& row, const RowSums& sums, double lse) {
  const double W = 1 - sums.lse_shrink / row.sum;
  if (!(W > 0)) return infinity;
  const double log_l = std::abs(std::log(row.sum)) + c.lag;
  const double log_error = (row.sum <= 2.01 ? log_near_one : 0) + log_elsewhere * log_l;
  return sums.lse_grow / row.sum / W + c.g_l + log_error + c.combine +
         u32 * (c.max_roundings * (std::abs(row.max) + c.lag) + std::abs(lse));
}

// A pre-rounding bound goes through the output's rounding.
double through_output(const Numerics& n, const RowConstants& c, double v_scale, double o, double pre) {
  return pre + n.u_out * (std::abs(o) + pre) + n.floor_out + (c.N + 1) * 0x1p-126 * std::max(1.0, v_scale);
}

// One visible key: P is within tau of 1 and rounds to 1 where tau is below half of P's spacing under 1, l is 1 within
// tau, and a quotient closer to V than half of O's spacing rounds to V itself.
bool one_key_is_exact(const Numerics& n, const RowConstants& c, const RowSoftmax& row, const RowSums& sums) {
  const double off = sums.max_tau + c.division + c.own_division;
  return c.N == 1 && row.sink_weight == 0 && n.max_P == 1 && off < n.u_P / 2 && off < n.u_out / 2;
}

// The strip of the scores' errors becomes X, the weights of |V| in the bound: everything in it that is a sum over keys.
void weights_of_abs_v(const RowConstants& c, const Numerics& n, const RowSoftmax& row, const RowSums& sums, double W,
                      const double* s, const double* e, double* moved) {
  const double m = row.max;
  const double over_W = 1 / (row.sum * W);
  const double rounded = (n.u_P + c.own_division * (1 + n.u_P) + c.g_pv) * (1 + 2 * c.g_l);
  const double divisor = divisor_of_P(n, row.sum), tiny = n.a_P * divisor / row.sum;
  // A kernel's own divisor may be larger than l, by the errors of its weights and of the division.
  const double larger = (1 + sums.o_grow / row.sum) * (1 + 2 * (c.division + c.own_division));
  const double min_normal = n.min_normal_P * divisor * (n.normalises_first ? larger : 1);
  const double over_l = 1 / row.sum, lost_below = least_kept(n) * row.sum * larger;
  for (const KeyRange& part : row.columns) {
    if (sums.max_tau <= small_tau) {
#pragma omp simd
      for (std::int64_t j = part.begin; j < part.end; ++j) {
        const double E = expm1_above(tau_of(c, moved[j], s[j], m).o);
        const double x = e[j] * over_W * (E + rounded * (1 + E));
        const double subnormal = e[j] < min_normal * (1 + E) ? tiny : 0.0;
        const double lost = e[j] < lost_below * (1 + E) ? e[j] * over_l : 0.0;
        moved[j] = x + (subnormal > lost ? subnormal : lost);
      }
    } else {
      for (std::int64_t j = part.begin; j < part.end; ++j) {
        const double tau = tau_of(c, moved[j], s[j], m).o, g = grown(e[j], s[j] - m, tau);
        const double x = over_W * (g + rounded * (e[j] + g));
        const double grows = std::exp(std::min(tau, 700.0));
        const double subnormal = e[j] < min_normal * grows ? tiny : 0.0;
        moved[j] = x + std::max(subnormal, e[j] < lost_below * grows ? e[j] * over_l : 0.0);
      }
    }
  }
}

// The column of the row's largest score; the sink may be larger.
std::int64_t largest_of(const RowSoftmax& row, const double* s) {
  std::int64_t largest = row.columns.begin()->begin;
  for (const KeyRange& part : row.columns) {
    const auto at = std::max_element(s + part.begin, s + part.end) - s;
    if (s[at] > s[largest]) largest = at;
  }
  return largest;
}

// What the rows of a strip have come to on the way to their bounds.
struct StripBudget {
  std::array<RowConstants, rows_per_strip> constants;
  std::array<RowSums, rows_per_strip> sums;
  std::array<double, rows_per_strip> W{}, top_error{};  // p expm1(tauO) of the row's largest weight
  std::array<StatisticalRow, rows_per_strip> stats{};
  std::array<std::int64_t, rows_per_strip> top{};
};

void bound_row(const PreparedInputs& in, const StripPlace& place, std::int64_t r, const StripBudget& b,
               const RowMatrix& v, const Eigen::RowVectorXd& largest_v, const double* weighted, const RowSoftmax& row,
               Truth& truth) {
  const Numerics& n = truth.numerics;
  const RowConstants& c = b.constants[r];
  const double v_scale = in.v_scale(place.b, place.h_k);
  const double grow = std::max(0.0, b.sums[r].o_grow / row.sum / b.W[r] - b.top_error[r]);
  const bool exact = one_key_is_exact(n, c, row, b.sums[r]);
  for (std::int64_t d = 0; d < v.cols(); ++d) {
    const double o = truth.forward.o.at(place.b, place.first_row + r, place.h, d);
    double& bound = truth.o_bound.at(place.b, place.first_row + r, place.h, d);
    if (exact) {
      bound = std::abs(o) < 0x1p-126 ? std::abs(o) : 0;  // fp32 subnormals may be flushed
      if (is_fp8(in.problem.dtype)) bound = through_output(n, c, v_scale, o, 2 * u32 * std::abs(o));
      continue;
    }
    const double summed = weighted[d] + grow * std::abs(o) + b.top_error[r] * std::abs(v(b.top[r], d) - o);
    const double pre = summed * (1 + 2 * c.division) + c.division * std::abs(o);
    // Whatever its errors, a kernel averages V: |O| stays below the largest |V| and its own roundings.
    const double weights = 1 + 2 * (n.u_P + c.own_division + c.g_pv + c.division) +
                           (n.normalises_first ? c.N * n.a_P : 0);  // their sum, at most
    const double average = largest_v(d) == 0 ? 0 : largest_v(d) * weights;
    const double trivial = average + std::abs(o);
    bound = through_output(n, c, v_scale, o, pre < trivial ? pre : trivial);
  }
}

}  // namespace

void strip_budget(const PreparedInputs& in, const StripPlace& place, BudgetStrips strips, const RowSoftmax* rows,
                  Truth& truth) {
  const Numerics& n = truth.numerics;
  const std::int64_t width = place.width(), headdim = in.problem.headdim, dim = in.problem.headdim_v;
  const bool statistical = !truth.lse_variance.values.empty();
  RowMatrix v(width, dim);
  {
    RowMatrix abs_k(width, headdim);
    for_each_range(place, [&](const KeyRange& range, std::int64_t column) {
      v.middleRows(column, range.size()) = head_rows(in.finite_v(), place.b, place.h_k, range.begin, range.size());
      abs_k.middleRows(column, range.size()) =
          head_rows(in.inputs.k, place.b, place.h_k, range.begin, range.size()).cwiseAbs();
    });
    v *= in.v_scale(place.b, place.h_k);
    const RowMatrix abs_q = std::abs(in.score_scale(place.b, place.h_k)) *
                            head_rows(in.inputs.q, place.b, place.h, place.first_row, place.num_rows).cwiseAbs();
    StripMap(strips.spare, place.num_rows, width).noalias() = abs_q * abs_k.transpose();
  }

  StripBudget b;
  std::vector<double> typical(statistical ? static_cast<std::size_t>(width) : 0), t(typical.size());
  const double sink = in.sink(place.h);
  for (std::int64_t r = 0; r < place.num_rows; ++r) {
    const RowSoftmax& row = rows[r];
    // Their sum of exponentials is +Inf before, and NaN after the maximum is taken off: LSE may be either.
    if (row.max == infinity) truth.lse_bound.at(place.b, place.h, place.first_row + r, 0) = infinity;
    if (!(row.sum > 0))
      continue;  // nothing weighs anything, or a score is NaN or +Inf: O and LSE are no rounded number
    double *moved = strips.spare + r * width, *s = strips.scores + r * width, *e = strips.weights + r * width;
    const RowConstants& c = b.constants[r] = row_constants(in, n, row);
    score_errors(in, place, r, c, n, row, strips.slopes ? strips.slopes + r * width : nullptr, s, moved,
                 statistical ? typical.data() : nullptr);
    const RowSums& sums = b.sums[r] = sum_row(c, row, sink, moved, s, e);
    const double lse = truth.forward.lse.at(place.b, place.h, place.first_row + r, 0);
    truth.lse_bound.at(place.b, place.h, place.first_row + r, 0) = lse_bound(c, row, sums, lse);
    if (row.columns.empty()) continue;
    b.W[r] = std::max(0.0, 1 - sums.o_shrink / row.sum);
    const std::int64_t top = b.top[r] = largest_of(row, s);
    b.top_error[r] = grown(e[top], s[top] - row.max, tau_of(c, moved[top], s[top], row.max).o) / (row.sum * b.W[r]);
    if (statistical) b.stats[r] = score_variance(in, place, c, n, row, s, e, typical.data(), t.data());
    weights_of_abs_v(c, n, row, sums, b.W[r], s, e, moved);
    moved[top] -= b.top_error[r];  // its |v - O| is taken as it is, in bound_row()
    if (statistical)               // t takes the place of the scores
      for (const KeyRange& part : row.columns) std::copy(t.begin() + part.begin, t.begin() + part.end, s + part.begin);
  }
  if (width == 0) return;
  clear_unseen(place, rows, strips.spare);

  const RowMatrix abs_v = v.cwiseAbs();
  const RowMatrix weighted = StripMap(strips.spare, place.num_rows, width) * abs_v;
  const Eigen::RowVectorXd largest_v = abs_v.colwise().maxCoeff();
  for (std::int64_t r = 0; r < place.num_rows; ++r)
    if (rows[r].sum > 0 && !rows[r].columns.empty())
      bound_row(in, place, r, b, v, largest_v, weighted.data() + r * dim, rows[r], truth);
  if (statistical) strip_variances(place, strips, v, b.constants.data(), b.stats.data(), rows, truth);
}

}  // namespace attest
