// How many CTAs an SM takes.
#pragma once
#include <string>

#include "attest/plan/kernel_plan.h"
#include "attest/simulator/device.h"
#include "attest/simulator/registers.h"

namespace attest {

struct Occupancy {
  int by_registers = 0, by_smem = 0, by_warps = 0, by_ctas = 0;
  int ctas_per_sm = 0;  // the smallest of them
  std::string limit;    // "registers", "shared memory", "warps" or "CTAs": which one that is
};
/// Throws InvalidInput naming `plan` where not even one CTA fits.
Occupancy occupancy(const KernelPlan& plan, int registers_per_thread, const DeviceSpec& device);

}  // namespace attest
