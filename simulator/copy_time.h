// What a warp takes to issue the copies of a tile that are not plain ones: granules below 16 bytes, keys in pages,
// queries of packed heads. gpu/sm80 copies such by a function, a granule at a time; of other kernels nothing is known.
#pragma once
#include "attest/plan/kernel_plan.h"
#include "attest/simulator/device.h"

namespace attest {

struct CopyTime {
  double instructions = 0;  // of a warp
  double cycles = 0;        // that it takes alone, what it loads in L2
  double loads = 0;         // that it waits for one by one, and L1 has not
};

/// Whether such copies are a function's: where a plan has words for calling one.
bool copies_by_call(const KernelPlan& plan);

/// Whether a tile's are, by that function. `pages`: whether K and V lie in pages.
bool copies_a_granule_at_a_time(const KernelPlan& plan, Operand x, bool pages);

/// Of a tile of Q, K or V; nothing for plain copies, which a key tile's instructions have, and where copies are not by
/// call. `pages`: whether K and V lie in pages. `missing`: the part of the calls that L1 lacks the arguments of.
CopyTime copy_time(const KernelPlan& plan, const DeviceSpec& device, Operand x, bool pages, double missing = 0);

}  // namespace attest
