// Kernels with a bug that once shipped somewhere, planted in the plan of the CPU kernel. They measure the suite: it is
// worth what it catches of them.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attest/cpu/cpu_kernel.h"

namespace attest {

struct Mutant {
  std::string id;   // "05-tail-mask-only-causal": the number of the bug in docs/fuzzing.md, and a few words
  std::string bug;  // what it re-creates, and where it shipped
  std::function<std::unique_ptr<Kernel>(const CpuPlanSpec&)> make;
};

/// Every planted forward bug, in the order of their ids.
const std::vector<Mutant>& forward_mutants();

/// These, and then those of the backward.
const std::vector<Mutant>& all_mutants();

}  // namespace attest
