// Which of a kernel's spilled words L1 has when its CTAs load them, from an SM's first CTA on, warp by warp.
//
// Each warp goes through its turns in the order of the machine code, waits for what it has loaded where the code does,
// and for the CTA's others at a turn's end. What it does without waiting takes as much longer than alone as makes turns
// last what the time model has for them: others are in its way there, as much wherever in the turn it is.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "l1_frames.h"
#include "spill_trace.h"

namespace attest {

/// What a CTA does: it starts, goes through a key tile with a mask or without, or finishes.
struct SpillStep {
  enum class Kind : std::uint8_t { start, masked, whole, finish };
  Kind kind = Kind::start;
  std::uint32_t rescaling = 0;  // of its warps those that rescale O in it, a bit each
  double stands_for = 1;        // so many alike
};
using SpillLife = std::vector<SpillStep>;

/// Of an SM, by its number on the device: of each of its slots the CTAs that it has one after the other, one at least.
/// It is followed until a slot has none left.
struct SpillingSm {
  int sm = 0;
  std::vector<std::vector<SpillLife>> slots;
};

/// In cycles.
struct SpillCycles {
  double key_tile = 0;  // a CTA's, with all that it waits for; 0: what its warps take alone, and their waits for words
  double around = 0;    // a CTA's start, and its finish
  double between = 0;   // an SM's CTAs begin so far apart
};

/// By a kind of key tile, and the parts that miss of what is loaded where O is rescaled and behind a CTA's key tiles.
struct SpillLives {
  SpillMisses masked, whole;
  double rescale = 0, finish = 0;
};

/// Of CTAs of `warps`, where those of an SM share an L1 of `lines`: the mean of `sms`.
SpillLives spill_lives(const SpillTraces& traces, std::span<const SpillingSm> sms, int warps, int lines,
                       const FramePlaces& places, const SpillCycles& times);

}  // namespace attest
