// Requests of neighbouring SMs for the same lines that merge on their way to L2.
#pragma once

namespace attest {

/// One request in flight merges with another of the SM next to it: the share of the second one's bytes that still goes
/// to L2, by how many cycles later it comes (measured on an H200 with two SMs of a TPC: requests of both together were
/// .50, .61, .85, .875, .93, .99 of what was asked for; .50 up to 200 cycles where the line comes from DRAM).
inline double second_request_share(double cycles_later, bool from_dram) {
  if (from_dram && cycles_later <= 200) return 0;
  constexpr double at[] = {0, 50, 100, 200, 400, 600}, share[] = {0, 0.22, 0.70, 0.75, 0.86, 0.98};
  if (cycles_later >= at[5]) return 1;
  int i = 0;
  while (cycles_later > at[i + 1]) ++i;
  return share[i] + (share[i + 1] - share[i]) * (cycles_later - at[i]) / (at[i + 1] - at[i]);
}

}  // namespace attest
