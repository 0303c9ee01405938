// A plan's decisions behind one interface, so that the executor is compiled once and a planted bug costs a few lines.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "attest/plan/launch.h"
#include "attest/simulator/program.h"
#include "attest/simulator/tile_math.h"

namespace attest {

/// What a kernel of some plan does, as far as running it on the CPU asks: its programs, and the members of KernelPlan
/// that a planted bug may hide. Row functions work on `n` consecutive values.
class Behaviour {
 public:
  explicit Behaviour(const KernelPlan& plan) : plan_(plan) {}
  virtual ~Behaviour() = default;
  const KernelPlan& plan() const { return plan_; }

  virtual Program program(const Work& work) const = 0;
  virtual Program combine_program(const Work& work) const = 0;
  virtual KeyWalk walk(const Work& work) const = 0;  // the key tiles of a CTA; none where it has no rows
  virtual std::int64_t num_ctas(const GridExtents& grid) const = 0;
  virtual CtaIndex cta(const GridExtents& grid, std::int64_t index) const = 0;
  virtual bool combines_after_splits() const = 0;
  virtual bool keeps_workspace() const = 0;
  virtual ForwardArgs arguments(const ForwardArgs& args, const GridExtents& grid) const = 0;
  virtual Work work(const Work& work) const = 0;
  virtual std::int64_t offset(std::int64_t index, std::int64_t stride) const = 0;
  virtual std::int64_t first_row(const std::int32_t* cu_seqlens, std::int64_t batch) const = 0;
  virtual std::int64_t page_offset(std::int64_t page, std::int64_t stride) const = 0;
  virtual std::int64_t bias_offset(std::int64_t row, std::int64_t stride) const = 0;
  virtual std::int64_t lse_row(const HeadPlace& at) const = 0;
  virtual std::int64_t lse_stride(const HeadPlace& at) const = 0;
  virtual std::int64_t lse_offset(const HeadPlace& at, int row, std::int64_t stride) const = 0;
  virtual std::int64_t query_offset(std::int64_t row, std::int64_t row_stride, std::int64_t head_stride) const = 0;
  virtual std::int64_t partial_row(const HeadPlace& at, int split) const = 0;
  virtual HeadPlace combine_place(const HeadPlace& at) const = 0;
  virtual int kv_head(int head, int nheads, int nheads_k) const = 0;
  virtual int column_limit(Operand x) const = 0;
  virtual int copy_bytes(Operand x) const = 0;
  virtual bool guards_tile_rows() const = 0;
  virtual bool zero_fills(Operand x) const = 0;
  virtual int first_summed_column() const = 0;  // of a dot product: later than 0 if the accumulator restarts
  virtual float scale_log2(float softmax_scale) const = 0;
  virtual float score_scale(float softmax_scale, float q_descale, float k_descale) const = 0;
  virtual float output_scale(float v_descale) const = 0;
  virtual float combine_shift(float largest_lse) const = 0;
  virtual bool takes_sink(const Work& work) const = 0;
  virtual float lazy_growth_log2() const = 0;
  virtual bool subtracts_before_log2e() const = 0;
  virtual float masked_score() const = 0;
  virtual float rescale_factor(float log2_factor) const = 0;
  virtual float lse_of_log2(float log2_sum) const = 0;
  virtual float lse_without_keys() const = 0;
  /// Keys key0 to key0 + n - 1 of `row`; `bias` beside the scores.
  virtual void modify(const Work& work, const ScoreNumbers& numbers, int row, int key0, const float* bias,
                      float* scores, int n) const = 0;
  virtual void mask(const Work& work, int row, int key0, float* scores, int n) const = 0;
  /// exp2(scale x - shift), added to the sums as tile_math::exponentials does. `masked`: the tile was.
  virtual void exponentials(float* x, int n, float scale, float shift, bool masked, float* sums) const = 0;
  virtual void keep_scores(float* x, int n) const = 0;
  virtual void keep_probabilities(float* x, int n) const = 0;
  virtual void keep_output(float* x, int n) const = 0;

 private:
  KernelPlan plan_;
};

template <class Plan>
class BehaviourOf : public Behaviour {
 public:
  explicit BehaviourOf(const KernelPlan& plan) : Behaviour(plan) { static_cast<KernelPlan&>(plan_) = plan; }

  Program program(const Work& work) const override { return record(plan_, work); }
  Program combine_program(const Work& work) const override { return record_combine(plan_, work); }
  KeyWalk walk(const Work& work) const override {
    return plan_.has_rows(work) ? plan_.walk(plan_.range(work), work) : KeyWalk{};
  }
  std::int64_t num_ctas(const GridExtents& grid) const override { return plan_.num_ctas(grid); }
  CtaIndex cta(const GridExtents& grid, std::int64_t index) const override { return plan_.cta(grid, index); }
  bool combines_after_splits() const override { return plan_.combines_after_splits(); }
  bool keeps_workspace() const override { return plan_.keeps_workspace(); }
  ForwardArgs arguments(const ForwardArgs& args, const GridExtents& grid) const override {
    return plan_.arguments(args, grid);
  }
  Work work(const Work& work) const override { return plan_.work(work); }
  std::int64_t offset(std::int64_t index, std::int64_t stride) const override { return plan_.offset(index, stride); }
  std::int64_t first_row(const std::int32_t* cu_seqlens, std::int64_t batch) const override {
    return plan_.first_row(cu_seqlens, batch);
  }
  std::int64_t page_offset(std::int64_t page, std::int64_t stride) const override {
    return plan_.page_offset(page, stride);
  }
  std::int64_t bias_offset(std::int64_t row, std::int64_t stride) const override {
    return plan_.bias_offset(row, stride);
  }
  std::int64_t lse_stride(const HeadPlace& at) const override { return plan_.lse_stride(at); }
  std::int64_t lse_offset(const HeadPlace& at, int row, std::int64_t stride) const override {
    return plan_.lse_offset(at, row, stride);
  }
  std::int64_t query_offset(std::int64_t row, std::int64_t row_stride, std::int64_t head_stride) const override {
    // the offset() that a planted bug may hide
    return plan_.packed_heads == 1 ? plan_.offset(row, row_stride) : plan_.query_offset(row, row_stride, head_stride);
  }
  std::int64_t lse_row(const HeadPlace& at) const override { return plan_.lse_row(at); }
  std::int64_t partial_row(const HeadPlace& at, int split) const override { return plan_.partial_row(at, split); }
  HeadPlace combine_place(const HeadPlace& at) const override { return plan_.combine_place(at); }
  int kv_head(int head, int nheads, int nheads_k) const override { return plan_.kv_head(head, nheads, nheads_k); }
  int column_limit(Operand x) const override { return plan_.column_limit(x); }
  int copy_bytes(Operand x) const override { return plan_.copy_bytes(x); }
  bool guards_tile_rows() const override { return plan_.guards_tile_rows(); }
  bool zero_fills(Operand x) const override { return plan_.zero_fills(x); }
  int first_summed_column() const override {
    int first = 0;
    for (int step = 0; step < plan_.columns(Operand::q) / plan_.k_step(); ++step)
      if (plan_.restarts_accumulator(step)) first = step * plan_.k_step();
    return first;
  }
  float scale_log2(float softmax_scale) const override { return plan_.scale_log2(softmax_scale); }
  float score_scale(float softmax_scale, float q_descale, float k_descale) const override {
    return plan_.score_scale(softmax_scale, q_descale, k_descale);
  }
  float output_scale(float v_descale) const override { return plan_.output_scale(v_descale); }
  float combine_shift(float largest_lse) const override { return plan_.combine_shift(largest_lse); }
  bool takes_sink(const Work& work) const override { return plan_.takes_sink(work); }
  float lazy_growth_log2() const override { return plan_.lazy_growth_log2(); }
  bool subtracts_before_log2e() const override { return plan_.subtracts_before_log2e(); }
  float masked_score() const override { return plan_.masked_score(); }
  float rescale_factor(float log2_factor) const override { return plan_.rescale_factor(log2_factor); }
  float lse_of_log2(float log2_sum) const override { return plan_.lse_of_log2(log2_sum); }
  float lse_without_keys() const override { return plan_.lse_without_keys(); }
  void modify(const Work& work, const ScoreNumbers& numbers, int row, int key0, const float* bias, float* scores,
              int n) const override {
    const auto tanh = [](float x) { return std::tanh(x); };
    for (int j = 0; j < n; ++j)
      scores[j] = plan_.score(numbers, scores[j], plan_.distance(work, row, key0 + j), bias[j], tanh);
  }
  void mask(const Work& work, int row, int key0, float* scores, int n) const override {
    const RowMask<Plan> seen(plan_, work, row);
    for (int j = 0; j < n; ++j)
      if (!seen.sees(key0 + j)) scores[j] = plan_.masked_score();
  }
  void exponentials(float* x, int n, float scale, float shift, bool masked, float* sums) const override {
    std::array<float, 8> before{};
    std::copy_n(sums, 8, before.begin());
    tile_math::exponentials(x, n, scale, shift, sums);
    if (plan_.keeps_exponentials()) return;
    std::copy_n(before.begin(), 8, sums);
    for (int j = 0; j < n; ++j) sums[j % 8] += x[j] = plan_.keep_exponential(x[j], masked);
  }
  void keep_scores(float* x, int n) const override {
    for (int i = 0; i < n; ++i) x[i] = plan_.keep_score(x[i]);
  }
  void keep_probabilities(float* x, int n) const override {
    for (int i = 0; i < n; ++i) x[i] = plan_.keep_probability(x[i]);
  }
  void keep_output(float* x, int n) const override {
    for (int i = 0; i < n; ++i) x[i] = plan_.keep_output(x[i]);
  }

 private:
  Plan plan_;
};

}  // namespace attest
