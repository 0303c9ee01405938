// What a plan asks for that a device does not have.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "attest/plan/kernel_plan.h"
#include "attest/simulator/device.h"

namespace attest {

struct LackingFeature {
  std::string_view field;  // of the plan
  std::string value;
  std::string limit;        // what it needs and what the device has
  std::string_view reason;  // in two or three words
};

/// The first of the plan's fields that names something `device` lacks: copies by TMA, clusters and wgmma came with
/// compute capability 9.0, 8-bit matrix products with 8.9, cp.async with 8.0; and room in shared memory.
std::optional<LackingFeature> lacking_feature(const KernelPlan& plan, const DeviceSpec& device);

/// Whether its tiles take more shared memory than a CTA may have; never of a device of cube and vector cores.
std::optional<LackingFeature> exceeds_shared_memory(const KernelPlan& plan, const DeviceSpec& device);

}  // namespace attest
