// Why one plan is predicted faster than another.
#pragma once
#include <string>
#include <vector>

#include "attest/simulator/tune.h"

namespace attest {

/// Of a result that is ranked: why the first wins, what sets the second apart, and each named plan.
std::vector<std::string> explain(const TuneResult& result);

}  // namespace attest
