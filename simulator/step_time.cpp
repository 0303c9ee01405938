#include "attest/simulator/step_time.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ahead_time.h"
#include "copy_time.h"
#include "kernel_code.h"
#include "noise.h"
#include "queueing_network.h"
#include "turns_time.h"

namespace attest {
namespace {

/// Cycles of the pipe of products and sums that a warp instruction takes: 32 lanes at the quarter's rate.
double fma_cycles(const DeviceSpec& device) {
  return 32 * static_cast<double>(device.warp_schedulers_per_sm) / device.fp32_fma_per_clock;
}

/// Likewise of the exponential unit.
double exp_cycles(const DeviceSpec& device) {
  return 32 * static_cast<double>(device.warp_schedulers_per_sm) / device.exp_per_clock;
}

/// FMAs of a matrix unit, an SM and a clock, for the plan's element type.
double matrix_rate(const KernelPlan& plan, const DeviceSpec& device) {
  if (plan.matrix_kind == MatrixKind::wgmma)
    return plan.element_bytes == 1 ? device.wgmma_fma_per_clock_8bit : device.wgmma_fma_per_clock_16bit;
  return plan.element_bytes == 4 ? device.fp32_fma_per_clock : device.mma_sync_fma_per_clock_16bit;
}

// Of an H200's loops (docs/results/h200-sm.md). What the lanes of a row wait for each other's maxima, and what a
// softmax of 64 x N takes beyond that, its maxima and its scaled exponentials (contention, alone, N = 128 and 176: 213
// and 261 are 68 and 92 maxima and 75, 843 and 1102 all of it).
constexpr double exchange_cycles = 75, softmax_latency = 32;
// What a warp waits at an mbarrier whose phase is over, and for a turn that another warpgroup hands on at a named
// barrier: 44.5 and 32.5 cycles, of two instructions each (gates).
constexpr double mbarrier_cycles = 42.5, turn_cycles = 30.5;
// Storing P costs 4 cycles for 8 columns and a fence (step.csv, 192 x 64 alone).
constexpr double p_store_cycles = 4.0 / 8, p_fence_cycles = 60;

// It is stored, loaded and moved: 444 instructions more for 150 words in a whole tile of the forced spill
// (simulator/measured/turn_instructions.csv). No kernel with wgmma that was counted spills in its loop.
constexpr double instructions_of_spilled_word = 3;
// Of a warp, one after the other (in_step in docs/results/h200-sm.md).
constexpr double copy_issue_cycles = 6;

bool takes_turns(const KernelPlan& plan) { return plan.overlap == Overlap::between_warpgroups; }

}  // namespace

CaseParts parts_of(const Case& c) {
  return {c.layout.page_size > 0, c.problem.prefix > 0 || !c.problem.documents.empty(), 0};
}

namespace {

// sass_loops.csv, as loop_instructions()
double instructions_among_products(const KernelPlan& plan) {
  return 2.7 * (plan.columns(Operand::q) + plan.tile_n) / plan.k_step();
}

}  // namespace

// sass_loops.csv: 111, 117 and 134 with 12, 16 and 19 products, 45 more where P goes through shared memory
double loop_instructions(const KernelPlan& plan) {
  return 80 + instructions_among_products(plan) + (plan.p_in_smem ? 45 : 0);
}

StepDemand step_demand(const KernelPlan& plan, const DeviceSpec& device, const Counts& counts, int spill_words,
                       CaseParts parts) {
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
  // a word that a warp stores or loads of its local memory is 128 bytes on the same path
  const double spilled = 2.0 * spill_words * 128 / device.smem_bytes_per_clock;
  d.smem = smem_cycles(counts.smem_wavefronts - operands + of_kind(SharedAccess::Kind::fill_bulk)) + spilled;
  // behind a barrier a CTA's warps copy together: what the others copy, less what passes while a warp issues its own
  const double copied = smem_cycles(of_kind(SharedAccess::Kind::fill_async) + of_kind(SharedAccess::Kind::fill_sync));
  const double issues = copy_issue_cycles * static_cast<double>(counts.copies) / steps;
  d.behind_copies = std::max(0.0, (plan.num_warps - 1) * copied - issues);
  d.filled = copied;

  // scale and subtract the maximum, maximum, sum: one fp32 instruction each; lazily O is hardly ever rescaled
  const double rescaled = plan.lazy_rescale ? 0 : outputs, fp32 = elements * 3 + rescaled;
  const bool bulk = plan.matrix_kind == MatrixKind::wgmma;  // one instruction for a tile's width
  const double matrix = bulk ? 0 : 2 * static_cast<double>(counts.matrix_steps) / steps;  // m16n8 instructions
  const CodeTime mask_code = device.kernel_code_scale * code_of_masks(plan, parts.segments);
  const CodeTime score_code = device.kernel_code_scale * code_of_scores(plan);
  const CodeTime tile_code = device.kernel_code_scale * code_of_tile(plan);
  const double masked = static_cast<double>(counts.masked_key_tiles) / static_cast<double>(counts.key_tiles);
  // a mask is a comparison and a selection for each score
  const double masks = mask_code.instructions > 0 ? 0 : 2 * elements * masked;
  const double packs = elements / 2;
  // 512 bytes an instruction
  const double loads = bulk ? 0 : static_cast<double>(counts.smem_wavefronts_ideal) / steps / 4;
  const double scaled = elements * (plan.exp_instructions - 1);  // of denormals, beside the exponentials themselves
  // softcap: two products and the tanh; ALiBi: a distance and an addition; bias: half a load and an addition
  const double terms = (plan.softcap ? 3 : 0) + (plan.alibi ? 2 : 0) + (plan.bias ? 1.5 : 0);
  const double modified = score_code.instructions > 0 ? 0 : elements * terms;
  d.issue = scaled + instructions_of_spilled_word * spill_words + parts.column_instructions +
            unlisted_instructions * (fp32 + masks + modified + elements + packs + matrix + loads);
  d.products = matrix;
  d.among_exp = scaled + 2.5 * elements;  // scale and subtract the maximum, sum, half a conversion
  d.barriers = plan.num_warps > 1 ? static_cast<double>(counts.barriers) / steps : 0;
  // by their pipes; an exponential that scales denormals is a comparison and two products more
  const double scaling = (plan.exp_instructions - 1) / 3.0;
  const double products = 2 + 2 * scaling + (plan.softcap ? 2 : 0) + (plan.alibi ? 1 : 0) + (plan.bias ? 1 : 0);
  d.fma = fma_cycles(device) * (elements * products + rescaled);
  const double comparisons = 1.5 + scaling + 2 * masked + (plan.alibi ? 1 : 0);  // packing is half a one
  d.alu = device.alu_instruction_cycles * elements * comparisons;
  for (const Operand x : {Operand::k, Operand::v}) {
    const CopyTime copies = copy_time(plan, device, x, parts.pages, parts.missing_arguments);
    d.issue += copies.instructions;
    d.waits += copies.cycles - copies.instructions;
    d.loads += copies.loads;
    if (copies.cycles > 0) d.behind_copies = 0;  // a granule at a time, at which warps do not meet
    if (plan.copy_kind != CopyKind::synchronous) continue;
    // through registers: a load before each store, for a row past the end two zeros of 8 bytes, and the stores wait
    // for the tile
    const double bytes = plan.tile_bytes(x);
    d.issue += unlisted_instructions * 3 * bytes / plan.num_warps / 512;
    d.waits += device.l2_latency_cycles + bytes / l2_bytes_per_clock(device);
    ++d.loads;
  }
  d.issue += score_code.instructions + masked * mask_code.instructions;
  d.masks = mask_code.instructions > 0 ? mask_code.instructions : unlisted_instructions * 2 * elements;
  d.masked = masked;
  d.waits += waits_of(tile_code) + waits_of(score_code) + masked * waits_of(mask_code);

  const double pipe_width = std::max(1.0, fma_cycles(device));
  const double alu = device.alu_instruction_cycles * pipe_width, fma_pipe = device.fma_instruction_cycles * pipe_width;
  d.maxima = alu * (elements + 4 + masks);
  d.sums = fma_pipe * (elements + 2 + modified);  // the scores' own product is hidden under exponentials
  d.modifiers = fma_pipe * modified;
  d.packing = alu * packs;
  d.rescaling = fma_pipe * (outputs + 2);
  d.epilogue = fma_pipe * outputs + alu * outputs / 2;
  d.scaling = fma_pipe * (elements + 2);
  d.exchange = exchange_cycles, d.among_products = instructions_among_products(plan);
  d.fixed = exchange_cycles + softmax_latency + loop_instructions(plan) + instructions_of_spilled_word * spill_words;
  if (plan.producer_warps > 0) d.copy_gate = mbarrier_cycles;
  if (plan.num_warps > 4) d.turn_gate = turn_cycles;
  if (plan.p_in_smem) d.fixed += p_store_cycles * elements + p_fence_cycles;
  return d;
}

namespace {

double deviation_by_mma_sync(const DeviceSpec& device, int ctas) {
  return ctas > 1 ? device.step_deviation_mma_sync : device.step_deviation_mma_sync_alone;
}

/// By how much of its key tile the slowest of a CTA's warps keeps the others at barriers.
double slowest_warp(const StepDemand& d, const KernelPlan& plan, const DeviceSpec& device, int ctas) {
  return expected_largest_normal(plan.num_warps) * std::sqrt(d.barriers) * deviation_by_mma_sync(device, ctas);
}

/// Whether a CTA's code is known and each of its warps has a scheduler to itself, with no other CTA's beside it.
bool is_alone(const StepDemand& d, const KernelPlan& plan, const DeviceSpec& device, int ctas) {
  return !d.alone.empty() && ctas == 1 && plan.num_warps <= device.warp_schedulers_per_sm;
}

/// Of a CTA whose warps have schedulers to themselves, where a tile's rows arrive after `latency`: its phases, in which
/// loads stand behind the other warps' copies, and which end when the slowest warp has gone through, their own copies
/// have landed and shared memory has served all of them; no less than its pipes take.
double alone_time(const StepDemand& d, const KernelPlan& plan, const DeviceSpec& device, double latency) {
  const double slower = 1 + slowest_warp(d, plan, device, 1);
  double cycles = slower * d.masked * d.masks;
  for (const AlonePhase& phase : d.alone) {
    const double smem = plan.num_warps * ((d.smem - d.filled) * phase.of_fragments + d.filled * phase.of_copies);
    const double executed = slower * (phase.cycles + d.behind_copies * phase.of_copies);
    cycles += std::max({executed, phase.copies_issued + latency, smem});
  }
  return d.waits + d.l2_waited + std::max({cycles, d.tensor, d.exp, d.fma});
}

double cycles_on_sm(const StepDemand& d, const KernelPlan& plan, const DeviceSpec& device, int ctas) {
  if (takes_turns(plan)) return turns_time(d, plan, device, ctas).key_tile;
  if (plan.matrix_kind == MatrixKind::wgmma) return ahead_time(d, plan, device, ctas);
  if (is_alone(d, plan, device, ctas)) return alone_time(d, plan, device, cycles_from_l2(plan.tile_n, device));
  // The first scheduler has the most warps; a CTA's go through its barriers together.
  const int num_warps = ctas * plan.num_warps, schedulers = static_cast<int>(device.warp_schedulers_per_sm);
  std::vector<int> warps(static_cast<std::size_t>(schedulers));
  for (int s = 0; s < schedulers; ++s)
    warps[static_cast<std::size_t>(s)] = (num_warps + schedulers - 1 - s) / schedulers;
  // The slot of a sum or product is the first cycle of its time at their pipe, which most of a softmax needs in a row;
  // exponentials have others among them; so have comparisons, and warps that need their pipe for longer than they issue
  // queue for it instead. Where mma.sync does not fill the tensor pipe its scheduler issues nothing else meanwhile
  // (beside_mma in docs/results/h200-sm.md). What issues goes on from instruction to instruction; a load or an
  // exponential takes a fixed time, and others stand before the next. Behind a barrier a CTA's warps copy together, and
  // what each loads then stands behind all that they copy.
  const bool holds = device.mma_sync_fma_per_clock_16bit < device.wgmma_fma_per_clock_16bit;
  const double held = holds ? d.tensor : d.products;
  const double of_exp = d.exp * (1 - 1 / std::max(1.0, exp_cycles(device))) - d.among_exp;
  NetworkDemand demand{.own = {{std::max(d.issue - d.products + held, d.alu)},
                               {std::max(0.0, d.tensor - held)},
                               {d.fma * (1 - 1 / std::max(1.0, fma_cycles(device)))},
                               {std::max(0.0, of_exp), true}},
                       .shared = {{d.smem, true}, {d.l2_waited}},
                       .wait = d.waits + d.behind_copies};
  double cycle = cycle_of_network(demand, warps);
  // Who meets at a barrier waits for the slowest, while warps of other CTAs go on.
  const double slowest = slowest_warp(d, plan, device, ctas);
  if (slowest > 0) {
    demand.wait += slowest * (cycle - d.waits);
    cycle = cycle_of_network(demand, warps);
  }
  return std::max(cycle, warps.front() * std::max(d.exp, d.fma));
}

}  // namespace

double cycles_per_key_tile(const StepDemand& d, const KernelPlan& plan, const DeviceSpec& device, int ctas) {
  return std::max(cycles_on_sm(d, plan, device, ctas), ctas * plan.num_warps * d.l2);
}

double longer_from_dram(const StepDemand& d, const KernelPlan& plan, const DeviceSpec& device) {
  if (!is_alone(d, plan, device, 1)) return 0;
  const auto with = [&](double latency) {
    return std::max(alone_time(d, plan, device, latency), plan.num_warps * d.l2);
  };
  return with(cycles_from_dram(plan.tile_n, device)) - with(cycles_from_l2(plan.tile_n, device));
}

double launch_cycles(double ctas, const DeviceSpec& device) {
  const double others = std::clamp(ctas - 1, 0.0, static_cast<double>(device.num_sms - 1));
  return device.kernel_launch_cycles + device.cta_start_cycles * others;
}

double cycles_from_l1(const DeviceSpec& device) { return device.smem_latency_cycles + 5; }

double cycles_from_l2(int lines, const DeviceSpec& device) {
  return device.l2_latency_cycles + expected_largest_exponential(lines).mean * device.l2_latency_tail_cycles;
}

double cycles_from_dram(int lines, const DeviceSpec& device) {
  return device.dram_latency_cycles + expected_largest_exponential(lines).mean * device.dram_latency_tail_cycles;
}

double deviation_from_dram(int lines, const DeviceSpec& device) {
  return expected_largest_exponential(lines).deviation * device.dram_latency_tail_cycles;
}

double l2_bytes_per_clock(const DeviceSpec& device) {
  return device.l2_bytes_per_second / device.sm_clock_hz / static_cast<double>(device.num_sms);
}

double l2_busy_bytes(double read, double written, const DeviceSpec& device) {
  return std::max(read, read / 2 + written * device.l2_bytes_per_second / device.l2_write_bytes_per_second);
}

namespace {

/// Until a CTA's first copy, for that copy, and for its last O to leave.
double around_cta(const KernelPlan& plan, const DeviceSpec& device) {
  const double first_keys =
      device.dram_latency_cycles + device.l2_latency_cycles + plan.tile_bytes(Operand::k) / l2_bytes_per_clock(device);
  const double last_output = device.l2_latency_cycles + plan.tile_bytes(Operand::o) / l2_bytes_per_clock(device);
  return device.bulk_prologue_cycles + first_keys + last_output;
}

}  // namespace

double cycles_per_cta(const StepDemand& d, const KernelPlan& plan, const DeviceSpec& device) {
  // A producer has the next tile's Q and K on their way in time; but its first scores and softmax, and its last
  // products, have nothing of their own warpgroup to run under.
  double launch = plan.persistence == Persistence::none ? device.cta_launch_cycles : 0;
  if (plan.producer_warps > 0) {
    if (plan.persistence == Persistence::none) launch += around_cta(plan, device);
    if (takes_turns(plan)) return launch + turns_time(d, plan, device, 1).begin + d.epilogue;
    const double softmax = d.exp + d.maxima + d.sums + d.packing + d.rescaling + d.fixed;
    return launch + d.tensor + 2 * device.wgmma_latency_cycles + softmax + d.epilogue;
  }
  // Q and the first K: one trip to DRAM, then an SM's share of L2's rate. The epilogue stores O.
  const CodeTime around = device.kernel_code_scale * code_around_tiles(plan);
  const double copied = plan.tile_bytes(Operand::q) + plan.tile_bytes(Operand::k) + plan.tile_bytes(Operand::o);
  return launch + device.dram_latency_cycles + device.l2_latency_cycles + copied / l2_bytes_per_clock(device) +
         copy_time(plan, device, Operand::q, false).cycles + around.instructions + waits_of(around);
}

double cycles_around_ctas(const KernelPlan& plan, const DeviceSpec& device) {
  return plan.producer_warps == 0 || plan.persistence == Persistence::none ? 0 : around_cta(plan, device);
}

std::vector<double> gpc_clocks(const KernelPlan& plan, const DeviceSpec& device) {
  std::vector<double> clocks = device.gpc_clocks;
  const double spread = plan.matrix_kind == MatrixKind::wgmma ? 1 : device.gpc_clock_spread_mma_sync_over_wgmma;
  for (double& clock : clocks) clock = 1 + spread * (clock - 1);
  return clocks;
}

double step_deviation(const KernelPlan& plan, const DeviceSpec& device, int ctas) {
  if (plan.step_deviation != 0) return 1e-3 * plan.step_deviation;
  if (plan.matrix_kind != MatrixKind::wgmma) return deviation_by_mma_sync(device, ctas);
  return plan.num_warps <= 8 ? device.step_deviation_wgmma : device.step_deviation_wgmma_3;
}

}  // namespace attest
