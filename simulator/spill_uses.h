// What L2 sees of the words that a kernel spills in a key tile, in the order in which it does.
#pragma once
#include <vector>

#include "attest/simulator/tile_walk.h"
#include "compiled_registers.h"
#include "spill_trace.h"

namespace attest {

/// The part that misses L1 of a kernel's loads: of a key tile's by its trace's accesses, of those where O is rescaled,
/// and of those behind its key tiles.
struct TracedMisses {
  std::vector<double> whole, masked;
  double rescale = 0, end = 0;
};

/// Of a kernel whose order traces have: all stores, and of its loads those that miss L1. O is rescaled in a CTA's first
/// key tile, and seldom after.
SpillUses traced_spill_uses(const SpillTraces& traces, const TracedMisses& missed);

/// Of a kernel whose order nobody knows: in each key tile `words` are stored in the `frame.of_tile` first words at its
/// begin and loaded for the last time half a key tile later, those that miss L1; so are `parked` words from the frame's
/// end, of which the last may be one of a part of the key tiles, and which are loaded again later.
SpillUses untraced_spill_uses(int words, const LocalFrame& frame, double parked, double missed);

/// Of each word below `words` the part of a key tile's time for which it is stored and has yet to be loaded for the
/// last time, where such key tiles follow each other.
std::vector<double> live_parts(const std::vector<SpillUse>& of_tile, int words);

}  // namespace attest
