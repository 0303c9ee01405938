#include "attest/simulator/occupancy.h"

#include <fmt/format.h>

#include <algorithm>

#include "attest/problem/error.h"
#include "device_features.h"

namespace attest {

Occupancy occupancy(const KernelPlan& plan, int registers_per_thread, const DeviceSpec& device) {
  if (const auto lacking = exceeds_shared_memory(plan, device))
    throw InvalidInput(lacking->field, lacking->value, lacking->limit);
  const std::int64_t smem = plan.smem_bytes();
  const std::int64_t unit = device.register_allocation_unit;
  const std::int64_t warp_registers = (std::int64_t{registers_per_thread} * 32 + unit - 1) / unit * unit;
  // a warp's registers come from its own scheduler's share
  const std::int64_t warps_by_registers =
      device.registers_per_sm / device.warp_schedulers_per_sm / warp_registers * device.warp_schedulers_per_sm;
  Occupancy o;
  o.by_registers = static_cast<int>(warps_by_registers / plan.warps());
  o.by_smem = static_cast<int>(device.smem_bytes_per_sm / (smem + device.smem_reserved_bytes_per_cta));
  o.by_warps = static_cast<int>(device.max_warps_per_sm / plan.warps());
  o.by_ctas = static_cast<int>(device.max_ctas_per_sm);
  o.ctas_per_sm = std::min({o.by_registers, o.by_smem, o.by_warps, o.by_ctas});
  o.limit = o.ctas_per_sm == o.by_registers ? "registers"
            : o.ctas_per_sm == o.by_smem    ? "shared memory"
            : o.ctas_per_sm == o.by_warps   ? "warps"
                                            : "CTAs";
  if (o.ctas_per_sm >= 1) return o;
  const auto refuse = [&](std::string_view field, int value, const std::string& takes, std::string_view more_than,
                          std::int64_t limit) {
    throw InvalidInput(field, fmt::format("{}", value),
                       fmt::format("{}, more than {} = {} of {}", takes, more_than, limit, device.name));
  };
  if (o.by_registers < 1)
    throw InvalidInput("num_warps", fmt::format("{}", plan.num_warps),
                       fmt::format("with producer_warps {} is {} warps of {} registers, more than the {} that "
                                   "registers_per_sm = {} of {} holds, a scheduler's share each",
                                   plan.producer_warps, plan.warps(), warp_registers, warps_by_registers,
                                   device.registers_per_sm, device.name));
  if (o.by_smem < 1)
    refuse("tile_m", plan.tile_m,
           fmt::format("with tile_n {} and stages {} takes {} bytes of shared memory", plan.tile_n, plan.stages,
                       smem + device.smem_reserved_bytes_per_cta),
           "smem_bytes_per_sm", device.smem_bytes_per_sm);
  refuse("num_warps", plan.num_warps,
         fmt::format("with producer_warps {} is {} warps", plan.producer_warps, plan.warps()), "max_warps_per_sm",
         device.max_warps_per_sm);
  return o;
}

}  // namespace attest
