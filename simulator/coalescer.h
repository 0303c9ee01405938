// Requests of neighbouring SMs for the same lines that merge on their way to L2.
#pragma once

namespace attest {

/// One request in flight merges with another: the share of the second one's bytes that still goes to L2, by how many
/// cycles later it comes. A stand-in: this curve is an earlier measurement of two SMs of a TPC, and our own
/// (docs/results/h200-l2.md, merge_pair) is steeper, .63 of both together at 50 cycles and 1.0 at 100 where L2 hits,
/// and finds that any SMs of a GPC merge, at most four. A walk whose steps are key tiles does not know skews that
/// small; with the steeper curve it would merge hardly anything.
inline double second_request_share(double cycles_later, bool from_dram) {
  if (from_dram && cycles_later <= 200) return 0;
  constexpr double at[] = {0, 50, 100, 200, 400, 600}, share[] = {0, 0.22, 0.70, 0.75, 0.86, 0.98};
  if (cycles_later >= at[5]) return 1;
  int i = 0;
  while (cycles_later > at[i + 1]) ++i;
  return share[i] + (share[i + 1] - share[i]) * (cycles_later - at[i]) / (at[i + 1] - at[i]);
}

}  // namespace attest
