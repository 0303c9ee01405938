#include "strip.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <new>

#include "vector_math.h"

namespace attest {
namespace {

using OutputMap = Eigen::Map<RowMatrix, 0, Eigen::OuterStride<>>;

bool all_finite(const std::vector<double>& values) {
  // x - x is 0 for a finite x and NaN otherwise; NaN stays in the sum.
  double sum = 0;
  const double* x = values.data();
  const std::size_t n = values.size();
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < n; ++i) sum += x[i] - x[i];  // NOLINT(misc-redundant-expression)
  return sum == 0;
}

// The products ran over V with its NaN and Inf taken out, because 0 * NaN is NaN and a masked key weighs 0. Here the
// keys that a row does see bring theirs back. A weight that underflowed still gives an Inf its sign; that of a score of
// -Inf is 0, and 0 * Inf is NaN.
void add_non_finite(const PreparedInputs& in, const StripPlace& place, const double* weights, const RowSoftmax* rows,
                    OutputMap& o) {
  for_each_range(place, [&](const KeyRange& range, std::int64_t column) {
    const HeadMap v = head_rows(in.inputs.v, place.b, place.h_k, range.begin, range.size());
    for (std::int64_t j = 0; j < v.rows(); ++j)
      for (std::int64_t c = 0; c < v.cols(); ++c) {
        if (std::isfinite(v(j, c))) continue;
        for (std::int64_t r = 0; r < place.num_rows; ++r) {
          if (!rows[r].columns.contains(column + j)) continue;
          const double w = weights[r * place.width() + column + j];
          const std::vector<std::int64_t>& zeros = rows[r].minus_inf;
          const bool underflowed = w == 0 && !std::binary_search(zeros.begin(), zeros.end(), column + j);
          o(r, c) += (underflowed ? std::numeric_limits<double>::min() : w) * v(j, c);
        }
      }
  });
}

// The columns of the keys in `keys`, which lie within the strip's ranges.
KeyRanges columns_of(const StripPlace& place, const KeyRanges& keys) {
  std::array<KeyRange, 2> columns;
  auto* next = columns.data();
  for (const KeyRange& part : keys)
    for_each_range(place, [&](const KeyRange& range, std::int64_t column) {
      if (range.begin <= part.begin && part.end <= range.end)
        *next++ = {part.begin - range.begin + column, part.end - range.begin + column};
    });
  return {columns[0], columns[1]};
}

}  // namespace

HeadMap head_rows(const Tensor& t, std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t num_rows) {
  const double* data = t.values.data() + (num_rows > 0 ? t.index(b, first, h, 0) : 0);
  return HeadMap(data, num_rows, t.extents[3], Eigen::OuterStride<>(t.extents[2] * t.extents[3]));
}

double PreparedInputs::score_scale(std::int64_t b, std::int64_t h_k) const {
  const double scale = static_cast<float>(effective_softmax_scale(problem));
  return is_fp8(problem.dtype) ? scale * inputs.q_descale.at(b, h_k, 0, 0) * inputs.k_descale.at(b, h_k, 0, 0) : scale;
}

double PreparedInputs::softcap() const { return static_cast<float>(problem.softcap); }

double PreparedInputs::v_scale(std::int64_t b, std::int64_t h_k) const {
  return is_fp8(problem.dtype) ? inputs.v_descale.at(b, h_k, 0, 0) : 1;
}

double PreparedInputs::sink(std::int64_t h) const {
  return problem.sink ? inputs.sink.at(0, h, 0, 0) : -std::numeric_limits<double>::infinity();
}

double PreparedInputs::alibi_slope(std::int64_t b, std::int64_t h) const { return inputs.alibi_slopes.at(b, h, 0, 0); }

const double* PreparedInputs::bias_row(std::int64_t b, std::int64_t h, std::int64_t i) const {
  if (problem.bias == Bias::none || problem.seqlen_k == 0) return nullptr;
  const bool per_batch = problem.bias == Bias::bhqk || problem.bias == Bias::bqk;
  const bool per_head = problem.bias == Bias::bhqk || problem.bias == Bias::hqk;
  return &inputs.bias.values[static_cast<std::size_t>(inputs.bias.index(per_batch ? b : 0, per_head ? h : 0, i, 0))];
}

PreparedInputs::PreparedInputs(const Problem& p, const Inputs& i) : problem(p), inputs(i) {
  if (all_finite(i.v.values)) return;
  v_copy = i.v;
  for (double& x : v_copy.values)
    if (!std::isfinite(x)) x = 0;
}

StripMemory::StripMemory(std::int64_t seqlen_k, int num_strips)
    : stride_((rows_per_strip * seqlen_k + 7) / 8 * 8),
      memory_(static_cast<double*>(std::aligned_alloc(
          64, static_cast<std::size_t>(std::max<std::int64_t>(8, stride_ * num_strips)) * sizeof(double)))) {
  // On a boundary that every vector has: sums are taken in the same order wherever the memory comes from.
  if (!memory_) throw std::bad_alloc();
}

RowMatrix times_keys(const StripPlace& place, const double* strip, const Tensor& tensor) {
  const Eigen::Map<const RowMatrix> w(strip, place.num_rows, place.width());
  RowMatrix product;
  for_each_range(place, [&](const KeyRange& range, std::int64_t column) {
    const auto rows = head_rows(tensor, place.b, place.h_k, range.begin, range.size());
    if (column == 0)
      product.noalias() = w.leftCols(range.size()) * rows;
    else
      product.noalias() += w.middleCols(column, range.size()) * rows;
  });
  return product;
}

void clear_unseen(const StripPlace& place, const RowSoftmax* rows, double* strip) {
  const std::int64_t width = place.width();
  for (std::int64_t r = 0; r < place.num_rows; ++r) {
    double* row = strip + r * width;
    std::int64_t first = 0;
    for (const KeyRange& part : rows[r].columns) {
      std::fill(row + first, row + part.begin, 0.0);
      first = part.end;
    }
    std::fill(row + first, row + width, 0.0);
  }
}

void strip_softmax(const PreparedInputs& in, const StripPlace& place, const double* scores, double* weights,
                   RowSoftmax* rows) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::int64_t width = place.width();
  const double sink = in.sink(place.h);
  for (std::int64_t r = 0; r < place.num_rows; ++r) {
    const double* s = scores + r * width;
    double* w = weights + r * width;
    RowSoftmax& row = rows[r];
    row = {};
    const KeyRanges keys = key_ranges(in.problem, place.b, place.first_row + r);
    row.columns = columns_of(place, keys);
    row.apart = keys.end() - keys.begin() > 1;

    double max = sink, min = infinity;
    for (const KeyRange& part : row.columns) {
#pragma omp simd reduction(max : max) reduction(min : min)
      for (std::int64_t j = part.begin; j < part.end; ++j) {
        max = s[j] > max ? s[j] : max;  // both pass over NaN; its exp brings it back
        min = s[j] < min ? s[j] : min;
      }
    }
    if (min == -infinity)
      for (const KeyRange& part : row.columns)
        for (std::int64_t j = part.begin; j < part.end; ++j)
          if (s[j] == -infinity) row.minus_inf.push_back(j);
    if (max == -infinity) max = 0;  // then nothing weighs anything
    double sum = 0;
    for (const KeyRange& part : row.columns) {
#pragma omp simd reduction(+ : sum)
      for (std::int64_t j = part.begin; j < part.end; ++j) {
        const double e = exp_of_nonpositive(s[j] - max);
        w[j] = e;
        sum += e;
      }
    }
    row.max = max;
    row.sink_weight = exp_of_nonpositive(sink - max);
    row.sum = sum + row.sink_weight;
  }
  clear_unseen(place, rows, weights);
}

void strip_output(const PreparedInputs& in, const StripPlace& place, const double* weights, const RowSoftmax* rows,
                  Forward& out) {
  const auto [batch, seqlen, heads, dim] = out.o.extents;
  OutputMap o(&out.o.at(place.b, place.first_row, place.h, 0), place.num_rows, dim, Eigen::OuterStride<>(heads * dim));
  o.setZero();
  const Eigen::Map<const RowMatrix> w(weights, place.num_rows, place.width());
  for_each_range(place, [&](const KeyRange& range, std::int64_t column) {
    o.noalias() +=
        w.middleCols(column, range.size()) * head_rows(in.finite_v(), place.b, place.h_k, range.begin, range.size());
  });
  if (!in.all_v_finite()) add_non_finite(in, place, weights, rows, o);
  const double v_scale = in.v_scale(place.b, place.h_k);
  for (std::int64_t r = 0; r < place.num_rows; ++r) {
    // A row that sees nothing, or whose scores are all -Inf, has a sum of 0: O = 0 and LSE = -Inf.
    if (rows[r].sum != 0) o.row(r) *= v_scale / rows[r].sum;
    out.lse.at(place.b, place.h, place.first_row + r, 0) = rows[r].max + std::log(rows[r].sum);
  }
}

}  // namespace attest
