// From an instruction to one that needs its result.
#pragma once

#include <ostream>

namespace attest::hardware {

/// One warp. Loads that L1 or shared memory has, of an address that the load before has brought, and products of 32
/// bits of the one before, so many independent chains in turn, each with so many independent instructions of another
/// pipe behind it. Rows: kind, chains, instructions between, cycles of a step of all chains.
void measure_latencies(std::ostream& rows);

}  // namespace attest::hardware
