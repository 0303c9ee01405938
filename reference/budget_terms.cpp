#include "budget_terms.h"

#include "attest/reference/attends.h"
#include "attest/reference/sum_errors.h"

namespace attest {
namespace {

// Far enough below any maximum to weigh nothing, near enough to count for nothing.
constexpr double no_weight = 1e4;

}  // namespace

SumErrors sum_errors(const Numerics& n, std::int64_t num_keys, int breaks) {
  const auto N = static_cast<double>(num_keys);
  SumErrors sums{};
  sums.T = (num_keys <= 1 ? 1 : 1 + std::ceil((N - 1) / n.smallest_tile)) + breaks;
  sums.g_pv = compounded((N + 2 * std::ceil(N / 16)) * n.u_acc + sums.T * u32);
  sums.g_l = compounded((std::ceil(N / n.chain) + 2 + 2 * sums.T) * u32);
  return sums;
}

RowConstants row_constants(const PreparedInputs& in, const Numerics& n, const RowSoftmax& row) {
  RowConstants c{};
  c.N = static_cast<double>(row.columns.size());
  const bool fp8 = is_fp8(in.problem.dtype), splits = n.num_splits > 1;
  const auto S = static_cast<double>(n.num_splits);
  // A second interval of keys, a sink and a split each may meet one maximum more.
  const int breaks = row.apart + in.problem.sink + (splits ? n.num_splits : 0);
  const SumErrors sums = sum_errors(n, row.columns.size(), breaks);
  c.T = sums.T, c.g_pv = sums.g_pv, c.g_l = sums.g_l;
  const auto d = static_cast<double>(in.problem.headdim);
  c.g_d = compounded((d + 2 * std::ceil(d / 16)) * n.u_acc);
  c.exp_error = n.eps_exp * c.T;
  c.max_change = c.T > 1 ? 1 : 0;
  c.lag = std::log(std::max(1.0, n.max_P));
  c.scale_error = (fp8 ? 7 : 4) * u32;
  c.max_roundings = n.lse_max_roundings + (fp8 ? 3 : 0);
  c.own_division = n.normalises_first ? approximate_division : 0;
  c.division = c.g_l + (n.normalises_first ? 0 : approximate_division) + (fp8 ? 2 : 0) * u32;
  if (splits) {
    const double log_N = std::log(std::max(1.0, c.N)) + c.lag;
    c.split = n.eps_exp + log_near_one + log_elsewhere * log_N + 3 * u32 * log_N;
    c.split_s = (c.max_roundings + 3) * u32;
    c.combine = log_near_one + log_elsewhere * std::log(S) + 3 * u32 * (std::abs(row.max) + log_N);
    c.g_pv += compounded((S + 4) * u32);
    c.division += c.combine;
  }
  return c;
}

void score_errors(const PreparedInputs& in, const StripPlace& place, std::int64_t r, const RowConstants& c,
                  const Numerics& n, const RowSoftmax& row, const double* slopes, double* s, double* moved,
                  double* typical) {
  const Problem& p = in.problem;
  const double from_products = 0.5 * c.g_d / std::sqrt(static_cast<double>(p.headdim));
  if (p.softcap == 0 && !p.alibi && p.bias == Bias::none) {
    for (const KeyRange& part : row.columns) {
#pragma omp simd
      for (std::int64_t j = part.begin; j < part.end; ++j) {
        const double rounded = n.u_S * std::abs(s[j]);
        if (typical) typical[j] = from_products * moved[j] + rounded;
        moved[j] = c.g_d * moved[j] + rounded;
      }
    }
  } else {
    const std::int64_t i = place.first_row + r;
    const double cap = in.softcap(), slope = p.alibi ? in.alibi_slope(place.b, place.h) : 0;
    const auto diagonal = static_cast<double>(i + diagonal_offset(p, place.b));
    const double* const bias = in.bias_row(place.b, place.h, i);
    const double additions = p.alibi + (bias != nullptr);
    for_each_range(place, [&](const KeyRange& range, std::int64_t column) {
      for (std::int64_t k = range.begin; k < range.end; ++k) {
        const std::int64_t j = column + k - range.begin;
        double A = moved[j] < std::numeric_limits<double>::infinity() ? moved[j] : 0;  // an Inf that the cap took in
        double off = c.g_d * A + n.u_S * A, sd = from_products * A + n.u_S * A;
        if (cap > 0) {
          // tanh moves by at most (1 - t^2) y + 0.385 y^2 where its argument does by y, and never by more than y.
          const double y = (off + 3 * u32 * A) / cap, slope_here = slopes[j];
          const double t = std::sqrt(std::max(0.0, 1 - slope_here));
          off = cap * (std::min(y, slope_here * y + 0.385 * y * y) + n.eps_tanh * t);
          sd = slope_here * sd + 0.6 * n.eps_tanh * cap * t;
          A = std::min(A, cap);
        }
        const double alibi = slope * std::abs(diagonal - static_cast<double>(k));
        const double rounded =
            u32 * ((3 + additions) * A + (4 + additions) * alibi + (bias ? (2 + additions) * std::abs(bias[k]) : 0));
        moved[j] = off + (additions > 0 ? rounded : 0);
        if (typical) typical[j] = sd + (additions > 0 ? 0.5 * rounded : 0);
      }
    });
  }
  for (const std::int64_t j : row.minus_inf) {
    s[j] = row.max - no_weight;
    moved[j] = 0;
    if (typical) typical[j] = 0;
  }
}

}  // namespace attest
