// What a plan asks for that a device does not have.
#pragma once
#include <optional>

#include "attest/plan/kernel_plan.h"
#include "attest/simulator/device.h"
#include "attest/simulator/plan_file.h"

namespace attest {

/// The first of the plan's fields that names something `device` lacks: copies by TMA, clusters and wgmma came with
/// compute capability 9.0, 8-bit matrix products with 8.9, cp.async with 8.0; and room in shared memory.
std::optional<PlanFault> lacking_feature(const KernelPlan& plan, const DeviceSpec& device);

/// Whether its tiles take more shared memory than a CTA may have; never of a device of cube and vector cores.
std::optional<PlanFault> exceeds_shared_memory(const KernelPlan& plan, const DeviceSpec& device);

}  // namespace attest
