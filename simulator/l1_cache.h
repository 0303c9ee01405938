// An SM's L1 as local memory sees it: which of a kernel's spill loads find their word there.
//
// A word of a warp is a line of 128 bytes. What shared memory leaves of an SM's memory holds lines, in sets that take
// lines at random and let go of one, at random too, of those that were not used since all of the set had been. A store
// keeps its line and is written through; so does a load, but for the last one of a word (LDL.LU), which takes no line
// where it misses. The benchmark `local` has all of it (docs/results/h200-sm.md), the sets only in so far as a few
// describe it better than one or 32.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "attest/simulator/device.h"

namespace attest {

// From a load that misses to its word (docs/results/h200-sm.md, local: from one to the next in a chain on all SMs, in
// whose loop 16 loads follow each other without anything between).
inline constexpr double l1_miss_cycles = 293;

/// Lines, numbered from 0, of which L1 holds some.
class L1Cache {
 public:
  /// `lines` of `all` at most are held.
  L1Cache(int lines, int all);
  /// Whether the line was held.
  bool store(int line) { return use(line, true); }
  bool load(int line, bool last_use) { return use(line, !last_use); }

 private:
  static constexpr int sets = 16;
  struct Way {
    int line = -1;
    bool used = false;  // since all of its set had been
  };
  bool use(int line, bool keep);
  int to_go(const Way* set);
  std::uint32_t random();

  int ways_;
  std::uint64_t state_ = 1;
  std::vector<int> set_of_, way_of_;  // by line; -1: not held
  std::vector<Way> all_;
};

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
  int cycles = 0;  // of a turn
  std::vector<SpillAccess> accesses;
};

/// Of a turn's loads.
struct SpillMisses {
  double part = 0;   // of them that miss
  double waits = 0;  // cycles that a warp waits for those, while others ask L2 for nothing
};

/// Cycles that a warp waits in a turn in which those of its accesses miss: loads that are waited for together wait
/// once, and as much less as a warp has to do before.
double waits_for(const SpillTrace& trace, const std::vector<bool>& missed);

/// Bytes of shared memory that the driver sets aside of an SM for CTAs that take `bytes`: the least configuration with
/// room for them.
std::int64_t smem_set_aside(std::int64_t bytes, const DeviceSpec& device);

/// Lines of L1 beside the shared memory of `ctas` CTAs that take `smem_bytes` each, with what is reserved for each.
int l1_lines(std::int64_t smem_bytes, int ctas, const DeviceSpec& device);

/// Where `ctas` CTAs of `warps` share an L1 of `lines`, their warps in step and CTAs at any distance from each other.
SpillMisses spill_misses(const SpillTrace& trace, int warps, int ctas, int lines);

/// How much of a turn lies between the store of a word and its loads, on average; none where no word of a turn is both.
std::optional<double> mean_distance(const SpillTrace& trace);

/// The part of lines that L1 has let go of when they are used again, where `others` have passed through it since, each
/// of them used once: loaded from global memory or stored there.
double driven_out(double others, int lines);

/// The part that misses of `words` that a warp stores and loads for the last time once a turn, in an order that is not
/// known: what does not fit, for what misses takes no place (0.1 more or less in the benchmark).
double missing_part(int words, int warps, int ctas, int lines);

}  // namespace attest
