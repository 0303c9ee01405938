// What a plan asks for that a device or the tensors of a case do not have.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "attest/plan/kernel_plan.h"
#include "attest/problem/case.h"
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

/// Likewise, or the first number of the case for which its tensors are none that copies by TMA can address: a tensor
/// map has strides and a base of multiples of 16 bytes (CUDA Driver API, cuTensorMapEncodeTiled; strides of 2^40 bytes,
/// its other limit, need more elements than validate() admits of 16 bits each).
std::optional<LackingFeature> lacking_feature(const KernelPlan& plan, const Case& c, const DeviceSpec& device);

/// Whether its tiles take more shared memory than a CTA may have; never of a device of cube and vector cores.
std::optional<LackingFeature> exceeds_shared_memory(const KernelPlan& plan, const DeviceSpec& device);

}  // namespace attest
