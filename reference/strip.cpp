#include "strip.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

#include "attest/reference/attends.h"
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
  for (std::size_t i = 0; i < n; ++i) sum += x[i] - x[i];
  return sum == 0;
}

// The products ran over V with its NaN and Inf taken out, because 0 * NaN is NaN and a masked key weighs 0. Here the
// keys that a row does see bring theirs back.
void add_non_finite(const PreparedInputs& in, const StripPlace& place, const double* weights, const RowSoftmax* rows,
                    OutputMap& o) {
  const HeadMap v = head_rows(in.inputs.v, place.b, place.h_k, place.keys.begin, place.keys.size());
  for (std::int64_t j = 0; j < v.rows(); ++j)
    for (std::int64_t c = 0; c < v.cols(); ++c) {
      if (std::isfinite(v(j, c))) continue;
      for (std::int64_t r = 0; r < place.num_rows; ++r)
        if (j >= rows[r].keys.begin && j < rows[r].keys.end) o(r, c) += weights[r * place.keys.size() + j] * v(j, c);
    }
}

}  // namespace

HeadMap head_rows(const Tensor& t, std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t num_rows) {
  const double* data = t.values.data() + (num_rows > 0 ? t.index(b, first, h, 0) : 0);
  return HeadMap(data, num_rows, t.extents[3], Eigen::OuterStride<>(t.extents[2] * t.extents[3]));
}

double kernel_softmax_scale(const Problem& problem) { return static_cast<float>(effective_softmax_scale(problem)); }

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

void strip_scores(const PreparedInputs& in, const StripPlace& place, double* scores) {
  // The scale goes onto Q: then the row maximum is a score bit for bit, and its exponential exactly 1.
  const RowMatrix q =
      kernel_softmax_scale(in.problem) * head_rows(in.inputs.q, place.b, place.h, place.first_row, place.num_rows);
  StripMap s(scores, place.num_rows, place.keys.size());
  s.noalias() = q * head_rows(in.inputs.k, place.b, place.h_k, place.keys.begin, place.keys.size()).transpose();
}

void strip_softmax(const PreparedInputs& in, const StripPlace& place, const double* scores, double* weights,
                   RowSoftmax* rows) {
  const std::int64_t width = place.keys.size();
  for (std::int64_t r = 0; r < place.num_rows; ++r) {
    const double* s = scores + r * width;
    double* w = weights + r * width;
    RowSoftmax& row = rows[r];
    row = {};
    row.keys = key_range(in.problem, place.b, place.first_row + r);
    if (row.keys.size() == 0) {
      std::fill(w, w + width, 0.0);
      continue;
    }
    row.keys.begin -= place.keys.begin;
    row.keys.end -= place.keys.begin;
    const std::int64_t begin = row.keys.begin, end = row.keys.end;

    double max = -std::numeric_limits<double>::infinity();
#pragma omp simd reduction(max : max)
    for (std::int64_t j = begin; j < end; ++j)
      max = s[j] > max ? s[j] : max;  // passes over NaN; its exp brings it back
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = begin; j < end; ++j) {
      const double e = exp_of_nonpositive(s[j] - max);
      w[j] = e;
      sum += e;
    }
    std::fill(w, w + begin, 0.0);
    std::fill(w + end, w + width, 0.0);
    row.max = max;
    row.sum = sum;
  }
}

void strip_output(const PreparedInputs& in, const StripPlace& place, const double* weights, const RowSoftmax* rows,
                  Forward& out) {
  const auto [batch, seqlen, heads, dim] = out.o.extents;
  OutputMap o(&out.o.at(place.b, place.first_row, place.h, 0), place.num_rows, dim, Eigen::OuterStride<>(heads * dim));
  const std::int64_t width = place.keys.size();
  if (width > 0) {
    const Eigen::Map<const RowMatrix> w(weights, place.num_rows, width);
    o.noalias() = w * head_rows(in.finite_v(), place.b, place.h_k, place.keys.begin, width);
    if (!in.all_v_finite()) add_non_finite(in, place, weights, rows, o);
  }
  for (std::int64_t r = 0; r < place.num_rows; ++r) {
    double& lse = out.lse.at(place.b, place.h, place.first_row + r, 0);
    if (rows[r].keys.size() == 0) {
      o.row(r).setZero();
      lse = -std::numeric_limits<double>::infinity();
    } else {
      o.row(r) /= rows[r].sum;
      lse = rows[r].max + std::log(rows[r].sum);
    }
  }
}

}  // namespace attest
