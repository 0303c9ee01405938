// What micro-benchmarks say of CTAs that walk key tiles side by side. Of compute capability 9.0.
#pragma once
#include "attest/simulator/calibration.h"

namespace attest::tools {

/// Clocks of GPCs while matrix units are busy, by the GPC's lowest SM, and how far a key tile's time varies.
struct Walks {
  GpcClocks wgmma, mma_sync;
  double deviation_wgmma = 0, deviation_wgmma_3 = 0;  // of two warpgroups, and of three
  double deviation_mma_sync = 0, deviation_mma_sync_alone = 0;
};

/// Takes half a second. Throws std::runtime_error with CUDA's words where a call of it fails.
Walks measure_walks();

}  // namespace attest::tools
