// What keeps a case, a plan or a device from being predicted.
#pragma once
#include <string_view>

#include "attest/plan/kernel_plan.h"
#include "attest/problem/case.h"
#include "attest/simulator/device.h"

namespace attest {

/// Throws InvalidInput naming the field where the cost models do not describe the case, the plan is no kernel's or made
/// for another case, or the device cannot hold it.
void check(const Case& c, const KernelPlan& plan, const DeviceSpec& device);

/// Throws InvalidInput naming a field of the case that our own kernel of that name does not run; others run all.
void check_own_kernel(std::string_view kernel, const Case& c);

/// Throws InvalidInput naming `num_sms` where the device holds more CTAs at a time than are followed: each is, through
/// two waves at least, and so many take seconds.
void check_resident(int ctas_per_sm, const DeviceSpec& device);

}  // namespace attest
