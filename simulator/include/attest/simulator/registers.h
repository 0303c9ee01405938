// Registers a thread that a plan needs, and what a compiler spills where it may not have them.
#pragma once
#include <vector>

#include "attest/plan/kernel_plan.h"
#include "attest/simulator/device.h"

namespace attest {

/// What a launch promises the compiler beside the number of threads, as __launch_bounds__ does.
struct LaunchBounds {
  int min_ctas_per_sm = 1;  // they share an SM's registers
};

/// What a thread or warp does, by when it does: words that it stores to local memory, or loads, or instructions.
struct PlaceCounts {
  int early = 0;                                // of a CTA without rows, which ends at once
  int once = 0;                                 // of any other
  int run = 0, enters = 0;                      // for each of its KeyRuns, for each of whole tiles
  int masked = 0, whole = 0;                    // for each such key tile
  int masked_rescales = 0, whole_rescales = 0;  // where O is rescaled in one
  std::vector<int> tiles;  // of a CTA's first key tiles, where each has code of its own; the others are whole ones

  /// Of a CTA besides its key tiles, which are a run of masked ones, maybe of none, and one of whole ones.
  int of_cta() const { return once + 2 * run + enters + whole_rescales; }
};

/// Registers that a plan's forward needs, by what they hold. 32-bit words a thread.
struct RegisterEstimate {
  int output = 0;         // accumulators of O
  int scores = 0;         // accumulators of S, which P is packed from
  int query = 0;          // Q's fragments: all of them, or those of one matrix step and the next
  int copies = 0;         // granules on their way through registers to shared memory, where copies are synchronous
  int rows = 0;           // maximum and sum of each row
  int probabilities = 0;  // P beside S, where wgmma takes it from registers
  int other = 0;          // K's fragments in flight, what each matrix step of a head keeps, addresses and bounds
  int demand = 0;         // all of it as a compiler with room lays it out
  int least = 0;          // with as little of `other` as a compiler has been seen to make do with: beyond it, it spills
  int limit = 0;          // registers that the launch, or setmaxnreg, leaves a thread that computes
  int registers_per_thread = 0;
  int stack_words = 0;           // a thread's local memory
  int spill_words = 0;           // that a thread stores there in each key tile
  int parked_words = 0;          // that it stores there once and loads in each key tile
  PlaceCounts stored, loaded;    // likewise; loaded is what is stored in a key tile once there, and what is parked in
                                 // each; of a known plan that is not a compiled kernel of ours as it is stored
  int producer_limit = 0;        // registers that setmaxnreg leaves a producer
  int producer_stack_words = 0;  // of a producer's thread, of which one works
  bool known = false;            // registers and spill are the plan's own data, not estimated
};
/// Throws InvalidInput naming `registers_per_sm` where a thread gets fewer than 8, and `tile_m` where one wgmma alone
/// has more operands than the launch leaves a thread.
RegisterEstimate estimate_registers(const KernelPlan& plan, const DeviceSpec& device, const LaunchBounds& bounds = {});

}  // namespace attest
