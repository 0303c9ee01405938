// One case under one kernel: what several properties need of it, made once.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attest/fuzz/truth.h"
#include "attest/gpu/forward_buffers.h"
#include "attest/gpu/kernel.h"
#include "attest/reference/forward.h"

namespace attest {

class Trial {
 public:
  /// The kernel must support c. Keeps references to kernel and buffers. `forward_truth` computes every truth of O and
  /// LSE.
  Trial(Kernel& kernel, ForwardBuffers& buffers, const Case& c, TruthFunction forward_truth = forward_with_budget)
      : kernel_(kernel), buffers_(buffers), case_(c), forward_truth_(forward_truth) {}

  Kernel& kernel() { return kernel_; }
  const Case& the_case() const { return case_; }
  const Problem& problem() const { return case_.problem; }
  /// Those of non-finite inputs are judged only where the kernel keeps them to their rows.
  bool has_gradients() const {
    const Capability& capability = kernel_.capability();
    return case_.backward && capability.offers_gradients &&
           (case_.inputs != Distribution::non_finite || capability.isolates_values);
  }

  /// Of the case itself, computed at the first call. The truth has the statistical budget where the inputs allow it.
  /// Where the case asks for gradients and the kernel offers them, run() has them, and the truth judges them from the O
  /// and LSE that the kernel's backward was handed. Inputs that are not finite spare the values of masked keys where
  /// the kernel does not declare to isolate them.
  const Inputs& inputs();
  const Truth& truth();
  const ForwardRun& run();

  /// The kernel on a variation of the case, its forward alone or both. In both, LSE of a row without keys is -inf if it
  /// is what the kernel declares for such rows, and NaN if it is not.
  ForwardRun run(const Case& variation, const Inputs& inputs, bool gradients = false);
  /// Bounds of a variation with the kernel's numerics for it; worst case only. Those of gradients are for any O and LSE
  /// within theirs.
  Truth truth_of(const Case& variation, const Inputs& inputs, bool gradients = false);

  /// Hazards that the runs of variations reported since the last call.
  std::vector<std::string> take_hazards() { return std::exchange(hazards_, {}); }

 private:
  void normalise_empty_rows(const Problem& problem, Outputs& outputs) const;

  Kernel& kernel_;
  ForwardBuffers& buffers_;
  Case case_;
  TruthFunction forward_truth_;
  std::optional<Inputs> inputs_;
  std::optional<Truth> truth_;
  std::optional<ForwardRun> run_;
  std::vector<std::string> hazards_;
};

/// Keys that row i of batch entry b sees by attends(), at [b * seqlen_q + i].
std::vector<std::int64_t> visible_keys(const Problem& problem);

}  // namespace attest
