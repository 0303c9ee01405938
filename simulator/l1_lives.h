// What L1 holds of the words of its SM's CTAs, from one CTA's start to the next one's.
//
// Words that a CTA stores at its start and loads in its key tiles stay in L1 until another one's output passes: the
// lines that it stores as it finishes, and those that the next CTA stores in its place at its own start. So who misses
// how many hangs on what follows what on an SM, and, as sets go, on the stride of O's rows.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "attest/simulator/tile_walk.h"
#include "spill_trace.h"

namespace attest {

/// What a CTA's warps store and load, each in order: at its start, on the way into each run of key tiles with a mask or
/// without and into one without besides, in a key tile with a mask and without, and behind all of them.
struct CtaWords {
  std::vector<SpillAccess> start, run, enter, masked, whole, finish;
};

/// Words of a warp's frame, as far as any of it is used.
int used_words(const CtaWords& cta);

/// Lines that a CTA of so many warps loads and L1 no longer has, on average, as SMs go through their events. `output`:
/// what a CTA stores of its tile. Frames lie anywhere to it.
double missed_in_lives(const CtaWords& words, int warps, std::span<const SmEvents> sms,
                       const std::function<std::vector<PassingTile>(const StoredTile&)>& output, int lines,
                       const FramePlaces& places);

}  // namespace attest
