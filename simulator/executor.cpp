#include "attest/simulator/executor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attest/simulator/tile_math.h"

namespace attest {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

// Row `row` of a row-major block `width` wide.
template <class T>
T* row_of(T* block, int row, int width) {
  return block + std::ptrdiff_t{row} * width;
}

}  // namespace

Executor::Executor(const Behaviour& behaviour, Dtype dtype, float softmax_scale)
    : behaviour_(behaviour),
      plan_(behaviour.plan()),
      dtype_(dtype),
      scale_log2_(behaviour.scale_log2(std::abs(softmax_scale))),
      sign_(softmax_scale > 0   ? 1.0f
            : softmax_scale < 0 ? -1.0f
                                : 0.0f) {
  if (sign_ == 0) scale_log2_ = 1;  // -inf times 0 would be NaN
  for (const Operand x : {Operand::q, Operand::k, Operand::v}) {
    auto& slots = smem_[static_cast<std::size_t>(x)];
    slots.resize(static_cast<std::size_t>(x == Operand::q ? 1 : plan_.stages));
    for (auto& tile : slots) tile.resize(std::size_t(plan_.rows(x)) * std::size_t(plan_.columns(x)));
  }
  warps_.resize(static_cast<std::size_t>(plan_.num_warps));
  const auto rows = static_cast<std::size_t>(plan_.rows_per_warp());
  for (Warp& warp : warps_) {
    warp.scores.resize(rows * static_cast<std::size_t>(plan_.tile_n));
    warp.output.resize(rows * static_cast<std::size_t>(plan_.columns(Operand::v)));
    warp.max.resize(rows);
    warp.sums.resize(rows);
  }
  maxima_.resize(rows);
}

void Executor::run(const Program& program, const HeadView& q, const HeadView& k, const HeadView& v, const HeadView& o,
                   float* lse) {
  program_ = &program;
  view_ = {&q, &k, &v, &o};
  lse_ = lse;
  for (auto& slots : smem_)
    for (auto& tile : slots) std::fill(tile.begin(), tile.end(), nan);
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    Warp& warp = warps_[w];
    warp.row0 = program.work.q_tile * plan_.tile_m + static_cast<int>(w) * plan_.rows_per_warp();
    warp.rows = std::clamp(program.work.seqlen_q - warp.row0, 0, plan_.rows_per_warp());
    warp.next = 0;
    warp.open.clear();
    warp.groups.clear();
  }
  bool running = true;
  for (bool ascending = true; running; ascending = !ascending) {
    running = false;
    for (int i = 0; i < plan_.num_warps; ++i) running |= run_to_barrier(ascending ? i : plan_.num_warps - 1 - i);
  }
}

bool Executor::run_to_barrier(int w) {
  Warp& warp = warps_[static_cast<std::size_t>(w)];
  const auto& steps = program_->warps[static_cast<std::size_t>(w)];
  while (warp.next < steps.size()) {
    const Step& step = steps[warp.next++];
    if (step.kind == Step::Kind::barrier) return true;
    execute(step, w);
  }
  return false;
}

void Executor::execute(const Step& step, int w) {
  Warp& warp = warps_[static_cast<std::size_t>(w)];
  switch (step.kind) {
    case Step::Kind::clear:
      clear(warp);
      break;
    case Step::Kind::copy: {
      const Copy copy{step.operand, step.slot, step.row0, step.limit};
      if (plan_.copy_bytes(step.operand) < 4) return land(copy, w);  // through registers
      each_row(copy, w, [&](float* row, int) { std::fill_n(row, plan_.columns(copy.operand), nan); });
      warp.open.push_back(copy);
      break;
    }
    case Step::Kind::commit:
      warp.groups.push_back(std::move(warp.open));
      warp.open.clear();
      break;
    case Step::Kind::wait:
      while (static_cast<int>(warp.groups.size()) > step.slot) {
        for (const Copy& copy : warp.groups.front()) land(copy, w);
        warp.groups.erase(warp.groups.begin());
      }
      break;
    case Step::Kind::scores:
      scores(step, w);
      break;
    case Step::Kind::mask:
      mask(step, warp);
      break;
    case Step::Kind::softmax:
      softmax(warp);
      break;
    case Step::Kind::output:
      output(step, warp);
      break;
    case Step::Kind::finish:
      finish(warp);
      break;
    case Step::Kind::store:
      store(step, warp);
      break;
    case Step::Kind::barrier:
    case Step::Kind::warp_barrier:
    case Step::Kind::load_query:
    case Step::Kind::stage:
      break;
  }
}

// The rows of a tile that this warp copies: a pass is copy_rows() rows, of which each warp has 32 / copy_lanes().
template <class F>
void Executor::each_row(const Copy& copy, int w, F f) {
  const int pass = plan_.copy_rows(copy.operand), mine = 32 / plan_.copy_lanes(copy.operand);
  const int columns = plan_.columns(copy.operand), tile_rows = plan_.rows(copy.operand);
  float* tile = slot(copy.operand, copy.slot);
  for (int first = w * mine; first < tile_rows; first += pass)
    for (int row = first; row < std::min(first + mine, tile_rows); ++row) f(row_of(tile, row, columns), row);
}

void Executor::land(const Copy& copy, int w) {
  const HeadView& view = *view_[static_cast<std::size_t>(copy.operand)];
  const int columns = plan_.columns(copy.operand), asked = std::min(behaviour_.column_limit(copy.operand), columns);
  const int there = std::min(asked, view.columns);
  const float past_limit = behaviour_.zero_fills(copy.operand) ? 0.0f : nan;
  each_row(copy, w, [&](float* row, int r) {
    const int at = copy.row0 + r;
    if (at >= copy.limit) {
      std::fill_n(row, columns, past_limit);
      return;
    }
    const std::int64_t offset = view.offset + at * view.row_stride;
    if (at < view.rows && offset >= 0 && offset + there <= view.span)
      tile_math::load(dtype_, view.base + offset * plan_.element_bytes, there, row);
    else
      std::fill_n(row, there, nan);
    std::fill(row + there, row + asked, nan);
    std::fill(row + asked, row + columns, 0.0f);
  });
}

void Executor::clear(Warp& warp) {
  std::fill(warp.output.begin(), warp.output.end(), 0.0f);
  std::fill(warp.max.begin(), warp.max.end(), behaviour_.masked_score());
  std::fill(warp.sums.begin(), warp.sums.end(), std::array<float, 8>{});
}

void Executor::scores(const Step& step, int w) {
  Warp& warp = warps_[static_cast<std::size_t>(w)];
  if (warp.rows == 0) return;
  const int columns = plan_.columns(Operand::q), n = plan_.tile_n, first = behaviour_.first_summed_column();
  tile_math::multiply_transposed(row_of(slot(Operand::q, 0), w * plan_.rows_per_warp(), columns) + first, columns,
                                 slot(Operand::k, step.slot) + first, columns, warp.rows, n, columns - first,
                                 warp.scores.data(), n);
  if (sign_ != 1)
    for (int i = 0; i < warp.rows * n; ++i) warp.scores[static_cast<std::size_t>(i)] *= sign_;
  behaviour_.keep_scores(warp.scores.data(), warp.rows * n);
}

void Executor::mask(const Step& step, Warp& warp) {
  const int n = plan_.tile_n;
  for (int r = 0; r < warp.rows; ++r)
    behaviour_.mask(program_->work, warp.row0 + r, step.tile * n, row_of(warp.scores.data(), r, n), n);
}

void Executor::softmax(Warp& warp) {
  const int n = plan_.tile_n, columns = plan_.columns(Operand::v);
  bool rescale = !plan_.lazy_rescale;  // one vote for all rows of the warp
  for (int r = 0; r < warp.rows; ++r) {
    const auto i = static_cast<std::size_t>(r);
    maxima_[i] = tile_math::max(row_of(warp.scores.data(), r, n), n, warp.max[i]);
    rescale |= warp.max[i] == behaviour_.masked_score() || (maxima_[i] - warp.max[i]) * scale_log2_ > 8.0f;
  }
  for (int r = 0; r < warp.rows; ++r) {
    const auto i = static_cast<std::size_t>(r);
    if (rescale && maxima_[i] != warp.max[i]) {
      const float factor = behaviour_.rescale_factor((warp.max[i] - maxima_[i]) * scale_log2_);
      warp.max[i] = maxima_[i];
      for (float& sum : warp.sums[i]) sum *= factor;
      float* o = row_of(warp.output.data(), r, columns);
      for (int c = 0; c < columns; ++c) o[c] *= factor;
    }
    const float shift = warp.max[i] == -infinity ? 0.0f : warp.max[i] * scale_log2_;
    tile_math::exponentials(row_of(warp.scores.data(), r, n), n, scale_log2_, shift, warp.sums[i].data());
  }
}

void Executor::output(const Step& step, Warp& warp) {
  if (warp.rows == 0) return;
  const int n = plan_.tile_n, columns = plan_.columns(Operand::v);
  tile_math::round(dtype_, warp.scores.data(), warp.rows * n);
  behaviour_.keep_probabilities(warp.scores.data(), warp.rows * n);
  tile_math::multiply_add(warp.scores.data(), n, slot(Operand::v, step.slot), columns, warp.rows, n, columns,
                          warp.output.data(), columns);
  behaviour_.keep_output(warp.output.data(), warp.rows * columns);
}

void Executor::finish(Warp& warp) {
  const int columns = plan_.columns(Operand::o);
  for (int r = 0; r < warp.rows; ++r) {
    const auto i = static_cast<std::size_t>(r);
    const auto& s = warp.sums[i];
    const float sum = ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
    lse_[warp.row0 + r] =
        sum == 0 ? behaviour_.lse_without_keys() : behaviour_.lse_of_log2(warp.max[i] * scale_log2_ + std::log2(sum));
    const float inverse = sum == 0 ? 0.0f : 1.0f / sum;
    float* o = row_of(warp.output.data(), r, columns);
    for (int c = 0; c < columns; ++c) o[c] *= inverse;
  }
}

void Executor::store(const Step& step, const Warp& warp) {
  const HeadView& o = *view_[static_cast<std::size_t>(Operand::o)];
  const int columns = plan_.columns(Operand::o), written = std::min(behaviour_.column_limit(Operand::o), columns);
  for (int r = 0; r < plan_.rows_per_warp() && warp.row0 + r < step.limit; ++r)
    tile_math::store(dtype_, row_of(warp.output.data(), r, columns), written,
                     o.base + (o.offset + (warp.row0 + r) * o.row_stride) * plan_.element_bytes);
}

}  // namespace attest
