// Where the time of one prediction goes that another does not take.
#pragma once
#include <string>
#include <vector>

#include "attest/simulator/report.h"

namespace attest {

/// What costs `other` time beside `base`, what costs most first: "33% more shared-memory wavefronts", "4 instead of 8
/// warps an SM to overlap (limit: registers)". What it has less of is no reason. Totals are compared with `growth`
/// times those of `base`, for a case that is larger.
///
/// The order is that of the time for which the resource behind each is busy longer; fewer warps answer for the time
/// that no resource explains, idle slots for theirs.
std::vector<std::string> extra_costs(const SimulationReport& base, const SimulationReport& other, double growth = 1);

}  // namespace attest
