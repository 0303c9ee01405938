#include "gradient_block.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attest/reference/attends.h"
#include "gradient_bounds.h"
#include "vector_math.h"

namespace attest {
namespace {

Tensor without_non_finite(const Tensor& tensor) {
  if (std::all_of(tensor.values.begin(), tensor.values.end(), [](double x) { return std::isfinite(x); })) return {};
  Tensor copy = tensor;
  for (double& x : copy.values)
    if (!std::isfinite(x)) x = 0;
  return copy;
}

// D = sum dO O of a row, and how far a kernel's may be off.
void fill_row_sums(BackwardInputs& in, const Truth* bounds) {
  const Problem& p = in.problem;
  in.D = Tensor({p.batch, p.nheads, p.seqlen_q, 1});
  if (in.numerics) in.D_bound = Tensor(in.D.extents);
  const double g = compounded((static_cast<double>(p.headdim_v) + 2) * u32);
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t i = 0; i < queries_of(p, b); ++i)
      for (std::int64_t h = 0; h < p.nheads; ++h) {
        double sum = 0, magnitude = 0, off = 0;
        for (std::int64_t c = 0; c < p.headdim_v; ++c) {
          const std::int64_t n = in.forward.o.index(b, i, h, c);
          const double dout = in.inputs.dout.values[n], o = in.forward.o.values[n];
          const double o_off = bounds ? std::min(bounds->o_bound.values[n], hopeless) : 0;
          sum += dout * o;
          magnitude += std::abs(dout) * (std::abs(o) + o_off);
          off += std::abs(dout) * o_off;
        }
        in.D.at(b, h, i, 0) = sum;
        if (in.numerics) in.D_bound.at(b, h, i, 0) = off + g * magnitude + static_cast<double>(p.headdim_v) * 0x1p-126;
      }
}

}  // namespace

BackwardInputs::BackwardInputs(const Problem& p, const Inputs& i, const Forward& f, const Numerics* n,
                               const Truth* bounds)
    : problem(p),
      inputs(i),
      forward(f),
      numerics(n),
      lse_bound(bounds ? &bounds->lse_bound : nullptr),
      prepared(p, i),
      strips_a_batch((p.seqlen_q + rows_per_strip - 1) / rows_per_strip),
      scale(static_cast<float>(effective_softmax_scale(p))),
      q_copy(without_non_finite(i.q)),
      k_copy(without_non_finite(i.k)),
      dout_copy(without_non_finite(i.dout)) {
  fill_row_sums(*this, bounds);
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t strip = 0; strip < strips_a_batch; ++strip)
      strip_keys.push_back(key_ranges_of_rows(p, b, std::min(queries_of(p, b), strip * rows_per_strip),
                                              std::min(queries_of(p, b), (strip + 1) * rows_per_strip)));
  if (!numerics) return;
  visible_keys.resize(static_cast<std::size_t>(p.batch * p.seqlen_q));
  visible_rows.resize(static_cast<std::size_t>(p.batch * p.seqlen_k));
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t row = 0; row < queries_of(p, b); ++row) {
      for (const KeyRange& part : key_ranges(p, b, row)) {
        visible_keys[b * p.seqlen_q + row] += part.size();
        for (std::int64_t j = part.begin; j < part.end; ++j) ++visible_rows[b * p.seqlen_k + j];
      }
    }
}

void fill_block(const BackwardInputs& in, const BlockPlace& place, GradientBlock& block) {
  const Problem& p = in.problem;
  const std::int64_t rows = place.num_rows, width = place.keys.size();
  block.x.resize(rows, width);
  if (p.softcap != 0) block.cap.resize(rows, width);
  strip_scores(in.prepared, {place.b, place.h, place.h_k, place.first_row, rows, KeyRanges(place.keys)}, block.x.data(),
               p.softcap != 0 ? block.cap.data() : nullptr);
  {
    const RowMatrix dout =
        in.prepared.v_scale(place.b, place.h_k) * head_rows(in.inputs.dout, place.b, place.h, place.first_row, rows);
    block.dp.noalias() = dout * head_rows(in.inputs.v, place.b, place.h_k, place.keys.begin, width).transpose();
  }
  block.visible.resize(rows, width);
  block.p.resize(rows, width);
  block.ds.resize(rows, width);
  if (p.softcap != 0) block.dx.resize(rows, width);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t i = place.first_row + r;
    const double handed = in.forward.lse.at(place.b, place.h, i, 0), D = in.D.at(place.b, place.h, i, 0);
    // LSE = -Inf where all visible scores are: their weights are 0.
    const double lse = handed == -std::numeric_limits<double>::infinity() ? 0 : handed;
    const double* x = &block.x(r, 0);
    const double* dp = &block.dp(r, 0);
    double *visible = &block.visible(r, 0), *weight = &block.p(r, 0), *ds = &block.ds(r, 0);
    double largest = 0;
    std::fill(visible, visible + width, 0.0);
    for (const KeyRange& part : key_ranges(p, place.b, i)) {
      const std::int64_t begin = std::max(part.begin, place.keys.begin), end = std::min(part.end, place.keys.end);
      for (std::int64_t j = begin; j < end; ++j) {
        visible[j - place.keys.begin] = 1;
        largest = std::max(largest, x[j - place.keys.begin] - lse);
      }
    }
    if (largest <= 1) {
      for (std::int64_t j = 0; j < width; ++j) {
        const double e = exp_of_nonpositive(x[j] - lse);  // holds a little above 0, too, where s rounds above LSE
        weight[j] = visible[j] == 1 ? e : 0;
      }
    } else {  // somebody's LSE that is none
      for (std::int64_t j = 0; j < width; ++j) weight[j] = visible[j] == 1 ? std::exp(x[j] - lse) : 0;
    }
    for (std::int64_t j = 0; j < width; ++j) ds[j] = visible[j] == 1 ? weight[j] * (dp[j] - D) : 0;
    if (p.softcap != 0)
      for (std::int64_t j = 0; j < width; ++j) block.dx(r, j) = visible[j] == 1 ? ds[j] * block.cap(r, j) : 0;
  }
}

void fill_block_errors(const BackwardInputs& in, const BlockPlace& place, GradientBlock& block) {
  const Problem& p = in.problem;
  const Numerics& n = *in.numerics;
  const std::int64_t rows = place.num_rows, width = place.keys.size();
  {
    const double factor = std::abs(in.prepared.score_scale(place.b, place.h_k));
    const RowMatrix q = factor * head_rows(in.inputs.q, place.b, place.h, place.first_row, rows).cwiseAbs();
    const RowMatrix k = head_rows(in.inputs.k, place.b, place.h_k, place.keys.begin, width).cwiseAbs();
    block.abs_qk.noalias() = q * k.transpose();
    const RowMatrix dout = std::abs(in.prepared.v_scale(place.b, place.h_k)) *
                           head_rows(in.inputs.dout, place.b, place.h, place.first_row, rows).cwiseAbs();
    const RowMatrix v = head_rows(in.inputs.v, place.b, place.h_k, place.keys.begin, width).cwiseAbs();
    block.abs_dov.noalias() = dout * v.transpose();
  }
  block.p_error.resize(rows, width);
  block.ds_error.resize(rows, width);
  block.dx_error.resize(rows, width);
  const PairErrors errors(p, n);
  const double slope = p.alibi ? std::abs(in.prepared.alibi_slope(place.b, place.h)) : 0;
  const std::int64_t off = diagonal_offset(p, place.b);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t i = place.first_row + r;
    RowErrors row{};
    row.lse = in.forward.lse.at(place.b, place.h, i, 0);
    row.lse_error = in.lse_bound ? std::min(in.lse_bound->at(place.b, place.h, i, 0), hopeless) : 0;
    row.D = in.D.at(place.b, place.h, i, 0);
    row.D_error = in.D_bound.at(place.b, place.h, i, 0);
    const double* bias = in.prepared.bias_row(place.b, place.h, i);
    if (bias) bias += place.keys.begin;
    for (std::int64_t j = 0; j < width; ++j) {
      if (block.visible(r, j) == 0) {
        block.p_error(r, j) = block.ds_error(r, j) = 0;
        block.dx_error(r, j) = 0;
        continue;
      }
      Pair pair{};
      pair.score = block.x(r, j);
      pair.abs_qk = block.abs_qk(r, j);
      pair.added =
          (bias ? std::abs(bias[j]) : 0) + slope * static_cast<double>(std::abs(i + off - (place.keys.begin + j)));
      pair.cap = p.softcap != 0 ? block.cap(r, j) : 1;
      pair.p = block.p(r, j);
      pair.dp = block.dp(r, j);
      pair.abs_dov = block.abs_dov(r, j);
      const PairBounds bounds = errors.of(row, pair);
      block.p_error(r, j) = bounds.p;
      block.ds_error(r, j) = bounds.ds;
      block.dx_error(r, j) = bounds.dx;
    }
  }
}

}  // namespace attest
