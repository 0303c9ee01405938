#include "attest/simulator/occupancy.h"

#include <fmt/format.h>

#include <algorithm>

#include "attest/problem/error.h"

namespace attest {

Occupancy occupancy(const KernelPlan& plan, int registers_per_thread, const DeviceSpec& device) {
  const std::int64_t smem = plan.smem_bytes();
  if (smem > device.smem_bytes_per_cta_max)
    throw InvalidInput(
        "plan", fmt::format("{} bytes of shared memory a CTA", smem),
        fmt::format("exceed smem_bytes_per_cta_max = {} of {}", device.smem_bytes_per_cta_max, device.name));
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
  if (o.ctas_per_sm < 1)
    throw InvalidInput(
        "plan",
        fmt::format("{} warps of {} registers and {} bytes of shared memory", plan.warps(), registers_per_thread, smem),
        fmt::format("do not fit an SM of {} (limit: {})", device.name, o.limit));
  return o;
}

}  // namespace attest
