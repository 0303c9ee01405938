#include "code_fetch.h"

#include <algorithm>

#include "attest/simulator/compulsory.h"
#include "kernel_code.h"
#include "queueing_network.h"

namespace attest {

constexpr double instruction_bytes = 16;

bool walk_apart(const Problem& p, const KernelPlan& plan) {
  const bool ends = p.causal != Causal::none || p.window_right >= 0, begins = p.window_left >= 0;
  return (ends != begins && p.seqlen_q > plan.tile_m) || p.prefix > 0 || !p.documents.empty() ||
         lengths_of(p).size() > 1;
}

double walked_code_bytes(const StepDemand& d, const KernelPlan& plan, const DeviceSpec& device, const KeyRuns& runs) {
  const auto ctas = static_cast<double>(ctas_of(runs));
  const double whole = d.issue - d.masked * d.masks;
  const double masked_runs = static_cast<double>(runs.all - runs.whole) / ctas;
  const double masked = plan.masked_steps > 0 ? plan.masked_steps : masked_runs;
  const double around = device.kernel_code_scale * code_around_tiles(plan).instructions;
  return instruction_bytes * (around + masked * (whole + d.masks) + static_cast<double>(runs.whole) / ctas * whole);
}

double code_wait_cycles(double code_bytes, double cycles, int ctas_per_sm, const DeviceSpec& device) {
  const double kept = static_cast<double>(device.code_cache_bytes) / ctas_per_sm;
  const double fetch = std::max(0.0, code_bytes - kept) / device.code_bytes_per_clock;
  const NetworkDemand demand{.own = {{fetch}}, .shared = {}, .wait = std::max(0.0, cycles - fetch)};
  return std::max(0.0, cycle_of_network(demand, {ctas_per_sm}) - cycles);
}

}  // namespace attest
