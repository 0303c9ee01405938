// A key tile of warpgroups that issue the scores of the next one ahead of O += P V (Overlap::within_warpgroup).
#pragma once
#include "attest/simulator/step_time.h"

namespace attest {

/// Cycles of a key tile of `ctas` on an SM, followed from part to part once warpgroups have fallen into step. Those of
/// a CTA issue their products in turn, a turn at a time; the tensor pipe takes all in the order of their issue. A
/// warpgroup has seven products under way at most, so it passes its turn on, and sees its scores, when the last of O's
/// is issued. Sums, packing and rescaling stand among the exponentials, but packing and rescaling among those after the
/// wait for O += P V (plan.softmax_ahead): what finds no room there follows, and O's rescaling alone takes a cycle an
/// instruction from the tensor pipe. Parts last longer while products run, and while other warpgroups are at theirs, as
/// a closed network has it.
double ahead_time(const StepDemand& demand, const KernelPlan& plan, const DeviceSpec& device, int ctas);

}  // namespace attest
