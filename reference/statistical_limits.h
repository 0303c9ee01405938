// How far the statistics of a right kernel's errors may go: docs/numerics.md, "The judgement".
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "attest/problem/numerics.h"

namespace attest {

// A right kernel is accused by a statistical rule at most once in this many verdicts, as far as its errors are the
// independent ones of docs/numerics.md.
inline constexpr double false_alarms = 1e-9;
inline constexpr std::int64_t rows_per_block = 128;
// Fewer columns are too few for a row's mean square to mean anything.
inline constexpr std::int64_t fewest_columns = 16;

// chi-square with k degrees of freedom exceeds k + 2 sqrt(k x) + 2 x with a probability of at most exp(-x)
// (Laurent and Massart 2000, lemma 1). This is that limit on the mean square.
inline double mean_square_limit(double k, double comparisons) {
  const double x = std::log(std::max(comparisons, 1.0) / false_alarms);
  return 1 + 2 * std::sqrt(x / k) + 2 * x / k;
}

// However many numbers are averaged, the variance is a model: these mean squares are as far as it was found to be safe.
inline constexpr double smallest_row_limit = 1.75 * 1.75, smallest_block_limit = 1.10;

// Where O is rounded much finer than P, as beside 8-bit inputs, nothing but P's roundings is left in its errors.
inline bool only_P_rounds(const Numerics& numerics) { return numerics.u_P > 4 * numerics.u_out; }

// The columns of a row count as fewer than they are, because the rounding of P is the same for all of them; the more
// keys, the less they share. Fitted to the spread of R^2 over rows of an emulated kernel, on the low side
// (docs/numerics.md). Where P alone rounds, a row's errors are combinations of as many random numbers as it has
// `roundings` in effect, which one large weight makes few among any number of keys.
inline double independent_columns(std::int64_t columns, std::int64_t keys, double roundings) {
  const double shared = std::min(std::max(16.0, 8 * std::sqrt(static_cast<double>(keys))), roundings);
  return 1 / (1 / static_cast<double>(columns) + 1 / shared);
}

// How many independent numbers a block of rows has. Rows are independent but for how far each is `alike` all others:
// the variance of a mean of n numbers of variance 1 and covariance a_i a_j is (n - sum a^2 + (sum a)^2) / n^2.
class IndependentRows {
 public:
  void add(double independent_columns, double alike) {
    columns_ += independent_columns;
    rows_ += 1;
    alike_ += alike;
    squares_ += alike * alike;
  }
  double number() const { return columns_ * rows_ / (rows_ - squares_ + alike_ * alike_); }

 private:
  double columns_ = 0, rows_ = 0, alike_ = 0, squares_ = 0;
};

// A standard normal number exceeds sqrt(2 x) in magnitude with a probability of at most exp(-x).
inline double deviation_limit(double comparisons) {
  return std::sqrt(2 * std::log(std::max(comparisons, 1.0) / false_alarms));
}

}  // namespace attest
