#include "attest/simulator/step_time.h"

#include <algorithm>

namespace attest {
namespace {

// Address arithmetic, loop control, moves and packing beside the instructions that step_demand() lists: 1.23 to 1.25
// times the list in SASS of three kernels (an mma.sync forward of this shape, 947 instructions a key tile;
// FlashAttention 2 at headdim 128 and 64, 1233 and 1692 executed).
constexpr double unlisted_instructions = 1.24;

/// FMAs of a matrix unit, an SM and a clock, for the plan's element type.
double matrix_rate(const KernelPlan& plan, const DeviceSpec& device) {
  if (plan.matrix_kind == MatrixKind::wgmma)
    return plan.element_bytes == 1 ? device.wgmma_fma_per_clock_8bit : device.wgmma_fma_per_clock_16bit;
  return plan.element_bytes == 4 ? device.fp32_fma_per_clock : device.mma_sync_fma_per_clock_16bit;
}

/// Steps of one warp that are under way at a time: wgmma runs on while its warpgroup goes on to the softmax, and each
/// step's second half of the products does so (the first half's results are what the softmax waits for). With three
/// warpgroups 1 is fitted, to the cycles of FlashAttention 3 at headdim 64; why its products do not run on is not
/// known.
double steps_under_way(const KernelPlan& plan) {
  return plan.matrix_kind == MatrixKind::wgmma && plan.num_warps <= 8 ? 1.5 : 1;
}

}  // namespace

StepDemand step_demand(const KernelPlan& plan, const DeviceSpec& device, const Counts& counts, int spill_words) {
  const double steps = static_cast<double>(counts.key_tiles) * plan.num_warps;  // warps x key tiles
  const auto schedulers = static_cast<double>(device.warp_schedulers_per_sm);
  const double elements = plan.rows_per_warp() * plan.tile_n / 32.0;  // of S, a lane
  const double outputs = plan.rows_per_warp() * plan.columns(Operand::o) / 32.0;
  StepDemand d;
  const double fma = static_cast<double>(counts.matrix_steps) * 256 * plan.k_step() / steps;
  d.tensor = fma / (matrix_rate(plan, device) / schedulers);
  // beside the scores', each lane computes its rows' rescaling factors
  const double rescales = plan.lazy_rescale ? 0 : 2.0 * plan.m_blocks() * 32;
  const double tanhs = plan.softcap ? static_cast<double>(counts.exponentials) / steps : 0;  // on the same unit
  d.exp = (static_cast<double>(counts.exponentials) / steps + tanhs + rescales) / (device.exp_per_clock / schedulers);
  const auto smem_cycles = [&](std::int64_t wavefronts) {
    return static_cast<double>(wavefronts) / steps * 128 / device.smem_bytes_per_clock;
  };
  const auto of_kind = [&](SharedAccess::Kind kind) {
    return counts.wavefronts_by_kind[static_cast<std::size_t>(kind)];
  };
  // wgmma's operands arrive while it multiplies; what is slower of the two holds the tensor pipe
  const std::int64_t operands = of_kind(SharedAccess::Kind::multiply);
  d.operands = smem_cycles(operands);
  d.tensor = std::max(d.tensor, d.operands * schedulers);
  d.smem = smem_cycles(counts.smem_wavefronts - operands + of_kind(SharedAccess::Kind::fill_bulk));

  // scale and subtract the maximum, maximum, sum: one fp32 instruction each; lazily O is hardly ever rescaled
  const double fp32 = elements * 3 + (plan.lazy_rescale ? 0 : outputs);
  const double fp32_issue = fp32 * std::max(1.0, 32 * schedulers / device.fp32_fma_per_clock);
  const bool bulk = plan.matrix_kind == MatrixKind::wgmma;  // one instruction for a tile's width
  const double matrix = bulk ? 0 : 2 * static_cast<double>(counts.matrix_steps) / steps;  // m16n8 instructions
  // a mask is a comparison and a selection for each score
  const double masks =
      2 * elements * static_cast<double>(counts.masked_key_tiles) / static_cast<double>(counts.key_tiles);
  const double packs = elements / 2;
  // 512 bytes an instruction
  const double loads = bulk ? 0 : static_cast<double>(counts.smem_wavefronts_ideal) / steps / 4;
  const double exponentials = elements * plan.exp_instructions;
  // softcap: two products and the tanh; ALiBi: a distance and an addition; bias: half a load and an addition
  const double modified = elements * ((plan.softcap ? 3 : 0) + (plan.alibi ? 2 : 0) + (plan.bias ? 1.5 : 0));
  d.issue = unlisted_instructions *
            (fp32_issue + masks + modified + exponentials + packs + matrix + loads + 2.0 * spill_words);
  return d;
}

double cycles_per_key_tile(const StepDemand& d, const KernelPlan& plan, const DeviceSpec& device, int ctas) {
  const double under_way = steps_under_way(plan), warps = ctas * plan.num_warps * under_way;
  const double of_scheduler = std::max(1.0, warps / static_cast<double>(device.warp_schedulers_per_sm));
  // Schweitzer's approximation: an arriving warp finds the others as the average finds them.
  struct Station {
    double demand, customers;
  };
  const Station stations[] = {{d.tensor / under_way, of_scheduler},
                              {d.exp / under_way, of_scheduler},
                              {d.issue / under_way, of_scheduler},
                              {d.smem / under_way, warps}};
  const auto residence = [&](double cycle) {  // of one warp at all stations, if a warp comes round every `cycle`
    double sum = 0;
    for (const Station& s : stations) {
      const double busy_with_others = s.demand * (s.customers - 1) / cycle;
      sum += s.demand / (1 - std::min(busy_with_others, 1 - 1e-9));
    }
    return sum;
  };
  double low = 0;  // no resource can be busy more than always
  for (const Station& s : stations) low = std::max(low, s.demand * s.customers);
  double high = low;
  for (const Station& s : stations) high += s.demand * s.customers;
  // residence() falls as the cycle grows: bisect for the cycle that is its own residence
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (residence(middle) > middle ? low : high) = middle;
  }
  return high;
}

double cycles_per_cta(const StepDemand& d, const KernelPlan& plan, const DeviceSpec& device) {
  // A producer has the next tile's Q and K on their way in time; but its first scores and softmax, and its last
  // products, have nothing of their own warp to run under.
  if (plan.producer_warps > 0) return d.tensor + d.exp + d.issue;
  // Q and the first K: one trip to DRAM, then an SM's share of L2's rate. The epilogue scales, packs, stages and stores
  // O.
  const double copied = plan.tile_bytes(Operand::q) + plan.tile_bytes(Operand::k) + plan.tile_bytes(Operand::o);
  const double l2_bytes_per_clock =
      device.l2_bytes_per_second / device.sm_clock_hz / static_cast<double>(device.num_sms);
  const double outputs = plan.rows_per_warp() * plan.columns(Operand::o) / 32.0;
  return device.dram_latency_cycles + device.l2_latency_cycles + copied / l2_bytes_per_clock + 3 * outputs;
}

}  // namespace attest
