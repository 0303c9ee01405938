// The terms of the error budget that the worst case and the statistics share: docs/numerics.md, whose names these are.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "strip.h"

namespace attest {

// The documented error of CUDA's __logf on [0.5, 2]: 2^-21.41 is a little less.
inline constexpr double log_near_one = 0x1.82p-22;
inline constexpr double log_elsewhere = 3 * 0x1p-23 + u32;

// A product with an approximate reciprocal.
inline constexpr double approximate_division = 6 * u32;

// What is the same for every element of a row.
struct RowConstants {
  double N;  // visible keys
  double T, g_pv, g_l;
  double g_d;
  double exp_error;       // of a key's own exponential and of all rescales
  double max_change;      // 1 where the running maximum may change, else 0
  double lag;             // ln of the largest P: how far below the maximum a kernel may keep its reference
  double scale_error;     // of the scale that the scores are brought to base 2 with, times their distance to m
  double max_roundings;   // of the maximum on its way into LSE
  double split, split_s;  // of a split's LSE among the others': a part of its own, and one times the largest score
  double combine;         // of what all splits are divided by
  double division;        // of l, the division and all else that a whole row shares
  double own_division;    // of each weight's own division by l, where that comes before the product with V
};

RowConstants row_constants(const PreparedInputs& in, const Numerics& n, const RowSoftmax& row);

// tau of a key: how far the logarithm of its weight may be off. In O, what all keys share has cancelled.
struct Tau {
  double o, lse;
};
inline Tau tau_of(const RowConstants& c, double moved, double s, double m) {
  const double abs_s = std::abs(s), abs_m = std::abs(m);
  const double largest = (abs_s > abs_m ? abs_s : abs_m) + c.lag;
  const double base =
      moved + c.scale_error * ((m - s) + 2 * moved + c.lag) + c.exp_error + c.split + c.split_s * largest;
  return {base + c.max_change * u32 * (largest + abs_m + c.lag), base + u32 * largest};
}

// The errors of a row's scores, from |Q| |K|^T in `moved`: their bounds replace it, and `typical`, if not null, gets
// deviations. Where a score is -Inf, whose weight is exactly 0, it becomes a number far below the maximum.
void score_errors(const PreparedInputs& in, const StripPlace& place, std::int64_t r, const RowConstants& c,
                  const Numerics& n, const RowSoftmax& row, const double* slopes, double* scores, double* moved,
                  double* typical);

// What e is divided by before P is rounded: l, or nothing where O is divided instead.
inline double divisor_of_P(const Numerics& n, double l) { return n.normalises_first ? l : 1; }

// A p below this may be gone from O whole: a factor that moves O from one reference to another (a rescale, a sink's, a
// split's, 1 / l with any of them) is flushed to 0 below 2^-126, and what it multiplies has weights of up to max_P.
inline double least_kept(const Numerics& n) { return 0x1p-126 * std::max(1.0, n.max_P); }

// The sink's error as a score.
inline double sink_moved(double sink) { return 3 * u32 * std::abs(sink); }

struct StatisticalRow {
  double sum_t = 0;     // sum p^2 st^2
  bool spread = false;  // whether the scores differ enough for their roundings to be independent
};

// The variance t = p^2 st^2 of each key's weight from its score's errors.
StatisticalRow score_variance(const PreparedInputs& in, const StripPlace& place, const RowConstants& c,
                              const Numerics& n, const RowSoftmax& row, const double* s, const double* e,
                              const double* typical, double* t);

// The variances of the strip's rows, from t in strips.scores; strips.weights and strips.spare are overwritten.
void strip_variances(const StripPlace& place, BudgetStrips strips, const RowMatrix& v, const RowConstants* constants,
                     const StatisticalRow* stats, const RowSoftmax* rows, Truth& truth);

}  // namespace attest
