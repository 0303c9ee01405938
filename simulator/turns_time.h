// A key tile of warpgroups that take turns at exponentials (Overlap::between_warpgroups).
#pragma once
#include "attest/simulator/step_time.h"

namespace attest {

/// Cycles of a key tile once warpgroups have fallen into step, and what a query tile costs beyond its key tiles because
/// they begin it together.
struct TurnsTime {
  double key_tile = 0, begin = 0;
};

/// Followed from phase to phase for `ctas` on an SM: products share the tensor pipe evenly and make instructions beside
/// them slower, a turn at exponentials is one warpgroup's at a time, in their order, and a producer a CTA fills slots
/// that all of its warpgroups have released, K before V, from L2. Sums, packing and rescaling stand among exponentials;
/// a copy that has landed and a turn that is there are passed in cycles of their own.
TurnsTime turns_time(const StepDemand& demand, const KernelPlan& plan, const DeviceSpec& device, int ctas);

}  // namespace attest
