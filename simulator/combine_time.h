// The kernel that combines splits.
#pragma once
#include "attest/simulator/device.h"

namespace attest {

/// What gpu/sm80's combine() does: a warp a row, four rows a CTA.
struct CombineWork {
  double rows = 0;  // of all heads
  int splits = 1;
  double bytes = 0;      // of O and LSE that it reads
  double from_dram = 0;  // the part of them that L2 no longer has
};

/// Cycles from its launch to its end. A warp executes what its machine code has (simulator/measured/combine_paths.csv)
/// and waits for LSE, then three times for the O of each four splits.
double combine_cycles(const CombineWork& work, const DeviceSpec& device);

}  // namespace attest
