// What a load from shared memory waits for behind copies that its CTA's warps begin with it.
#pragma once

#include <ostream>

namespace attest::hardware {

/// One CTA whose warps meet at a barrier, copy and load: so many cp.async of 16 bytes a lane, 8 rows of 64 bytes each,
/// that lie `stride` bytes apart and in L2; then ldmatrix. Rows: stride, copies of a warp, warps, cycles from the
/// barrier until a warp has what it loaded, mean over warps of the median turn.
void measure_in_step(std::ostream& rows);

}  // namespace attest::hardware
