#include "attest/fuzz/trial.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attest/reference/attends.h"
#include "attest/reference/backward.h"

namespace attest {
namespace {

ForwardRun run_kernel(ForwardBuffers& buffers, Kernel& kernel, const Case& c, const Inputs& inputs, bool gradients) {
  return gradients ? buffers.run_backward(kernel, c, inputs) : buffers.run(kernel, c, inputs);
}

// A kernel that does not isolate values has NaN and Inf in V only at keys that all rows of their sequence see.
void keep_values_to_their_rows(const Problem& p, Tensor& v) {
  const std::int64_t row = p.nheads_k * p.headdim_v;
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t j = 0; j < p.seqlen_k; ++j) {
      const auto first = v.values.begin() + v.index(b, j, 0, 0), last = first + row;
      if (std::all_of(first, last, [](double x) { return std::isfinite(x); })) continue;
      bool seen_by_all = true;
      for (std::int64_t i = 0; i < queries_of(p, b); ++i) seen_by_all &= attends(p, b, i, j);
      if (!seen_by_all)
        std::replace_if(
            first, last, [](double x) { return !std::isfinite(x); }, 1.0);
    }
}

}  // namespace

std::vector<std::int64_t> visible_keys(const Problem& p) {
  std::vector<std::int64_t> visible(static_cast<std::size_t>(p.batch * p.seqlen_q));
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t i = 0; i < queries_of(p, b); ++i) {
      std::int64_t& count = visible[static_cast<std::size_t>(b * p.seqlen_q + i)];
      for (std::int64_t j = 0; j < p.seqlen_k; ++j) count += attends(p, b, i, j);
    }
  return visible;
}

const Inputs& Trial::inputs() {
  if (inputs_) return *inputs_;
  inputs_ = make_inputs(case_);
  if (case_.inputs == Distribution::non_finite && !kernel_.capability().isolates_values)
    keep_values_to_their_rows(case_.problem, inputs_->v);
  return *inputs_;
}

const Truth& Trial::truth() {
  if (truth_) return *truth_;
  truth_ = forward_truth_(case_.problem, inputs(), kernel_.numerics(case_), case_.inputs == Distribution::normal);
  if (has_gradients()) {
    const Outputs& outputs = run().outputs;
    const Forward handed{outputs.o, outputs.lse.value_or(truth_->forward.lse)};
    add_gradients(case_.problem, inputs(), *truth_, outputs.lse ? &handed : nullptr);
  }
  return *truth_;
}

const ForwardRun& Trial::run() {
  if (!run_) {
    run_ = run_kernel(buffers_, kernel_, case_, inputs(), has_gradients());
    normalise_empty_rows(case_.problem, run_->outputs);
  }
  return *run_;
}

ForwardRun Trial::run(const Case& variation, const Inputs& inputs, bool gradients) {
  ForwardRun run = run_kernel(buffers_, kernel_, variation, inputs, gradients);
  normalise_empty_rows(variation.problem, run.outputs);
  hazards_.insert(hazards_.end(), run.report.hazards.begin(), run.report.hazards.end());
  return run;
}

Truth Trial::truth_of(const Case& variation, const Inputs& inputs, bool gradients) {
  Truth truth = forward_truth_(variation.problem, inputs, kernel_.numerics(variation), false);
  if (gradients) add_gradients(variation.problem, inputs, truth);
  return truth;
}

void Trial::normalise_empty_rows(const Problem& p, Outputs& outputs) const {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Capability& capability = kernel_.capability();
  const double declared =
      capability.lse_of_empty_row * std::log(capability.lse_base);  // as the gathered LSE, in base e
  if (declared == -infinity || !outputs.lse || p.sink) return;      // a sink is what such a row has
  const std::vector<std::int64_t> visible = visible_keys(p);
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.nheads; ++h)
      for (std::int64_t i = 0; i < p.seqlen_q; ++i)
        if (visible[static_cast<std::size_t>(b * p.seqlen_q + i)] == 0) {
          double& value = outputs.lse->at(b, h, i, 0);
          value = value == declared ? -infinity : std::numeric_limits<double>::quiet_NaN();
        }
}

}  // namespace attest
