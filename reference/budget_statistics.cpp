// How large the errors of a right kernel are where its roundings are independent: docs/numerics.md.
#include <algorithm>
#include <bit>
#include <cmath>

#include "budget_terms.h"
#include "statistical_limits.h"

namespace attest {
namespace {

double ulp32(double x) {
  if (!(std::abs(x) >= 0x1p-126)) return 0x1p-149;
  return std::ldexp(1.0, std::ilogb(x) - 23);
}

// Scores closer together than this give weights within a few spacings of each other, whose roundings go one way, and
// rows whose outputs round alike: softmax_scale 0, a single key. 0.1 is 25 spacings of bf16.
constexpr double smallest_spread = 0.1;
// An error of a weight moves all columns of a row together, so a row of hundreds of columns is then one observation and
// not hundreds. Where such errors reach a quarter of P's own rounding, as they do at very large scales, the
// row is left to the worst case.
constexpr double largest_shared_error = 0.25;

// w becomes the variance of P's rounding over l^2, plus t: ulp(e)^2 / (12 l^2) + t, no rounding where e is exactly 1.
// Where P is e / l: ulp(e / l)^2 / 12 + t, and a_P^2 below the smallest normal P, because at few spacings (at less than
// one where a row has many keys) the roundings of like weights are alike, and each may be half a spacing.
void add_rounding_variance(const Numerics& n, const RowSoftmax& row, const double* e, const double* t, double* w) {
  const double divisor = divisor_of_P(n, row.sum), to_P = 1 / divisor, from_P = divisor / row.sum;
  const double factor = from_P * from_P / 12;
  const double spacing = 2 * n.u_P, smallest = 2 * n.a_P;
  // A lazily rescaled maximum is no longer at 1, nor is one that was divided.
  const double exact = n.max_P > 1 || n.normalises_first ? -1 : 1;
  const double alike_below = n.normalises_first ? n.min_normal_P : 0, alike = std::sqrt(12.0) * n.a_P;
  for (const KeyRange& part : row.columns)
#pragma omp simd
    for (std::int64_t j = part.begin; j < part.end; ++j) {
      const double p = e[j] * to_P;
      const double binade = std::bit_cast<double>(std::bit_cast<std::uint64_t>(p) & 0x7ff0000000000000);
      const double ulp = p == exact ? 0 : std::max(binade * spacing, smallest);
      const double off = p < alike_below ? alike : ulp;
      w[j] = off * off * factor + t[j];
    }
}

double output_spacing(const Numerics& n, double o) {
  if (o == 0) return 2 * n.floor_out;
  return std::max(2 * n.u_out * std::ldexp(1.0, std::ilogb(o)), 2 * n.floor_out);
}

// How many of the numbers whose variances these are decide a row.
double effective_number(const RowSoftmax& row, const double* variances) {
  double sum = 0, squares = 0;
  for (const KeyRange& part : row.columns)
    for (std::int64_t j = part.begin; j < part.end; ++j) {
      sum += variances[j];
      squares += variances[j] * variances[j];
    }
  return squares > 0 ? sum * sum / squares : 1;
}

}  // namespace

StatisticalRow score_variance(const PreparedInputs& in, const StripPlace& place, const RowConstants& c,
                              const Numerics& n, const RowSoftmax& row, const double* s, const double* e,
                              const double* typical, double* t) {
  const double m = row.max, over_l = 1 / row.sum;
  double sum = 0, below = 0, below_squared = 0;
  for (const KeyRange& part : row.columns) {
#pragma omp simd reduction(+ : sum, below, below_squared)
    for (std::int64_t j = part.begin; j < part.end; ++j) {
      const double st = typical[j] + u32 * (m - s[j]) + 0.6 * n.eps_exp + 0.5 * c.split;
      const double off = e[j] * over_l * st;
      t[j] = off * off;
      sum += off * off;
      below += m - s[j];
      below_squared += (m - s[j]) * (m - s[j]);
    }
  }
  if (row.sink_weight > 0) {
    const double sink = in.sink(place.h);
    const double st = sink_moved(sink) + u32 * (m - sink) + 0.6 * n.eps_exp + 0.5 * c.split;
    sum += std::pow(row.sink_weight * over_l * st, 2);
  }
  const double mean = below / c.N;
  const bool spread = below_squared / c.N - mean * mean > smallest_spread * smallest_spread;
  return {sum, spread && std::sqrt(sum) < largest_shared_error * n.u_P};
}

void strip_variances(const StripPlace& place, BudgetStrips strips, const RowMatrix& v, const RowConstants* constants,
                     const StatisticalRow* stats, const RowSoftmax* rows, Truth& truth) {
  const Numerics& n = truth.numerics;
  const std::int64_t width = place.width(), dim = v.cols();
  auto [scores, weights, slopes, spare] = strips;
  for (std::int64_t r = 0; r < place.num_rows; ++r) {
    const RowSoftmax& row = rows[r];
    if (!stats[r].spread) continue;
    const RowConstants& c = constants[r];
    const double lse = truth.forward.lse.at(place.b, place.h, place.first_row + r, 0);
    const double log_l = std::log(row.sum) + c.lag;
    double variance = stats[r].sum_t + std::pow(0.3 * u32, 2) * (c.N / n.chain + 2 * c.T);
    if (row.sum <= 2.01) variance += 0x1p-44 / 3;
    variance += std::pow(0x1p-23 * log_l, 2) + (std::pow(ulp32(lse), 2) + 3 * std::pow(ulp32(row.max), 2)) / 12;
    // A split's LSE and the combined one are rounded once more each.
    if (n.num_splits > 1) variance += std::pow(0.5 * c.combine, 2) + std::pow(ulp32(lse), 2) / 6;
    truth.lse_variance.at(place.b, place.h, place.first_row + r, 0) = variance;
  }
  if (truth.o_variance.values.empty()) return;

  // t V^2 - 2 O t V + O^2 sum t = sum p^2 st^2 (v - O)^2
  clear_unseen(place, rows, scores);
  const RowMatrix v_squared = v.cwiseAbs2();
  const RowMatrix t_v = StripMap(scores, place.num_rows, width) * v;
  for (std::int64_t r = 0; r < place.num_rows; ++r)
    if (rows[r].sum > 0) add_rounding_variance(n, rows[r], weights + r * width, scores + r * width, spare + r * width);
  if (only_P_rounds(n))
    for (std::int64_t r = 0; r < place.num_rows; ++r)
      if (stats[r].spread)
        truth.roundings.at(place.b, place.h, place.first_row + r, 0) = effective_number(rows[r], spare + r * width);
  clear_unseen(place, rows, spare);
  const RowMatrix rounded_v2 = StripMap(spare, place.num_rows, width) * v_squared;
  StripMap w(weights, place.num_rows, width);
  w.array() *= w.array();
  const RowMatrix e2_v2 = w * v_squared;
  for (std::int64_t r = 0; r < place.num_rows; ++r) {
    if (!stats[r].spread) continue;
    const double truncation = constants[r].N / 16 * 0.18 * n.u_acc;
    // Beside 8-bit inputs an O that one key decides is one of a few values, all of which are rounded alike.
    const bool repeats = only_P_rounds(n);
    for (std::int64_t d = 0; d < dim; ++d) {
      const double o = truth.forward.o.at(place.b, place.first_row + r, place.h, d);
      const double ulp = output_spacing(n, o);
      const double drift = truncation * (std::abs(o) + std::sqrt(e2_v2(r, d)) / rows[r].sum);
      const double keys = rounded_v2(r, d) - 2 * o * t_v(r, d) + o * o * stats[r].sum_t;
      if (repeats && keys < ulp * ulp / 12) continue;
      truth.o_variance.at(place.b, place.first_row + r, place.h, d) =
          ulp * ulp / 12 + std::max(0.0, keys) + drift * drift;
    }
  }
}

}  // namespace attest
