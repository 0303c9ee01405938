// Backwards with a bug that once shipped somewhere, planted in the plan of the CPU kernel's backward; its forward is
// right.
#pragma once
#include <vector>

#include "attest/cpu/mutants.h"

namespace attest {

/// Every planted backward bug, in the order of their ids, each of which ends in "-backward".
const std::vector<Mutant>& backward_mutants();

}  // namespace attest
