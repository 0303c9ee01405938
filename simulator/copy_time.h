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

/// Whether the CTAs of an SM keep in step: where they copy by a function whose granules are not waited for one by one.
/// By clocks the older of two then takes as long as the younger, to 0.1%, where CTAs of different SMs are 0.8 to 1.7%
/// apart (simulator/measured/cta_leads.csv); warps that execute a function's jumps together share what is fetched.
bool keeps_in_step(const KernelPlan& plan, const DeviceSpec& device, bool pages);

/// How such CTAs go, in parts of a key tile's time: two of an SM are `lag` apart, and each is off by `apart` from key
/// tile to key tile beside the `of_tile` that both are; SMs with two are off by `of_sm` for as long as a kernel runs.
/// The SMs of `mates` of the TPCs go together. With pages GPCs have one clock, for such kernels leave most of an SM
/// idle; the others, which are alike, are taken to.
struct InStepTimes {
  double lag = 0, apart = 0, of_tile = 0, of_sm = 0, mates = 0;
};
InStepTimes in_step_times(bool pages);

}  // namespace attest
