// Of the words that a kernel spills those that L1 does not have when they are loaded again, and what that costs.
#pragma once
#include <optional>
#include <vector>

#include "attest/simulator/report.h"
#include "spill_lives.h"

namespace attest {

struct MissingWords {
  double words = 0;                // of a thread and key tile, on average, that L1 does not have
  double waits = 0;                // cycles that a warp waits for those, where their order is known
  double waits_of_cta = 0;         // cycles once a CTA, for what it loads then: as many a word
  double part = 0;                 // of the words that key tiles load those that L1 does not have
  double rescale = 0, finish = 0;  // likewise where O is rescaled, and behind key tiles; of calls that copy none
  std::vector<double> of_whole, of_masked;  // as SpillMisses::of_access, of such a key tile's trace
  double parked_loads = 0;                  // words a thread and key tile that were stored before its loop
  double arguments = 0, copies = 0;         // of calls that copy, as L1Turn has them
};
/// Of a report that has its plan, registers and occupancy. `masked` is the part of the key tiles that are masked;
/// `ctas` share an SM; `together`: on one head's keys; `places` of its frames. `times` of its CTAs, as far as known.
MissingWords missing_words(const SimulationReport& r, double masked, int ctas, bool together, const FramePlaces& places,
                           const SpillCycles& times);

/// Of what a CTA's copies below 16 bytes ask for of a tensor, the part that lies in sectors with rows of the head
/// beside its own.
double shared_with_head_beside(const SimulationReport& r, Operand x);

/// Lines that a CTA loads and L1 has evicted for what its SM's CTAs store as they start and finish, beside those that
/// are gone for what its key tiles do; 0 where their own words do not fit L1. Of a report that has its walk.
double lines_missed_in_lives(const SimulationReport& r, const MissingWords& missing, const FramePlaces& places);

/// What L2 sees of a kernel's words, of the order that its traces have where it has them. `spilling` is the report's
/// plan with all that it spills.
SpillUses spill_uses_of(const SimulationReport& r, const KernelPlan& spilling, const std::optional<LocalFrame>& frame,
                        const MissingWords& missing);

}  // namespace attest
