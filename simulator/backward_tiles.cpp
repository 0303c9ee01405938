// The backward executor's steps on tiles in shared memory and registers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "attest/simulator/backward_executor.h"
#include "attest/simulator/tile_math.h"
#include "rows.h"

namespace attest {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr auto log2_e = std::numbers::log2e_v<float>;

}  // namespace

// As in the forward: without modifiers the softmax scale stands in the exponent, and its sign with the scores.
void BackwardExecutor::scores(const BackwardStep& step, Warp& warp, int w) {
  const int rows = plan_.rows_per_warp(), n = plan_.tile_n, columns = plan_.columns(BackwardTile::q);
  tile_math::multiply_transposed(row_of(tile(BackwardTile::q, step.slot), w * rows, columns), columns,
                                 tile(BackwardTile::k, 0), columns, rows, n, columns, warp.p.data(), n);
  const float scale = plan_.modifies_scores() ? 1.0f : head_of(step).score.scale;
  const float sign = scale > 0 ? 1.0f : scale < 0 ? -1.0f : 0.0f;
  if (sign != 1)
    for (float& s : warp.p) s *= sign;
}

void BackwardExecutor::modify(const BackwardStep& step, Warp& warp, int w) {
  const int n = plan_.tile_n, key0 = first_key(), seqlen_q = program_->work.seqlen_q;
  const BackwardHead& head = head_of(step);
  const int keys = std::clamp(program_->work.seqlen_k - key0, 0, n);
  for (int r = 0; r < plan_.rows_per_warp(); ++r) {
    const int row = first_row(step, w) + r;
    if (plan_.bias) {  // rows and keys past the last have none
      std::fill_n(row_.begin(), n, 0.0f);
      if (row < step.limit && row >= seqlen_q) faults_.insert("the bias is read past the last query");
      if (row < step.limit && row < seqlen_q) {
        const std::int64_t offset = row * head.score.bias_row_stride + key0;
        for (int j = 0; j < keys; ++j)
          row_[static_cast<std::size_t>(j)] = offset + keys <= head.bias_span ? head.score.bias[offset + j] : nan;
      }
    }
    behaviour_.modify(program_->work, head.score, row, key0, row_.data(), row_of(warp.p.data(), r, n),
                      row_of(warp.slopes.data(), r, n), n);
  }
}

void BackwardExecutor::mask(const BackwardStep& step, Warp& warp, int w) {
  const int n = plan_.tile_n;
  for (int r = 0; r < plan_.rows_per_warp(); ++r)
    behaviour_.mask(program_->work, first_row(step, w) + r, first_key(), row_of(warp.p.data(), r, n), n);
}

// P = 2^(scale log2(e) S - log2(e) LSE). A row that sees nothing has LSE = -inf, and every score masked. Modified
// scores may be fp32's lowest number: LSE is taken off them before log2(e) makes both infinite.
void BackwardExecutor::probabilities(const BackwardStep& step, Warp& warp, int w) {
  const int n = plan_.tile_n, rows = plan_.rows_per_warp();
  const float* lse = tile(BackwardTile::lse, step.slot) + std::ptrdiff_t{w} * rows;
  const float scale = plan_.modifies_scores() ? 1.0f : std::abs(head_of(step).score.scale);
  const float scale_log2 = scale == 0 ? 1.0f : behaviour_.scale_log2(scale);
  float sums[8] = {};
  for (int r = 0; r < rows; ++r) {
    float* s = row_of(warp.p.data(), r, n);
    const float shift = lse[r] == -infinity ? 0.0f : lse[r];
    if (plan_.modifies_scores())
      for (int j = 0; j < n; ++j) s[j] -= shift;
    tile_math::exponentials(s, n, scale_log2, plan_.modifies_scores() ? 0.0f : shift * log2_e, sums);
  }
}

void BackwardExecutor::dprobabilities(const BackwardStep& step, Warp& warp, int w) {
  const int rows = plan_.rows_per_warp(), n = plan_.tile_n, columns = plan_.columns(BackwardTile::dout);
  tile_math::multiply_transposed(row_of(tile(BackwardTile::dout, step.slot), w * rows, columns), columns,
                                 tile(BackwardTile::v, 0), columns, rows, n, columns, warp.dp.data(), n);
}

void BackwardExecutor::dscores(const BackwardStep& step, Warp& warp, int w) {
  const int n = plan_.tile_n, rows = plan_.rows_per_warp();
  const float* d = tile(BackwardTile::d, step.slot) + std::ptrdiff_t{w} * rows;
  for (int r = 0; r < rows; ++r)
    behaviour_.score_gradients(row_of(warp.p.data(), r, n), d[r], row_of(warp.dp.data(), r, n), n);
}

// dS of the products, beyond what softcap bent, rounded like P to what the matrix steps take.
void BackwardExecutor::put(const Warp& warp, int w) {
  const int n = plan_.tile_n, rows = plan_.rows_per_warp();
  float* p = row_of(tile(BackwardTile::p, 0), w * rows, n);
  float* ds = row_of(tile(BackwardTile::ds, 0), w * rows, n);
  std::copy(warp.p.begin(), warp.p.end(), p);
  std::copy(warp.dp.begin(), warp.dp.end(), ds);
  if (plan_.softcap)
    for (std::size_t i = 0; i < warp.dp.size(); ++i) ds[i] *= warp.slopes[i];
  tile_math::round(output_dtype(dtype_), p, rows * n);
  tile_math::round(output_dtype(dtype_), ds, rows * n);
}

void BackwardExecutor::put_dq(int w) {
  const int n = plan_.tile_n, rows = plan_.rows_per_warp(), columns = plan_.columns(BackwardTile::dq);
  float* dq = row_of(tile(BackwardTile::dq, 0), w * rows, columns);
  std::fill_n(dq, rows * columns, 0.0f);
  tile_math::multiply_add(row_of(tile(BackwardTile::ds, 0), w * rows, n), n, tile(BackwardTile::k, 0), columns, rows, n,
                          columns, dq, columns);
}

void BackwardExecutor::stage(const Warp& warp, int w) {
  const int keys = plan_.keys_per_warp();
  float* dk = row_of(tile(BackwardTile::dk, 0), w * keys, plan_.columns(BackwardTile::dk));
  const float scale = behaviour_.dk_scale(cta_->heads.front().score.scale);
  std::transform(warp.dk.begin(), warp.dk.end(), dk, [&](float x) { return x * scale; });
  std::copy(warp.dv.begin(), warp.dv.end(),
            row_of(tile(BackwardTile::dv, 0), w * keys, plan_.columns(BackwardTile::dv)));
}

}  // namespace attest
