// What computes the truth that kernels are judged by.
#pragma once
#include <string_view>

#include "attest/reference/forward.h"

namespace attest {

/// forward_with_budget(), or what gives the same elsewhere.
using TruthFunction = Truth (*)(const Problem& problem, const Inputs& inputs, const Numerics& numerics,
                                bool statistical);

/// "cpu", the reference itself, or "gpu", its second writing for long sequences. Throws InvalidInput naming `truth` for
/// any other, EnvironmentError where this build or this machine has no GPU.
TruthFunction truth_named(std::string_view name);

}  // namespace attest
