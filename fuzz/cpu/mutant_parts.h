// The planted bugs by theme: each a plan that hides one member of KernelPlan.
#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "attest/cpu/mutants.h"

namespace attest {

template <class Plan>
Mutant mutant(std::string id, std::string bug) {
  const CpuKernel::MakeBehaviour behaviour = [](const KernelPlan& plan) -> std::unique_ptr<Behaviour> {
    return std::make_unique<BehaviourOf<Plan>>(plan);
  };
  return {std::move(id), std::move(bug),
          [behaviour](const CpuPlanSpec& spec) { return std::make_unique<CpuKernel>(spec, behaviour); }};
}

std::vector<Mutant> mask_mutants();
std::vector<Mutant> row_mutants();
std::vector<Mutant> pipeline_mutants();
std::vector<Mutant> memory_mutants();
std::vector<Mutant> length_mutants();
std::vector<Mutant> modifier_mutants();
std::vector<Mutant> split_mutants();
std::vector<Mutant> precision_mutants();

}  // namespace attest
