// Warp instructions of the unit that exponentials share with reciprocals, logarithms, tanh and conversions between
// integers and floating point (NVIDIA's XU).
#pragma once
#include "attest/simulator/case_counts.h"
#include "attest/simulator/report.h"

namespace attest {

/// Of the call that `report` describes as far as its walk. Exponentials, logarithms, reciprocals and tanh follow from
/// the plan; divisions of integers are gpu/sm80's, as its machine code has them for compute capability 9.0, or the
/// plan's own.
double xu_instructions(const SimulationReport& report, const Counts& counts, const KeyRuns& runs);

}  // namespace attest
