// The counts of a whole case: those of its distinct CTAs, recorded from the kernel's own roles, times how often each
// occurs.
#pragma once
#include <array>
#include <cstdint>

#include "attest/problem/case.h"
#include "attest/simulator/behaviour.h"
#include "attest/simulator/counts.h"

namespace attest {

/// Exact: equal to recording every CTA. CTAs differ in their number of key tiles, the rows their last tiles have, and
/// where their heads start within a sector; of CTAs with many key tiles the middle ones repeat, with the ring's period,
/// so that two short programs give a long one.
Counts count_case(const Case& c, const KernelPlan& plan);

/// Of those CTAs alone that have a key tile.
Counts count_with_keys(const Case& c, const KernelPlan& plan);

/// Likewise of a kernel that walks its key tiles and records its programs as `kernel` does, such as one with a planted
/// bug.
Counts count_case(const Case& c, const Behaviour& kernel);

/// A CTA's key tiles come in runs, masked and whole ones in turns, of which some are empty.
struct KeyRuns {
  std::int64_t all = 0;                            // but for empty ones behind the last key tile
  std::int64_t whole = 0;                          // of whole tiles, at least one
  std::int64_t masked_first = 0, whole_first = 0;  // CTAs by their first key tile
  std::array<std::int64_t, 6> longer{};            // CTAs that have more than so many key tiles
};

/// CTAs that have key tiles.
constexpr std::int64_t ctas_of(const KeyRuns& runs) { return runs.masked_first + runs.whole_first; }

/// Of all CTAs.
KeyRuns count_key_runs(const Case& c, const KernelPlan& plan);

}  // namespace attest
