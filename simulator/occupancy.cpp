#include "attest/simulator/occupancy.h"

#include <fmt/format.h>

#include <algorithm>

#include "attest/problem/error.h"

namespace attest {

// Calibrated on 42 instantiations of an mma.sync forward (headdim 64 and 128, tiles 64x64 to 128x128, 4 and 8 warps,
// one and two stages, Q in registers or not), compiled by nvcc 13.0 for sm_80: `other` was 66 to 82 with room to spare,
// and 16 fewer where the accumulators press, because the compiler then keeps four fragments less in flight.
RegisterEstimate estimate_registers(const KernelPlan& plan, const DeviceSpec& device) {
  constexpr int other_with_room = 70, fragments_given_up = 16;
  RegisterEstimate r;
  const int blocks = plan.m_blocks();
  r.output = blocks * plan.columns(Operand::o) / 2;  // 16 x columns fp32 over 32 lanes
  r.scores = blocks * plan.tile_n / 2;
  const int one_step = 4 * blocks;  // 16 x 32 bytes over 32 lanes
  r.query = plan.q_in_registers ? one_step * plan.columns(Operand::q) / plan.k_step() : 2 * one_step;
  r.rows = 4 * blocks;
  r.other = other_with_room;
  r.demand = r.output + r.scores + r.query + r.rows + r.other;

  const auto by_launch = static_cast<int>(device.registers_per_sm / plan.threads() / 8 * 8);
  if (by_launch < 1)
    throw InvalidInput(
        "registers_per_sm", fmt::format("{}", device.registers_per_sm),
        fmt::format("leaves the {} threads of a CTA fewer than 8 registers each (in {})", plan.threads(), device.name));
  const int limit = std::min(static_cast<int>(device.registers_per_thread_max), by_launch);
  r.registers_per_thread = std::min(r.demand, limit);
  r.spill_words = std::max(0, r.demand - fragments_given_up - limit);
  if (plan.known_registers != 0) {
    r.known = true;
    r.registers_per_thread = plan.known_registers;
    r.spill_words = plan.spill_words_per_key_tile;
  }
  return r;
}

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
