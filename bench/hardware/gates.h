// What a warpgroup takes to pass what it waits for, when nothing keeps it waiting.
#pragma once

#include <ostream>

namespace attest::hardware {

/// One CTA. A warpgroup passes an mbarrier whose phase is over (`over`), arrives at one by a lane of each warp
/// (`arrive`), or both in turn with a producer's warp (`ring`: so many slots, with one of which the two wait for each
/// other); two warpgroups hand a turn to each other at named barriers (`turn`); alone, and while another warpgroup
/// multiplies 64 x 128 by 128 x 16 without end. Rows: kind, slots, products beside, cycles of a pass.
void measure_gates(std::ostream& rows);

}  // namespace attest::hardware
