// Shared-memory wavefronts of a whole launch, lane by lane and bank by bank: what the simulator's counts are held to.
#pragma once
#include <cstdint>
#include <optional>

#include "attest/plan/kernel_plan.h"
#include "attest/problem/case.h"

namespace attest {

struct EnumeratedWavefronts {
  std::int64_t wavefronts = 0, ideal = 0;
};

/// Of every CTA of every head of the case, each recorded with its own mask and expanded to its warp instructions.
/// Nothing for cases with pages, and where `key_tiles`, all that the launch visits, are more than a few.
std::optional<EnumeratedWavefronts> enumerated_wavefronts(const Case& c, const KernelPlan& plan,
                                                          std::int64_t key_tiles);

}  // namespace attest
