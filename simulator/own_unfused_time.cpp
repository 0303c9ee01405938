// gpu/unfused's kernels wait where good ones do not: a CTA copies its operands, then multiplies them; its sums come
// back from local memory; a row of softmax is a warp's. What their warps execute is off their machine code, how they
// share an SM is step_time's network.
#include <algorithm>
#include <cmath>
#include <functional>

#include "attest/simulator/compulsory.h"
#include "attest/simulator/step_time.h"
#include "noise.h"
#include "own_unfused_code.h"
#include "shared_waits.h"
#include "unfused_time.h"

namespace attest {
namespace {

constexpr double depth_of_step = 32, keys_of_turn = 256, warps = 8;
constexpr double fma_of_instruction = 16 * 8 * 16;
// Of a turn a warp waits for 512 bytes: of eight rows of an operand, or four lines of a row of S.
constexpr int turn_rows = 8, turn_lines = 4;

/// What a warp asks of the pipes for `code`, and how long it takes alone, besides `d`.
StepDemand with_code(StepDemand d, const WarpCode& code, const DeviceSpec& device) {
  d.issue = code.instructions;
  d.alu = code.alu * device.alu_instruction_cycles;
  d.fma = code.fma * 32 * static_cast<double>(device.warp_schedulers_per_sm) / device.fp32_fma_per_clock;
  d.waits = std::max(0.0, code.cycles - code.instructions);
  return d;
}

/// Cycles of `n` CTAs on an SM, whose warps wait for loads for so long.
double cycles_beside(StepDemand d, double loads, int n, const DeviceSpec& device) {
  KernelPlan plan;
  plan.num_warps = static_cast<int>(warps);
  d.waits += loads;
  return cycles_per_key_tile(d, plan, device, n);
}

/// What a warp waits for a turn of so many lines that is in L2.
double turn_from_l2(int lines, const DeviceSpec& device) {
  constexpr double of_line =
      6.75;  // `waits` in docs/results/h200-sm.md: 347 to 353 cycles of eight, 319 to 328 of four
  return device.l2_latency_cycles + of_line * lines;
}

/// How much longer where they are in DRAM.
double longer_from_dram(int lines, const DeviceSpec& device) {
  return std::max(0.0, cycles_from_dram(lines, device) - turn_from_l2(lines, device));
}

/// Of `ctas` that need `d`, where `n` of an SM take cycles_of(n).
void time_kernel(UnfusedKernel& kernel, double ctas, int ctas_per_sm, const StepDemand& d,
                 const std::function<double(int)>& cycles_of, const DeviceSpec& device) {
  if (ctas == 0) return finish(kernel, {}, 0, device);
  const auto sms = static_cast<double>(device.num_sms), schedulers = static_cast<double>(device.warp_schedulers_per_sm);
  const double of_sm = std::ceil(ctas / sms), together = std::min<double>(ctas_per_sm, of_sm);
  const double turns = std::floor(of_sm / together), last = of_sm - turns * together;
  const auto turn = [&](double n) { return n == 0 ? 0 : device.cta_launch_cycles + cycles_of(static_cast<int>(n)); };
  const double moved = (kernel.dram_read_bytes + kernel.dram_write_bytes) / dram_bytes_per_clock(device);
  const double cycles = launch_cycles(ctas, device) + std::max(turns * turn(together) + turn(last), moved);
  const double of_scheduler = ctas * warps / sms / schedulers;
  finish(kernel,
         {.tensor = d.tensor * of_scheduler,
          .exp = d.exp * of_scheduler,
          .fma = d.fma * of_scheduler,
          .alu = d.alu * of_scheduler,
          .issue = d.issue * of_scheduler,
          .smem = d.smem * ctas * warps / sms},
         cycles, device);
}

}  // namespace

void time_own_product(UnfusedKernel& kernel, const ProductGrid& g, double depth, bool scores, int ctas_per_sm,
                      const DeviceSpec& device) {
  const auto schedulers = static_cast<double>(device.warp_schedulers_per_sm);
  const double steps = std::ceil(depth / depth_of_step);
  StepDemand d;
  const double products = g.rows * g.columns * steps * depth_of_step;
  d.products = products / warps / fma_of_instruction;
  d.tensor = products / warps / (device.mma_sync_fma_per_clock_16bit / schedulers);
  // slices in, fragments of 32 x 64 a warp, sums in fp32 through shared memory
  const double bytes = steps * depth_of_step * (g.rows + g.columns) * 2 + products * 2 * (32.0 + 64) / (32 * 64) +
                       2 * g.rows * g.columns * sizeof(float);
  d.smem = bytes / device.smem_bytes_per_clock / warps;
  // loads leave an SM behind what it stores: sums, which go to local memory, and results
  const double stored = g.tiles == 0 ? 0 : (kernel.local_bytes + kernel.result_bytes) / (g.tiles * warps);
  d.l2_waited = l2_busy_bytes(0, stored, device) / l2_bytes_per_clock(device);
  d.barriers = 2;  // of a slice: where each slice waits for a part of its time, all do for the same part of theirs
  kernel.l2_read_bytes += g.l2_read_bytes;

  const OwnProductCode& code = scores ? own_scores_code : own_output_code;
  const WarpCode all = code.once() + steps * code.slice();
  d = with_code(d, all, device);
  const auto cycles_of = [&](int n) {
    SharedTurns turns;
    turns.ctas = static_cast<std::int64_t>(g.tiles), turns.slots = n * device.num_sms;
    turns.across = static_cast<std::int64_t>(g.across), turns.down = static_cast<std::int64_t>(g.down);
    turns.slices = static_cast<std::int64_t>(steps);
    // what softmax left in L2 the next kernel finds there; who shares K or V reads it first
    turns.a_in_dram = kernel.dram_read_bytes > kernel.operand_bytes / 2, turns.b_in_dram = true;
    turns.l2 = turn_from_l2(turn_rows, device), turns.dram = longer_from_dram(turn_rows, device);
    turns.dram_deviation = deviation_from_dram(turn_rows, device),
    turns.slice_deviation = device.step_deviation_mma_sync;
    const double sums = code.once().waits * turn_from_l2(turn_rows, device);
    double turn = turns.l2, cycles = 0;
    for (int round = 0; round < 4; ++round) {
      // a CTA's warps meet behind a slice's turns and wait for the one whose DRAM took longest
      const double from_dram = turns.dram == 0 ? 0 : code.slice().waits * std::max(0.0, turn - turns.l2) / turns.dram;
      const double slowest =
          expected_largest_normal(static_cast<int>(warps)) * turns.dram_deviation * std::sqrt(from_dram);
      const double loads = sums + steps * (code.slice().waits * turn + slowest);
      cycles = cycles_beside(d, loads, n, device);
      const double scale = (cycles - loads) / all.cycles;  // beside other warps
      turns.begin = scale * code.start.cycles, turns.slice = scale * code.slice().cycles + slowest;
      turns.end = scale * (code.once().cycles - code.start.cycles) + sums;
      turn = wait_of_turn(turns);
    }
    return cycles;
  };
  time_kernel(kernel, g.tiles, ctas_per_sm, d, cycles_of, device);
}

void time_own_softmax(UnfusedKernel& kernel, const Problem& p, int rows_per_sm, const DeviceSpec& device) {
  double rows = 0, keys = 0;
  for (const Lengths& n : lengths_of(p)) {
    const auto of_class = static_cast<double>(n.entries * n.queries * p.nheads);
    rows += of_class;
    keys += of_class * std::ceil(static_cast<double>(n.keys) / keys_of_turn);
  }
  const double turns = rows == 0 ? 0 : keys / rows;
  StepDemand d;
  d.exp = turns * keys_of_turn / (device.exp_per_clock / static_cast<double>(device.warp_schedulers_per_sm));
  kernel.l2_read_bytes = 2 * kernel.operand_bytes;
  const WarpCode code = own_softmax_code.once() + turns * own_softmax_code.keys();
  d = with_code(d, code, device);
  const double of_dram = kernel.l2_read_bytes == 0 ? 0 : std::min(1.0, kernel.dram_read_bytes / kernel.l2_read_bytes);
  const double loads = code.waits * (turn_from_l2(turn_lines, device) + of_dram * longer_from_dram(turn_lines, device));
  time_kernel(
      kernel, std::ceil(rows / warps), rows_per_sm / static_cast<int>(warps), d,
      [&](int n) { return cycles_beside(d, loads, n, device); }, device);
}

}  // namespace attest
