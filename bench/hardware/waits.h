// What a CTA waits for that copies rows through registers, a turn at a time, as gpu/unfused's products do.
#pragma once

#include <ostream>

namespace attest::hardware {

/// CTAs of 8 warps, two an SM. A slice is two turns of 4 KiB, each of which every warp loads, waits for and stores to
/// shared memory; then the warps meet, wait for `between` cycles and meet again. A CTA waits for `around` cycles before
/// its first slice and after its last. Rows lie 4 KiB apart; `share` CTAs that follow each other have the same ones.
/// Rows: bytes of a row in a turn, CTAs, CTAs that share, slices, between, around, source (l2: what the same SM has
/// read before), cycles that a warp waits for a turn and their deviation, the longest of a CTA's warps' waits.
void measure_waits(std::ostream& rows);

}  // namespace attest::hardware
