// Scores of a strip: products, softcap, ALiBi and bias, in the order of the definition.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "attest/reference/attends.h"
#include "strip.h"
#include "vector_math.h"

namespace attest {
namespace {

// softcap(x) = c tanh(x / c), in place.
void cap_scores(double cap, std::int64_t count, double* s) {
  const double over = 1 / cap;
#pragma omp simd
  for (std::int64_t j = 0; j < count; ++j) s[j] = cap * tanh_and_slope(s[j] * over).value;
}

void cap_scores(double cap, std::int64_t count, double* s, double* slopes) {
  const double over = 1 / cap;
#pragma omp simd
  for (std::int64_t j = 0; j < count; ++j) {
    const Tanh t = tanh_and_slope(s[j] * over);
    s[j] = cap * t.value;
    slopes[j] = t.slope;
  }
}

// s[j] for keys first to first + count - 1 of a query whose diagonal lies at `diagonal`.
void add_alibi(double slope, std::int64_t diagonal, std::int64_t first, std::int64_t count, double* s) {
  const auto distance = static_cast<double>(diagonal - first);
#pragma omp simd
  for (std::int64_t j = 0; j < count; ++j) s[j] -= slope * std::abs(distance - static_cast<double>(j));
}

}  // namespace

void strip_scores(const PreparedInputs& in, const StripPlace& place, double* scores, double* slopes) {
  // The scale goes onto Q: then the row maximum is a score bit for bit, and its exponential exactly 1.
  const RowMatrix q =
      in.score_scale(place.b, place.h_k) * head_rows(in.inputs.q, place.b, place.h, place.first_row, place.num_rows);
  const std::int64_t width = place.width();
  StripMap s(scores, place.num_rows, width);
  for_each_range(place, [&](const KeyRange& range, std::int64_t column) {
    s.middleCols(column, range.size()).noalias() =
        q * head_rows(in.inputs.k, place.b, place.h_k, range.begin, range.size()).transpose();
  });

  const double cap = in.softcap();
  if (cap > 0 && slopes) cap_scores(cap, place.num_rows * width, scores, slopes);
  if (cap > 0 && !slopes) cap_scores(cap, place.num_rows * width, scores);
  if (cap == 0 && slopes) std::fill(slopes, slopes + place.num_rows * width, 1.0);
  if (!in.problem.alibi && in.problem.bias == Bias::none) return;

  const std::int64_t off = diagonal_offset(in.problem, place.b);
  const double slope = in.problem.alibi ? in.alibi_slope(place.b, place.h) : 0;
  for (std::int64_t r = 0; r < place.num_rows; ++r) {
    const std::int64_t i = place.first_row + r;
    const double* const bias = in.bias_row(place.b, place.h, i);
    for_each_range(place, [&](const KeyRange& range, std::int64_t column) {
      double* const row = scores + r * width + column;
      if (in.problem.alibi) add_alibi(slope, i + off, range.begin, range.size(), row);
      if (bias)
        for (std::int64_t j = 0; j < range.size(); ++j) row[j] += bias[range.begin + j];
    });
  }
}

}  // namespace attest
