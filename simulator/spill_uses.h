// What L2 sees of the words that a kernel spills in a key tile, in the order in which it does.
#pragma once
#include <vector>

#include "attest/simulator/tile_walk.h"
#include "l1_cache.h"

namespace attest {

/// Of a kernel whose order a trace has: all stores, and of its loads those that miss L1, by `missed` of the trace's
/// accesses. Words that it loads and never stores are parked ones.
std::vector<SpillUse> traced_spill_uses(const SpillTrace& trace, const std::vector<double>& missed);

/// Of a kernel whose order nobody knows: `words` are stored in places of `of_tile` words at its begin and loaded for
/// the last time half a key tile later, those that miss L1; so are `parked` words, of which the last may be one of a
/// part of the key tiles, and which are loaded again later.
std::vector<SpillUse> untraced_spill_uses(int words, int of_tile, double parked, double missed);

}  // namespace attest
