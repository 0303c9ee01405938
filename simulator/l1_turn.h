// What L1 holds in a key tile of a kernel that copies by a function (copy_time.h).
//
// The function reads the kernel's arguments, which all warps of an SM share, through L1; the kernel stores and loads
// what it spills there; and copies below 16 bytes pass through it, between two uses of either more lines than it has.
// They find there what the SM's other CTA has brought where both walk one head together.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "attest/plan/kernel_plan.h"
#include "attest/simulator/device.h"
#include "in_step.h"
#include "spill_trace.h"

namespace attest {

struct L1Turn {
  SpillMisses spilled;
  double arguments = 0;  // of the calls' lines of arguments those that a warp waits for: gone, or in part on their way
  double copies = 0;     // of what the others of its CTAs have copied before, in lines, that one finds
};

/// Where the K and V lie that a CTA walks, from where their buffer begins: first bytes, and bytes from a row to the
/// next.
struct KeysAt {
  std::int64_t k = 0, v = 0, k_stride = 0, v_stride = 0;
};

/// Of a turn whose calls and spilled words the trace has, the first call K's and the next V's; without any, two calls.
/// `ctas` share an SM and its L1 of `lines`, one as far behind the other as in_step says or, without, at any distance
/// from each other. `keys`: of the CTAs of one SM, of the next one, and so on; CTAs that find what the other
/// has copied walk the same.
L1Turn l1_turn(const KernelPlan& plan, const DeviceSpec& device, const SpillTrace& trace, std::span<const KeysAt> keys,
               int lines, const FramePlaces& places, int ctas, const std::optional<InStepTimes>& in_step);

}  // namespace attest
