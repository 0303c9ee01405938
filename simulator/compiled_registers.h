// What a compiler made of gpu/sm80's kernels: simulator/measured/registers_gpu_sm80.csv, which travels in the program.
#pragma once
#include "attest/plan/kernel_plan.h"
#include "attest/problem/case.h"
#include "attest/simulator/device.h"

namespace attest {

/// `plan` with the registers of the kernel that gpu/sm80 launches for a case, and the words of its stack as stored once
/// a CTA; unchanged where the plan is another one (made smaller for the device, 32-bit or 8-bit inputs) or the device's
/// architecture was not compiled for.
KernelPlan with_compiled_registers(KernelPlan plan, const Case& c, const DeviceSpec& device);

}  // namespace attest
