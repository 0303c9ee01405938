#include "judge.h"
#include "watched_kernel.h"

namespace attest {
namespace {

class LocalJudge : public Judge {
 public:
  LocalJudge(const KernelFactory& make_kernel, const CampaignOptions& options)
      : options_(options), kernel_(std::make_unique<WatchedKernel>(make_kernel())) {}

  void run(const Next& next, const Done& done) override {
    while (const std::optional<std::uint64_t> k = next()) {
      Outcome outcome;
      outcome.k = *k;
      outcome.the_case = generate_case(options_.seed, *k, options_.budget);
      try {
        outcome.unsupported = kernel_->unsupported(outcome.the_case).has_value();
        if (!outcome.unsupported) judge_properties(outcome);
      } catch (const KernelThrew& error) {  // before any property began
        outcome.judged = {properties_for(options_.seed, *k, outcome.the_case).front()};
        outcome.failed.emplace_back(outcome.judged.front(), thrown(error));
      }
      done(std::move(outcome));
    }
  }

  std::optional<Verdict> judge(const Property& property, const Case& c, double) override {
    try {
      if (kernel_->unsupported(c)) return std::nullopt;
      Trial trial(*kernel_, buffers_, c);
      return attest::judge(property, trial);
    } catch (const KernelThrew& error) {
      return thrown(error);
    }
  }

  double longest_run_seconds() const override { return 0; }

 private:
  void judge_properties(Outcome& outcome) {
    Trial trial(*kernel_, buffers_, outcome.the_case);
    outcome.judged = properties_for(options_.seed, outcome.k, outcome.the_case);
    for (const Property* property : outcome.judged)
      if (Verdict verdict = attest::judge(*property, trial); verdict.status != Status::passed)
        outcome.failed.emplace_back(property, std::move(verdict));
  }

  const CampaignOptions& options_;
  std::unique_ptr<Kernel> kernel_;
  ForwardBuffers buffers_;
};

}  // namespace

std::unique_ptr<Judge> make_local_judge(const KernelFactory& make_kernel, const CampaignOptions& options) {
  return std::make_unique<LocalJudge>(make_kernel, options);
}

}  // namespace attest
