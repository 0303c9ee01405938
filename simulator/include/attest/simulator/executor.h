// Runs a recorded program on the CPU, tile by tile, in the kernel's own precisions.
//
// Copies land as late as the program allows: at the wait. Until then the slot they go to is NaN, as is every part of
// shared memory that nothing was written to. Warps run one after another between barriers, in an order that turns at
// every barrier, so that a missing one shows in the values too; hazards.h finds it for certain.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "attest/plan/args.h"
#include "attest/plan/launch.h"
#include "attest/simulator/program.h"
#include "attest/simulator/tile_math.h"

namespace attest {

/// One tensor of a case as one head of one batch entry sees it. Rows outside [0, rows) and columns past `columns` are
/// outside the logical domain and read as NaN, whatever a wrong kernel asks for.
struct HeadView {
  std::uint8_t* base = nullptr;  // the tensor's first element
  std::int64_t offset = 0;       // of this head's first row, in elements
  std::int64_t row_stride = 0;
  std::int64_t span = 0;  // elements from the tensor's first to its last
  int rows = 0, columns = 0;
};

template <class Plan>
class Executor {
 public:
  Executor(const Plan& plan, Dtype dtype, float softmax_scale)
      : plan_(plan),
        dtype_(dtype),
        scale_log2_(plan.scale_log2(std::abs(softmax_scale))),
        sign_(softmax_scale > 0   ? 1.0f
              : softmax_scale < 0 ? -1.0f
                                  : 0.0f) {
    if (sign_ == 0) scale_log2_ = 1;  // all scores 0; -inf times 0 would be NaN
    for (const Operand x : {Operand::q, Operand::k, Operand::v}) {
      auto& slots = smem_[static_cast<int>(x)];
      slots.resize(static_cast<std::size_t>(x == Operand::q ? 1 : plan.stages));
      for (auto& slot : slots) slot.resize(static_cast<std::size_t>(plan.rows(x)) * plan.columns(x));
    }
    warps_.resize(static_cast<std::size_t>(plan.num_warps));
    for (auto& warp : warps_) {
      warp.scores.resize(static_cast<std::size_t>(plan.rows_per_warp()) * plan.tile_n);
      warp.output.resize(static_cast<std::size_t>(plan.rows_per_warp()) * plan.columns(Operand::v));
      warp.max.resize(static_cast<std::size_t>(plan.rows_per_warp()));
      warp.sums.resize(static_cast<std::size_t>(plan.rows_per_warp()));
    }
  }

  /// One CTA. `lse` is this head's row of LSE.
  void run(const Program& program, const HeadView& q, const HeadView& k, const HeadView& v, const HeadView& o,
           float* lse) {
    program_ = &program;
    view_ = {&q, &k, &v, &o};
    lse_ = lse;
    for (auto& slots : smem_)
      for (auto& slot : slots) std::fill(slot.begin(), slot.end(), nan);
    for (auto& warp : warps_) {
      warp.next = 0;
      warp.open.clear();
      warp.groups.clear();
    }
    for (bool forward_order = true, running = true; running; forward_order = !forward_order) {
      running = false;
      for (int i = 0; i < plan_.num_warps; ++i) running |= run_to_barrier(forward_order ? i : plan_.num_warps - 1 - i);
    }
  }

 private:
  static constexpr float nan = std::numeric_limits<float>::quiet_NaN();

  struct Copy {
    Operand operand;
    int slot, row0, limit;
  };
  struct Warp {
    std::size_t next = 0;
    std::vector<float> scores, output, max;
    std::vector<std::array<float, 8>> sums;
    std::vector<Copy> open;
    std::vector<std::vector<Copy>> groups;  // committed and not yet waited for, oldest first
  };

  bool run_to_barrier(int w) {
    Warp& warp = warps_[static_cast<std::size_t>(w)];
    const auto& steps = program_->warps[static_cast<std::size_t>(w)];
    while (warp.next < steps.size()) {
      const Step& step = steps[warp.next++];
      if (step.kind == Step::Kind::barrier) return true;
      execute(step, w, warp);
    }
    return false;
  }

  int valid_rows(int w) const {  // of this warp's rows, how many are queries
    const int row0 = program_->work.q_tile * plan_.tile_m + w * plan_.rows_per_warp();
    return std::clamp(program_->work.seqlen_q - row0, 0, plan_.rows_per_warp());
  }

  void execute(const Step& step, int w, Warp& warp) {
    switch (step.kind) {
      case Step::Kind::clear:
        std::fill(warp.output.begin(), warp.output.end(), 0.0f);
        std::fill(warp.max.begin(), warp.max.end(), plan_.masked_score());
        std::fill(warp.sums.begin(), warp.sums.end(), std::array<float, 8>{});
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
        scores(step, w, warp);
        break;
      case Step::Kind::mask:
        mask(step, w, warp);
        break;
      case Step::Kind::softmax:
        softmax(w, warp);
        break;
      case Step::Kind::output:
        output(step, w, warp);
        break;
      case Step::Kind::finish:
        finish(w, warp);
        break;
      case Step::Kind::store:
        store(step, w, warp);
        break;
      case Step::Kind::barrier:
      case Step::Kind::warp_barrier:
      case Step::Kind::load_query:
      case Step::Kind::stage:
        break;
    }
  }

  /// The rows of a tile that this warp copies: a pass is copy_rows() rows, of which each warp has 32 / copy_lanes().
  template <class F>
  void each_row(const Copy& copy, int w, F f) {
    const int pass = plan_.copy_rows(copy.operand), mine = 32 / plan_.copy_lanes(copy.operand);
    const int columns = plan_.columns(copy.operand), tile_rows = plan_.rows(copy.operand);
    float* tile = slot(copy.operand, copy.slot);
    for (int first = w * mine; first < tile_rows; first += pass)
      for (int row = first; row < std::min(first + mine, tile_rows); ++row)
        f(tile + static_cast<std::size_t>(row) * columns, row);
  }

  void land(const Copy& copy, int w) {
    const HeadView& view = *view_[static_cast<std::size_t>(copy.operand)];
    const int columns = plan_.columns(copy.operand), asked = std::min(plan_.column_limit(copy.operand), columns);
    const int there = std::min(asked, view.columns);
    each_row(copy, w, [&](float* row, int r) {
      const int at = copy.row0 + r;
      if (at >= copy.limit) {
        std::fill_n(row, columns, plan_.zero_fills(copy.operand) ? 0.0f : nan);
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

  float* slot(Operand x, int index) { return smem_[static_cast<int>(x)][static_cast<std::size_t>(index)].data(); }

  void scores(const Step& step, int w, Warp& warp) {
    const int rows = valid_rows(w), columns = plan_.columns(Operand::q), n = plan_.tile_n;
    if (rows == 0) return;
    int first = 0;  // columns before the last restart are lost
    for (int k = 0; k < columns / plan_.k_step(); ++k)
      if (plan_.restarts_accumulator(k)) first = k * plan_.k_step();
    tile_math::multiply_transposed(
        slot(Operand::q, 0) + static_cast<std::size_t>(w * plan_.rows_per_warp()) * columns + first, columns,
        slot(Operand::k, step.slot) + first, columns, rows, n, columns - first, warp.scores.data(), n);
    for (std::size_t i = 0; i < std::size_t(rows) * std::size_t(n); ++i)
      warp.scores[i] = plan_.keep_score(sign_ == 1.0f ? warp.scores[i] : warp.scores[i] * sign_);
  }

  void mask(const Step& step, int w, Warp& warp) {
    const int rows = valid_rows(w), n = plan_.tile_n, key0 = step.tile * n;
    const int row0 = program_->work.q_tile * plan_.tile_m + w * plan_.rows_per_warp();
    for (int r = 0; r < rows; ++r)
      for (int j = 0; j < n; ++j)
        if (!plan_.visible(program_->work, row0 + r, key0 + j))
          warp.scores[std::size_t(r) * std::size_t(n) + std::size_t(j)] = plan_.masked_score();
  }

  void softmax(int w, Warp& warp) {
    const int rows = valid_rows(w), n = plan_.tile_n, columns = plan_.columns(Operand::v);
    thread_local std::vector<float> maxima;
    maxima.resize(static_cast<std::size_t>(rows));
    bool rescale = !plan_.lazy_rescale;
    for (int r = 0; r < rows; ++r) {
      const auto i = static_cast<std::size_t>(r);
      maxima[i] = tile_math::max(&warp.scores[i * static_cast<std::size_t>(n)], n, warp.max[i]);
      rescale |= warp.max[i] == plan_.masked_score() || (maxima[i] - warp.max[i]) * scale_log2_ > 8.0f;
    }
    for (int r = 0; r < rows; ++r) {
      const auto i = static_cast<std::size_t>(r);
      if (rescale && maxima[i] != warp.max[i]) {
        const float factor = plan_.rescale_factor((warp.max[i] - maxima[i]) * scale_log2_);
        warp.max[i] = maxima[i];
        for (float& sum : warp.sums[i]) sum *= factor;
        float* o = &warp.output[i * static_cast<std::size_t>(columns)];
        for (int c = 0; c < columns; ++c) o[c] *= factor;
      }
      const float shift = warp.max[i] == -std::numeric_limits<float>::infinity() ? 0.0f : warp.max[i] * scale_log2_;
      tile_math::exponentials(&warp.scores[i * static_cast<std::size_t>(n)], n, scale_log2_, shift,
                              warp.sums[i].data());
    }
  }

  void output(const Step& step, int w, Warp& warp) {
    const int rows = valid_rows(w), n = plan_.tile_n, columns = plan_.columns(Operand::v);
    if (rows == 0) return;
    tile_math::round(dtype_, warp.scores.data(), rows * n);
    for (std::size_t i = 0; i < std::size_t(rows) * std::size_t(n); ++i)
      warp.scores[i] = plan_.keep_probability(warp.scores[i]);
    tile_math::multiply_add(warp.scores.data(), n, slot(Operand::v, step.slot), columns, rows, n, columns,
                            warp.output.data(), columns);
    for (std::size_t i = 0; i < std::size_t(rows) * std::size_t(columns); ++i)
      warp.output[i] = plan_.keep_output(warp.output[i]);
  }

  void finish(int w, Warp& warp) {
    const int rows = valid_rows(w), columns = plan_.columns(Operand::o);
    const int row0 = program_->work.q_tile * plan_.tile_m + w * plan_.rows_per_warp();
    for (int r = 0; r < rows; ++r) {
      const auto i = static_cast<std::size_t>(r);
      const auto& s = warp.sums[i];
      const float sum = ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
      lse_[row0 + r] =
          sum == 0 ? plan_.lse_without_keys() : plan_.lse_of_log2(warp.max[i] * scale_log2_ + std::log2(sum));
      const float inverse = sum == 0 ? 0.0f : 1.0f / sum;
      float* o = &warp.output[i * static_cast<std::size_t>(columns)];
      for (int c = 0; c < columns; ++c) o[c] *= inverse;
    }
  }

  void store(const Step& step, int w, Warp& warp) {
    const HeadView& o = *view_[static_cast<std::size_t>(Operand::o)];
    const int columns = plan_.columns(Operand::o), written = std::min(plan_.column_limit(Operand::o), columns);
    const int row0 = program_->work.q_tile * plan_.tile_m + w * plan_.rows_per_warp();
    for (int r = 0; r < plan_.rows_per_warp() && row0 + r < step.limit; ++r)
      tile_math::store(dtype_, &warp.output[static_cast<std::size_t>(r) * static_cast<std::size_t>(columns)], written,
                       o.base + (o.offset + (row0 + r) * o.row_stride) * plan_.element_bytes);
  }

  const Plan& plan_;
  Dtype dtype_;
  float scale_log2_, sign_;
  std::vector<std::vector<float>> smem_[3];
  std::vector<Warp> warps_;
  const Program* program_ = nullptr;
  std::array<const HeadView*, 4> view_{};
  float* lse_ = nullptr;
};

}  // namespace attest
