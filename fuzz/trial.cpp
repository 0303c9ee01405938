#include "attest/fuzz/trial.h"

#include <cmath>
#include <limits>

#include "attest/fuzz/in_flight.h"
#include "attest/reference/attends.h"

namespace attest {
namespace {

// Says while the kernel runs that it does.
class WatchedKernel : public Kernel {
 public:
  explicit WatchedKernel(Kernel& kernel) : kernel_(kernel) {}
  const Capability& capability() const override { return kernel_.capability(); }
  Numerics numerics(const Case& c) const override { return kernel_.numerics(c); }
  std::optional<std::string> unsupported(const Case& c) const override { return kernel_.unsupported(c); }
  RunReport run(const Case& c, const ForwardArgs& args) override {
    const InFlight in_flight;
    return kernel_.run(c, args);
  }

 private:
  Kernel& kernel_;
};

ForwardRun run_watched(ForwardBuffers& buffers, Kernel& kernel, const Case& c, const Inputs& inputs) {
  WatchedKernel watched(kernel);
  return buffers.run(watched, c, inputs);
}

}  // namespace

std::vector<std::int64_t> visible_keys(const Problem& p) {
  std::vector<std::int64_t> visible(static_cast<std::size_t>(p.batch * p.seqlen_q));
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t i = 0; i < p.seqlen_q; ++i) {
      std::int64_t& count = visible[static_cast<std::size_t>(b * p.seqlen_q + i)];
      for (std::int64_t j = 0; j < p.seqlen_k; ++j) count += attends(p, b, i, j);
    }
  return visible;
}

const Inputs& Trial::inputs() {
  if (!inputs_) inputs_ = make_inputs(case_);
  return *inputs_;
}

const Truth& Trial::truth() {
  if (!truth_)
    truth_ =
        forward_with_budget(case_.problem, inputs(), kernel_.numerics(case_), case_.inputs == Distribution::normal);
  return *truth_;
}

const ForwardRun& Trial::run() {
  if (!run_) {
    run_ = run_watched(buffers_, kernel_, case_, inputs());
    normalise_empty_rows(case_.problem, run_->outputs);
  }
  return *run_;
}

ForwardRun Trial::run(const Case& variation, const Inputs& inputs) {
  ForwardRun run = run_watched(buffers_, kernel_, variation, inputs);
  normalise_empty_rows(variation.problem, run.outputs);
  hazards_.insert(hazards_.end(), run.report.hazards.begin(), run.report.hazards.end());
  return run;
}

Truth Trial::truth_of(const Case& variation, const Inputs& inputs) {
  return forward_with_budget(variation.problem, inputs, kernel_.numerics(variation), false);
}

void Trial::normalise_empty_rows(const Problem& p, Outputs& outputs) const {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Capability& capability = kernel_.capability();
  const double declared =
      capability.lse_of_empty_row * std::log(capability.lse_base);  // as the gathered LSE, in base e
  if (declared == -infinity || !outputs.lse) return;
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
