// The CPU kernel's gradients.
#include <fmt/format.h>

#include <algorithm>

#include "attest/cpu/cpu_kernel.h"
#include "attest/problem/error.h"
#include "attest/simulator/backward_hazards.h"

namespace attest {
namespace {

constexpr std::size_t max_steps = 20'000;  // that are looked through for hazards, of a warp

}  // namespace

BackwardPlan cpu_backward_plan(const CpuPlanSpec& spec, const Case& c) {
  const KernelPlan drawn = cpu_plan(spec, c);
  BackwardPlan plan;
  static_cast<KernelPlan&>(plan) = drawn;
  plan.tile_n = KernelPlan::round_up(plan.tile_n, 16 * plan.num_warps);
  plan.dq_over_p = (c.seed >> 3 & 1) != 0;
  plan.deterministic = c.deterministic;
  plan.num_splits = plan.packed_heads = 1;
  refuse_impossible(plan, plan.invalid(), "backward");
  return plan;
}

std::unique_ptr<BackwardBehaviour> CpuKernel::right_backward(const BackwardPlan& plan) {
  return std::make_unique<BackwardBehaviourOf<BackwardPlan>>(plan);
}

RunReport CpuKernel::run_backward(const Case& c, const BackwardArgs& args) {
  const auto behaviour = make_backward_(cpu_backward_plan(spec_, c));
  RunReport report;
  InspectedPrograms inspected(max_steps);
  const auto inspect = [&](const BackwardProgram& program) {
    if (!inspected.take(program.warps.front().size())) return;
    for (const std::string& name : find_backward_hazards(behaviour->plan(), program))
      if (std::find(report.hazards.begin(), report.hazards.end(), name) == report.hazards.end())
        report.hazards.push_back(name);
  };
  const std::vector<std::string> faults = backward_on_cpu(*behaviour, c, args, (launches_++ >> 1 & 1) != 0, inspect);
  report.hazards.insert(report.hazards.end(), faults.begin(), faults.end());
  return report;
}

}  // namespace attest
