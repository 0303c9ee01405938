// Of the words that a kernel spills those that L1 does not have when they are loaded again, and what that costs.
#pragma once
#include <optional>
#include <vector>

#include "attest/simulator/report.h"
#include "l1_cache.h"

namespace attest {

/// Of a key tile, on average: words that a thread loads and L1 does not have, and cycles that its warp waits for them
/// alone where it is known in which order it does; of what it loads once a CTA it waits as long for a word.
struct MissingWords {
  double words = 0, waits = 0, waits_of_cta = 0;
  double part = 0;                          // of those that it loads
  double after = 0;                         // of those that it loads around its key tiles; 0: not known
  std::vector<double> of_whole, of_masked;  // as SpillMisses::of_access, of such a tile's trace
  double parked_loads = 0;                  // words of a CTA that the key tile loads
  double arguments = 0, copies = 0;         // of calls that copy, as l1_turn.h has them
};
/// Of a report that has its plan, registers and occupancy. `masked` is the part of the key tiles that are masked;
/// `ctas` share an SM; `together`: on one head's keys; `places` of its frames.
MissingWords missing_words(const SimulationReport& r, double masked, int ctas, bool together,
                           const FramePlaces& places);

/// Lines that a CTA loads and L1 has let go of for what its SM's CTAs store as they start and finish, beside those that
/// are gone for what its key tiles do; 0 where their own words do not fit L1. Of a report that has its walk.
double missed_in_lives(const SimulationReport& r, const MissingWords& missing, const FramePlaces& places);

/// What L2 sees of a kernel's words, of the order that its traces have where it has them. `spilling` is the report's
/// plan with all that it spills.
SpillUses spill_uses_of(const SimulationReport& r, const KernelPlan& spilling, const std::optional<LocalFrame>& frame,
                        const MissingWords& missing);

}  // namespace attest
