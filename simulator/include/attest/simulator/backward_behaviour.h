// A backward plan's decisions behind one interface, so that the executor is compiled once and a planted bug costs a few
// lines.
#pragma once
#include <cmath>
#include <cstdlib>
#include <memory>

#include "attest/plan/launch.h"
#include "attest/simulator/backward_program.h"

namespace attest {

/// What a backward of some plan does, as far as running it on the CPU asks. Row functions work on `n` consecutive
/// values.
class BackwardBehaviour {
 public:
  explicit BackwardBehaviour(const BackwardPlan& plan) : plan_(plan) {}
  virtual ~BackwardBehaviour() = default;
  const BackwardPlan& plan() const { return plan_; }

  virtual BackwardProgram preprocess_program(const BackwardWork& work) const = 0;
  virtual BackwardProgram program(const BackwardWork& work) const = 0;
  virtual BackwardProgram postprocess_program(const BackwardWork& work) const = 0;
  virtual BackwardArgs arguments(const BackwardArgs& args) const = 0;
  virtual BackwardWork work(const BackwardWork& work) const = 0;
  virtual std::int64_t offset(BackwardTile x, std::int64_t index, std::int64_t stride) const = 0;
  virtual std::int64_t accumulator_offset(std::int64_t row, std::int64_t columns) const = 0;
  virtual std::int64_t lse_row(const HeadPlace& at) const = 0;
  virtual int kv_head(int head, int nheads, int nheads_k) const = 0;
  virtual int column_limit(BackwardTile x) const = 0;
  virtual bool waits_for_preprocess() const = 0;
  virtual bool adds_in_order() const = 0;
  virtual bool adds_past_rows() const = 0;
  virtual float scale_log2(float softmax_scale) const = 0;
  virtual float score_scale(float softmax_scale) const = 0;
  virtual float dq_scale(float scale) const = 0;
  virtual float dk_scale(float scale) const = 0;
  virtual int row_past_limit(BackwardTile x) const = 0;
  virtual float masked_score() const = 0;
  virtual float keep_row_product(float x) const = 0;
  /// Keys key0 to key0 + n - 1 of `row`: scores from products, and the slope of each.
  virtual void modify(const Work& work, const ScoreNumbers& numbers, int row, int key0, const float* bias,
                      float* scores, float* slopes, int n) const = 0;
  virtual void mask(const Work& work, int row, int key0, float* scores, int n) const = 0;
  virtual void score_gradients(const float* p, float d, float* dp, int n) const = 0;  // dP becomes dS

 private:
  BackwardPlan plan_;
};

template <class Plan>
class BackwardBehaviourOf final : public BackwardBehaviour {
 public:
  explicit BackwardBehaviourOf(const BackwardPlan& plan) : BackwardBehaviour(plan) {
    static_cast<BackwardPlan&>(plan_) = plan;
  }

  BackwardProgram preprocess_program(const BackwardWork& work) const override {
    return record_backward(plan_, work, [](const auto& p, const auto& w, auto& ops) { preprocess(p, w, ops); });
  }
  BackwardProgram program(const BackwardWork& work) const override {
    return record_backward(plan_, work, [](const auto& p, const auto& w, auto& ops) { backward(p, w, ops); });
  }
  BackwardProgram postprocess_program(const BackwardWork& work) const override {
    return record_backward(plan_, work, [](const auto& p, const auto& w, auto& ops) { postprocess(p, w, ops); });
  }
  BackwardArgs arguments(const BackwardArgs& args) const override { return plan_.arguments(args); }
  BackwardWork work(const BackwardWork& work) const override { return plan_.work(work); }
  std::int64_t offset(BackwardTile x, std::int64_t index, std::int64_t stride) const override {
    return plan_.offset(x, index, stride);
  }
  std::int64_t accumulator_offset(std::int64_t row, std::int64_t columns) const override {
    return plan_.accumulator_offset(row, columns);
  }
  std::int64_t lse_row(const HeadPlace& at) const override { return plan_.lse_row(at); }
  int kv_head(int head, int nheads, int nheads_k) const override { return plan_.kv_head(head, nheads, nheads_k); }
  int column_limit(BackwardTile x) const override { return plan_.column_limit(x); }
  bool waits_for_preprocess() const override { return plan_.waits_for_preprocess(); }
  bool adds_in_order() const override { return plan_.adds_in_order(); }
  bool adds_past_rows() const override { return plan_.adds_past_rows(); }
  float scale_log2(float softmax_scale) const override { return plan_.scale_log2(softmax_scale); }
  float score_scale(float softmax_scale) const override { return plan_.score_scale(softmax_scale, 1, 1); }
  float dq_scale(float scale) const override { return plan_.dq_scale(scale); }
  float dk_scale(float scale) const override { return plan_.dk_scale(scale); }
  int row_past_limit(BackwardTile x) const override { return plan_.row_past_limit(x); }
  float masked_score() const override { return plan_.masked_score(); }
  float keep_row_product(float x) const override { return plan_.keep_row_product(x); }
  void modify(const Work& work, const ScoreNumbers& numbers, int row, int key0, const float* bias, float* scores,
              float* slopes, int n) const override {
    const auto tanh = [](float x) { return std::tanh(x); };
    for (int j = 0; j < n; ++j) {
      slopes[j] = plan_.softcap ? plan_.softcap_slope(numbers, scores[j], tanh) : 1.0f;
      scores[j] = plan_.score(numbers, scores[j], std::abs(row + work.diagonal - (key0 + j)), bias[j], tanh);
    }
  }
  void mask(const Work& work, int row, int key0, float* scores, int n) const override {
    const RowMask<Plan> seen(plan_, work, row);
    for (int j = 0; j < n; ++j)
      if (!seen.sees(key0 + j)) scores[j] = plan_.masked_score();
  }
  void score_gradients(const float* p, float d, float* dp, int n) const override {
    for (int j = 0; j < n; ++j) dp[j] = plan_.score_gradient(p[j], dp[j], d);
  }

 private:
  Plan plan_;
};

}  // namespace attest
