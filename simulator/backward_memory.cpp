// The backward executor's accesses to global memory.
#include <fmt/format.h>

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
constexpr auto log2_e = std::numbers::log2e_v<float>;

bool holds_statistics(BackwardTile x) { return x == BackwardTile::lse || x == BackwardTile::d; }

// As an atomic addition that flushes subnormals.
void add_flushing(float& to, float x) {
  const float sum = to + x;
  to = std::abs(sum) < std::numeric_limits<float>::min() ? 0.0f : sum;
}

}  // namespace

// The rows of a tile that this warp copies or stores: every num_warps-th.
template <class F>
void BackwardExecutor::each_row(BackwardTile x, int w, F f) {
  for (int r = w; r < plan_.rows(x); r += plan_.num_warps) f(r);
}

// Null, and a fault, where the row does not exist.
const std::uint8_t* BackwardExecutor::row_at(const HeadView& view, BackwardTile x, std::int64_t row, int columns,
                                             int bytes) {
  std::int64_t offset = -1;
  if (view.pages == nullptr)
    offset = row < view.rows ? view.offset + behaviour_.offset(x, row, view.row_stride) : -1;
  else if (row / view.page_size < view.num_pages)
    offset = view.offset + behaviour_.offset(x, view.pages[row / view.page_size], view.page_stride) +
             behaviour_.offset(x, row % view.page_size, view.row_stride);
  if (offset >= 0 && offset + columns <= view.span) return view.base + offset * bytes;
  faults_.insert(fmt::format("{} is accessed outside its memory", to_string(x)));
  return nullptr;
}

// Columns past the asked ones are left as they are; those that do not exist are NaN.
bool BackwardExecutor::load(const HeadView& view, BackwardTile x, Dtype dtype, std::int64_t row, int columns,
                            float* to) {
  const int there = std::min(columns, view.columns);
  const std::uint8_t* from = row_at(view, x, row, there, bytes_of(dtype));
  if (from == nullptr)
    std::fill_n(to, there, nan);
  else
    tile_math::load(dtype, from, there, to);
  std::fill(to + there, to + columns, nan);
  return from != nullptr;
}

void BackwardExecutor::store(const HeadView& view, BackwardTile x, std::int64_t row, const float* from) {
  const Dtype dtype = output_dtype(dtype_);
  const int written = std::min(behaviour_.column_limit(x), plan_.columns(x));
  if (const std::uint8_t* to = row_at(view, x, row, std::min(written, view.columns), bytes_of(dtype)))
    tile_math::store(dtype, from, written, const_cast<std::uint8_t*>(to));
}

void BackwardExecutor::copy_poison(const BackwardStep& step, int w) {
  const int columns = plan_.columns(step.operand);
  each_row(step.operand, w,
           [&](int r) { std::fill_n(row_of(tile(step.operand, step.slot), r, columns), columns, nan); });
}

float BackwardExecutor::statistic(BackwardTile x, const BackwardHead& head, std::int64_t row) {
  const std::int64_t at = behaviour_.lse_row(head.place) + row;
  if (at >= 0 && at < cta_->lse_span)
    return x == BackwardTile::lse ? cta_->lse[at] : cta_->workspace->d[static_cast<std::size_t>(at)];
  faults_.insert(fmt::format("{} is accessed outside its memory", to_string(x)));
  return nan;
}

void BackwardExecutor::land(const BackwardStep& step, int w) {
  const BackwardTile x = step.operand;
  const int columns = plan_.columns(x);
  float* to = tile(x, step.slot);
  const BackwardHead& head = head_of(step);
  if (holds_statistics(x)) {
    const float past = x == BackwardTile::lse ? std::numeric_limits<float>::infinity() : 0.0f;
    each_row(x, w, [&](int r) {
      const int row = step.row0 + r, instead = behaviour_.row_past_limit(x);
      to[r] = row < step.limit ? statistic(x, head, row) : instead >= 0 ? statistic(x, head, instead) : past;
    });
    return;
  }
  const HeadView& view = x == BackwardTile::k   ? cta_->k
                         : x == BackwardTile::v ? cta_->v
                         : x == BackwardTile::q ? head.q
                                                : head.dout;
  const Dtype dtype = x == BackwardTile::dout ? output_dtype(dtype_) : dtype_;
  const int asked = std::min(behaviour_.column_limit(x), columns);
  each_row(x, w, [&](int r) {
    float* row = row_of(to, r, columns);
    std::fill_n(row, columns, 0.0f);
    if (step.row0 + r < step.limit) load(view, x, dtype, step.row0 + r, asked, row);
  });
}

float* BackwardExecutor::accumulator(const BackwardHead& head, std::int64_t row) {
  BackwardWorkspace& space = *cta_->workspace;
  const HeadPlace& at = head.place;
  const std::int64_t index = (at.batch * at.nheads + at.head) * at.seqlen_q + row;
  const std::int64_t offset = behaviour_.accumulator_offset(index, space.columns);
  if (offset >= 0 && offset + space.columns <= static_cast<std::int64_t>(space.dq.size()))
    return space.dq.data() + offset;
  faults_.insert("dQ's accumulator is accessed outside its memory");
  return nullptr;
}

void BackwardExecutor::add_dq(const BackwardStep& step, int w) {
  const int columns = plan_.columns(BackwardTile::dq);
  each_row(BackwardTile::dq, w, [&](int r) {
    const int row = step.tile * plan_.tile_m + r;
    float* to = row < step.limit ? accumulator(head_of(step), row) : nullptr;
    if (to == nullptr) return;
    const float* from = row_of(tile(BackwardTile::dq, 0), r, columns);
    for (int c = 0; c < cta_->workspace->columns; ++c) to[c] += from[c];
  });
}

// dS by the bias' strides, which are 0 where it is shared.
void BackwardExecutor::add_dbias(const BackwardStep& step, const Warp& warp, int w) {
  const int n = plan_.tile_n, key0 = first_key();
  const BackwardHead& head = head_of(step);
  const int keys = std::clamp(program_->work.seqlen_k - key0, 0, n);
  for (int r = 0; r < plan_.rows_per_warp(); ++r) {
    const int row = first_row(step, w) + r;
    const bool exists = row < step.limit;
    if (!exists && !behaviour_.adds_past_rows()) continue;
    float* to = head.dbias + (exists ? row : -1) * head.score.bias_row_stride + key0;
    if (exists && row * head.score.bias_row_stride + key0 + keys > head.bias_span) {
      faults_.insert("dbias is accessed outside its memory");
      continue;
    }
    const float* from = row_of(warp.dp.data(), r, n);
    for (int j = 0; j < keys; ++j) add_flushing(to[j], exists ? from[j] : 0.0f);
  }
}

void BackwardExecutor::store_tile(const BackwardStep& step, int w) {
  const int columns = plan_.columns(step.operand);
  const HeadView& view = step.operand == BackwardTile::dk ? cta_->dk : cta_->dv;
  each_row(step.operand, w, [&](int r) {
    const int row = first_key() + r;
    if (row < step.limit) store(view, step.operand, row, row_of(tile(step.operand, 0), r, columns));
  });
}

// ---- before and after

void BackwardExecutor::row_products(const BackwardStep& step, int w) {
  const BackwardHead& head = cta_->heads.front();
  const int columns = plan_.headdim_v, first = program_->work.q_tile * plan_.tile_m;
  BackwardWorkspace& space = *cta_->workspace;
  each_row(BackwardTile::dout, w, [&](int r) {
    const int row = first + r;
    if (row >= step.limit) return;
    load(head.dout, BackwardTile::dout, output_dtype(dtype_), row, columns, row_.data());
    load(head.o, BackwardTile::o, output_dtype(dtype_), row, columns, other_row_.data());
    float sum = 0;
    for (int c = 0; c < columns; ++c)
      sum += behaviour_.keep_row_product(row_[static_cast<std::size_t>(c)] * other_row_[static_cast<std::size_t>(c)]);
    const std::int64_t at = behaviour_.lse_row(head.place) + row;
    if (at >= 0 && at < cta_->lse_span)
      space.d[static_cast<std::size_t>(at)] = sum;
    else
      faults_.insert("D is accessed outside its memory");
    if (float* dq = accumulator(head, row)) std::fill_n(dq, space.columns, 0.0f);
  });
}

// -sum exp(sink - LSE) D over this warp's rows.
void BackwardExecutor::sink_gradient(const BackwardStep& step, int w) {
  const BackwardHead& head = cta_->heads.front();
  float sum = 0;
  bool past = false;
  each_row(BackwardTile::d, w, [&](int r) {
    const int row = program_->work.q_tile * plan_.tile_m + r;
    past |= row >= step.limit;
    if (row >= step.limit) return;
    const float lse = statistic(BackwardTile::lse, head, row), d = statistic(BackwardTile::d, head, row);
    sum -= std::exp2((head.score.sink - lse) * log2_e) * d;
  });
  add_flushing(cta_->dsink[head.head], sum);
  if (past && behaviour_.adds_past_rows()) add_flushing(cta_->dsink[-1], 0.0f);
}

void BackwardExecutor::convert(const BackwardStep& step, int w) {
  const BackwardHead& head = cta_->heads.front();
  const float scale = behaviour_.dq_scale(head.score.scale);
  each_row(BackwardTile::dq, w, [&](int r) {
    const int row = program_->work.q_tile * plan_.tile_m + r;
    if (row >= step.limit) return;
    const float* from = accumulator(head, row);
    for (int c = 0; c < plan_.headdim; ++c) row_[static_cast<std::size_t>(c)] = from == nullptr ? nan : from[c] * scale;
    store(head.dq, BackwardTile::dq, row, row_.data());
  });
}

}  // namespace attest
