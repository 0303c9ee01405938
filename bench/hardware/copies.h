// What a copy into shared memory takes, by one CTA alone or by one on each SM.
#pragma once

#include <ostream>

namespace attest::hardware {

/// Rows: how, bytes of a tile, stages, SMs, source, cycles a tile and their standard deviation over tiles and SMs.
void measure_copies(std::ostream& rows);

}  // namespace attest::hardware
