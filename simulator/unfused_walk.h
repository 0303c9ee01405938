// What gpu/unfused's kernels move between L2 and DRAM, walked CTA by CTA through a sampled L2: S, P and the sums that
// products keep in local memory, of which L2 holds the last.
#pragma once
#include <array>

#include "attest/problem/problem.h"
#include "attest/simulator/unfused.h"

namespace attest {

/// Of the three kernels, in order, in bytes.
struct UnfusedWalk {
  std::array<double, UnfusedCost::kernels> read{}, written{};
  double dirty_bytes_left = 0;
};

/// Of a device with an L2 in sets. CTAs begin together, as many as fit, and the next ones when those have ended; of a
/// matrix of many times L2 the first rows are walked, and the others are taken to be like them. Sums are loaded from
/// L1. What S is modified by is not in it.
UnfusedWalk walk_unfused(const Problem& problem, const DeviceSpec& device, const UnfusedKernels& kernels,
                         std::int64_t dirty_bytes_at_start, bool empties_between, bool through_ncu);

}  // namespace attest
