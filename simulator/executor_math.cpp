// The executor's steps that compute.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "attest/simulator/executor.h"
#include "attest/simulator/tile_math.h"
#include "rows.h"

namespace attest {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr auto log2_e = std::numbers::log2e_v<float>;

}  // namespace

// Without modifiers the softmax scale stands in the exponent, and its sign with the scores.
void Executor::set_scale() {
  const float scale = plan_.modifies_scores() ? 1.0f : cta_->score.scale;
  scale_log2_ = behaviour_.scale_log2(std::abs(scale));
  sign_ = scale > 0 ? 1.0f : scale < 0 ? -1.0f : 0.0f;
  if (sign_ == 0) scale_log2_ = 1;  // -inf times 0 would be NaN
}

void Executor::clear(Warp& warp) {
  std::fill(warp.output.begin(), warp.output.end(), 0.0f);
  std::fill(warp.max.begin(), warp.max.end(), behaviour_.masked_score());
  std::fill(warp.sums.begin(), warp.sums.end(), std::array<float, 8>{});
}

void Executor::scores(const Step& step, int w) {
  Warp& warp = warps_[static_cast<std::size_t>(w)];
  warp.masked = false;
  if (warp.rows == 0) return;
  const int columns = plan_.columns(Operand::q), n = plan_.tile_n, first = behaviour_.first_summed_column();
  tile_math::multiply_transposed(row_of(slot(Operand::q, 0), w * plan_.rows_per_warp(), columns) + first, columns,
                                 slot(Operand::k, step.slot) + first, columns, warp.rows, n, columns - first,
                                 warp.scores.data(), n);
  if (sign_ != 1)
    for (int i = 0; i < warp.rows * n; ++i) warp.scores[static_cast<std::size_t>(i)] *= sign_;
  behaviour_.keep_scores(warp.scores.data(), warp.rows * n);
}

void Executor::modify(const Step& step, Warp& warp) {
  const int n = plan_.tile_n, key0 = step.tile * n;
  const ScoreNumbers& numbers = cta_->score;
  const int keys = std::clamp(program_->work.seqlen_k - key0, 0, n);
  if (plan_.bias && step.limit > program_->work.seqlen_q && warp.row0 + plan_.rows_per_warp() > program_->work.seqlen_q)
    faults_.insert("the bias is read past the last query");
  for (int r = 0; r < warp.rows; ++r) {
    if (plan_.bias) {  // keys past the last have none
      const std::int64_t offset = behaviour_.bias_offset(warp.row0 + r, numbers.bias_row_stride) + key0;
      const bool there = offset >= 0 && offset + keys <= cta_->bias_span && warp.row0 + r < step.limit;
      for (int j = 0; j < n; ++j)
        bias_[static_cast<std::size_t>(j)] = j >= keys ? 0.0f : there ? numbers.bias[offset + j] : nan;
    }
    behaviour_.modify(program_->work, numbers, warp.row0 + r, key0, bias_.data(), row_of(warp.scores.data(), r, n), n);
  }
}

void Executor::mask(const Step& step, Warp& warp) {
  const int n = plan_.tile_n;
  warp.masked = true;
  for (int r = 0; r < warp.rows; ++r)
    behaviour_.mask(program_->work, warp.row0 + r, step.tile * n, row_of(warp.scores.data(), r, n), n);
}

void Executor::softmax(Warp& warp) {
  const int n = plan_.tile_n, columns = plan_.columns(Operand::v);
  for (int r = 0; r < warp.rows; ++r) {
    const auto i = static_cast<std::size_t>(r);
    const float top = tile_math::max(row_of(warp.scores.data(), r, n), n, warp.max[i]);
    // each row for itself, so that its bits do not depend on its neighbours
    const bool rescale = !plan_.lazy_rescale || warp.max[i] == behaviour_.masked_score() ||
                         (top - warp.max[i]) * scale_log2_ > behaviour_.lazy_growth_log2();
    if (rescale && top != warp.max[i]) {
      const float factor = behaviour_.rescale_factor((warp.max[i] - top) * scale_log2_);
      warp.max[i] = top;
      for (float& sum : warp.sums[i]) sum *= factor;
      float* o = row_of(warp.output.data(), r, columns);
      for (int c = 0; c < columns; ++c) o[c] *= factor;
    }
    float* scores = row_of(warp.scores.data(), r, n);
    float shift = warp.max[i] == -infinity ? 0.0f : warp.max[i];
    if (behaviour_.subtracts_before_log2e()) {
      for (int j = 0; j < n; ++j) scores[j] -= shift;
      shift = 0;
    }
    behaviour_.exponentials(scores, n, scale_log2_, shift * scale_log2_, warp.masked, warp.sums[i].data());
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

// LSE goes through base 2, where modified scores bring their maximum as it is: it may be the lowest finite number. A
// sink joins last: what was summed is taken relative to the larger of the two.
void Executor::finish(Warp& warp) {
  const int columns = plan_.columns(Operand::o);
  const bool sink = behaviour_.takes_sink(program_->work);
  const bool natural = behaviour_.subtracts_before_log2e();
  const float unit = natural ? 1.0f : scale_log2_, to_log2 = natural ? scale_log2_ : 1.0f;
  const float output_scale = behaviour_.output_scale(cta_->output_scale);
  for (int r = 0; r < warp.rows; ++r) {
    const auto i = static_cast<std::size_t>(r);
    const auto& s = warp.sums[i];
    float sum = ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
    const float keys_sum = sum;
    float top = warp.max[i] * unit, factor = 1;
    if (sink) {
      const float sink_score = cta_->score.sink * (natural ? 1.0f : log2_e), keys = top;
      top = std::max(keys, sink_score);
      factor = keys == -infinity ? 1.0f : std::exp2((keys - top) * to_log2);
      sum = sum * factor + std::exp2((sink_score - top) * to_log2);
    }
    warp.lse[i] = sum == 0                ? behaviour_.lse_without_keys()
                  : sink && keys_sum == 0 ? cta_->score.sink
                  : natural               ? top + behaviour_.lse_of_log2(std::log2(sum))
                                          : behaviour_.lse_of_log2(top + std::log2(sum));
    const float inverse = sum == 0 ? 0.0f : factor / sum * output_scale;
    float* o = row_of(warp.output.data(), r, columns);
    for (int c = 0; c < columns; ++c) o[c] *= inverse;
  }
  if (plan_.num_splits == 1) write_lse(cta_->place, warp);
}

// LSE = m + ln sum exp(LSE_split - m); a split's weight is exp(LSE_split - LSE).
void Executor::weigh(Warp& warp) {
  const HeadPlace place = behaviour_.combine_place(cta_->place);
  std::fill(warp.output.begin(), warp.output.end(), 0.0f);
  const int rows = plan_.rows_per_warp();
  for (int r = 0; r < warp.rows; ++r) {
    const auto weight = [&](int split) -> float& {
      return warp
          .weights[static_cast<std::size_t>(split) * static_cast<std::size_t>(rows) + static_cast<std::size_t>(r)];
    };
    float largest = -infinity, sum = 0;
    for (int split = 0; split < plan_.num_splits; ++split) {
      const std::int64_t at = partial_row(place, split, warp.row0 + r);
      weight(split) = at < 0 ? nan : cta_->workspace->lse[static_cast<std::size_t>(at)];
      largest = weight(split) > largest ? weight(split) : largest;
    }
    const float shift = behaviour_.combine_shift(largest);
    for (int split = 0; split < plan_.num_splits; ++split) {
      weight(split) = std::exp2((weight(split) - shift) * log2_e);
      sum += weight(split);
    }
    warp.lse[static_cast<std::size_t>(r)] = sum == 0 ? behaviour_.lse_without_keys() : shift + std::log(sum);
    for (int split = 0; split < plan_.num_splits; ++split) weight(split) = sum == 0 ? 0.0f : weight(split) / sum;
  }
}

void Executor::add_partial(const Step& step, Warp& warp) {
  const HeadPlace place = behaviour_.combine_place(cta_->place);
  const Workspace& space = *cta_->workspace;
  const int columns = plan_.columns(Operand::o);
  const auto first = static_cast<std::size_t>(step.slot) * static_cast<std::size_t>(plan_.rows_per_warp());
  for (int r = 0; r < warp.rows; ++r) {
    const std::int64_t at = partial_row(place, step.slot, warp.row0 + r);
    const float weight = warp.weights[first + static_cast<std::size_t>(r)];
    const float* from = at < 0 ? nullptr : space.o.data() + at * space.columns;
    float* o = row_of(warp.output.data(), r, columns);
    for (int c = 0; c < std::min(columns, space.columns); ++c) o[c] += weight * (from == nullptr ? nan : from[c]);
  }
}

}  // namespace attest
