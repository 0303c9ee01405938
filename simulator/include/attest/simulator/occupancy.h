// Registers a thread, and how many CTAs an SM takes.
#pragma once
#include <string>

#include "attest/plan/kernel_plan.h"
#include "attest/simulator/device.h"

namespace attest {

/// Registers that a plan's forward needs, by what they hold. 32-bit words a thread.
struct RegisterEstimate {
  int output = 0;  // accumulators of O
  int scores = 0;  // accumulators of S, which P is packed from
  int query = 0;   // Q's fragments: all of them, or those of one matrix step and the next
  int rows = 0;    // maximum and sum of each row
  int other = 0;   // addresses, bounds, K's and V's fragments in flight, the softmax's temporaries
  int demand = 0;  // all of it as a compiler with room lays it out
  int registers_per_thread = 0;
  int spill_words = 0;  // a thread and key tile
  bool known = false;   // registers and spill are the plan's own data, not estimated
};
RegisterEstimate estimate_registers(const KernelPlan& plan, const DeviceSpec& device);

struct Occupancy {
  int by_registers = 0, by_smem = 0, by_warps = 0, by_ctas = 0;
  int ctas_per_sm = 0;  // the smallest of them
  std::string limit;    // "registers", "shared memory", "warps" or "CTAs": which one that is
};
/// Throws InvalidInput naming `plan` where not even one CTA fits.
Occupancy occupancy(const KernelPlan& plan, int registers_per_thread, const DeviceSpec& device);

}  // namespace attest
