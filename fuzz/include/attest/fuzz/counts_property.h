// Whether the simulator's exact counts are those of a brute-force count from attends() and the tile sizes alone.
#pragma once
#include <functional>
#include <memory>

#include "attest/reference/compare.h"
#include "attest/simulator/behaviour.h"

namespace attest {

/// A kernel of a plan, right or with a planted bug, whose programs are counted.
using CountedKernel = std::function<std::unique_ptr<Behaviour>(const KernelPlan&)>;

template <class Plan = KernelPlan>
CountedKernel counted_kernel() {
  return [](const KernelPlan& plan) { return std::make_unique<BehaviourOf<Plan>>(plan); };
}

/// Of every plan that has a name: key tiles, bytes of Q, K and V, exponentials and wavefronts of the case. Fails where
/// a count is another than a loop over all pairs of queries and keys gives, or a tile that is not visited has a pair
/// that is seen. The case must be one of which counts_are_exact().
Verdict judge_counts(const Case& c, const CountedKernel& kernel = counted_kernel());
bool counts_are_exact(const Case& c);

}  // namespace attest
