// The words that a kernel spills, in the order in which its warps store and load them, what they wait for, and what
// else passes through L1 meanwhile.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "attest/simulator/device.h"
#include "l1_cache.h"
#include "l1_frames.h"

namespace attest {

/// A warp's access to a word of its frame in a turn of a loop over key tiles. Times are cycles of a warp alone, from
/// the turn's begin, where no load misses.
struct SpillAccess {
  enum class Kind : std::uint8_t { store, load, last_load, call };  // call: of a function that copies, no access
  int at = 0;
  Kind kind = Kind::store;
  int word = 0;
  int waited = 0;  // until when a load needs not have brought its word; the next turn's begin and later likewise
};

struct SpillTrace {
  int cycles = 0;  // of a turn, or of a branch of one
  std::vector<SpillAccess> accesses;
  int place = 0;  // of a branch: in which cycle of its turn it begins, from which its times count
  /// Of a branch: when what comes `at` a cycle of the turn without it does with it.
  int later(int at) const { return at >= place ? at + cycles : at; }
};

/// In which order a kernel stores and loads its words in a key tile without a mask and with one, and in the branches of
/// these that rescale O; what it stores before its key tiles, on the way into each run of masked or whole ones and into
/// one of whole ones besides, and loads behind them.
struct SpillTraces {
  SpillTrace whole, masked, whole_rescale, masked_rescale, begin, run, enter, end;
};

/// Of a turn's loads.
struct SpillMisses {
  double part = 0;                // of them that miss
  std::vector<double> of_access;  // of the warps' those that miss, by the trace's accesses; 0 of stores
  double waits = 0;               // cycles that a warp waits for those, while its SM asks L2 for nothing else
};

/// Of a turn's loads those that miss, from the same by access.
double part_missing(const SpillTrace& trace, std::span<const double> of_access);

/// Cycles that a warp waits in a turn in which those of its accesses miss: loads that are waited for together wait
/// once, and as much less as a warp has to do before.
double waits_for(const SpillTrace& trace, const std::vector<bool>& missed);

/// A tile's rows, which pass through L1 one after the other. One that is loaded is on its way as a whole.
struct PassingTile {
  std::int64_t first_byte = 0;  // of the buffer's
  int rows = 0, row_bytes = 0;
  std::int64_t stride_bytes = 0;
  bool loaded = true;
};
/// What passes through an SM's L1, tile by tile, turn after turn.
using PassingTurns = std::array<std::vector<PassingTile>, 12>;

/// The part of `words` of `warps` each that L1 has evicted when they are loaded again, where they are loaded `uses`
/// times before each of an SM's turns, of which all but the first few count. The mean of several SMs, whose frames lie
/// anywhere to the buffer.
double driven_out(int words, int warps, std::span<const PassingTurns> of_sms, int uses, int lines,
                  const FramePlaces& places);

/// The part that misses of `words` that a warp stores and loads for the last time once a turn, in an order that is not
/// known: what does not fit, as if what misses took no place and L1 reserved no lines (0.04 off in the benchmark, 0.046
/// without those that it reserves).
double missing_part(int words, int warps, int ctas, int lines);

}  // namespace attest
