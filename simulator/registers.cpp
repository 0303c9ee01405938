// What holds the model to compilers: docs/simulator.md, "Registers and occupancy", and tests/simulator/cost.
#include "attest/simulator/registers.h"

#include <fmt/format.h>

#include <algorithm>

#include "attest/problem/error.h"

namespace attest {
namespace {

// Of instantiations with room to spare. That a compiler keeps words for K's fragments and for each matrix step of a
// head follows from which of them need more; what it keeps for a step (addresses, loads in flight) is not known.
constexpr int addresses_and_bounds = 26;
constexpr int words_of_a_head_step = 6, head_steps_in_flight = 8;
// Where registers run out the compiler gives up what it has in flight and keeps this much beside the accumulators, Q's
// fragments and the rows.
constexpr int least_other = 30;
// The widest point of a key tile is S = Q K^T, where O is idle and is what goes; this much below it lies the softmax,
// which rescales O, and what goes there is something else.
constexpr int softmax_below_scores = 20;

// What the kernels that were seen leave a producer warpgroup, which only issues copies.
constexpr int producer_registers = 24;

[[noreturn]] void refuse_few(const KernelPlan& plan, const DeviceSpec& device) {
  throw InvalidInput(
      "registers_per_sm", fmt::format("{}", device.registers_per_sm),
      fmt::format("leaves the {} threads of a CTA fewer than 8 registers each (in {})", plan.threads(), device.name));
}

/// Registers a thread that a launch has for all: its share of the SM in steps of 8.
int launch_limit(const KernelPlan& plan, const DeviceSpec& device, const LaunchBounds& bounds) {
  const std::int64_t threads = std::int64_t{plan.threads()} * std::max(1, bounds.min_ctas_per_sm);
  const auto by_launch = static_cast<int>(device.registers_per_sm / threads / 8 * 8);
  if (by_launch < 1) refuse_few(plan, device);
  return std::min(static_cast<int>(device.registers_per_thread_max), by_launch);
}

/// Those of a thread that computes: with producers beside it setmaxnreg moves theirs over, 24/240 and 24/160 for two
/// and three consumer warpgroups.
int compute_limit(const KernelPlan& plan, const DeviceSpec& device, const LaunchBounds& bounds) {
  if (plan.producer_warps == 0) return launch_limit(plan, device, bounds);
  const std::int64_t share = device.registers_per_sm / std::max(1, bounds.min_ctas_per_sm);
  const std::int64_t left = share - std::int64_t{plan.producer_warps} * 32 * producer_registers;
  const auto limit = static_cast<int>(left / (std::int64_t{plan.num_warps} * 32) / 8 * 8);
  if (limit < 8) refuse_few(plan, device);
  return std::min(static_cast<int>(device.registers_per_thread_max / 8 * 8), limit);
}

}  // namespace

RegisterEstimate estimate_registers(const KernelPlan& plan, const DeviceSpec& device, const LaunchBounds& bounds) {
  RegisterEstimate r;
  const int blocks = plan.m_blocks(), head_steps = plan.columns(Operand::q) / plan.k_step();
  const int one_step = 4 * blocks;                   // Q's fragments of a matrix step: 16 x 32 bytes over 32 lanes
  r.output = blocks * plan.columns(Operand::o) / 2;  // 16 x columns fp32 over 32 lanes
  r.scores = blocks * plan.tile_n / 2;
  const bool fragments = plan.matrix_kind == MatrixKind::mma_sync;  // wgmma reads Q and K from shared memory
  r.query = fragments ? one_step * (plan.q_in_registers ? head_steps : 2) : 0;
  r.rows = 4 * blocks;
  const int keys_in_flight = plan.tile_n / 4;  // K's fragments of one matrix step: tile_n x 32 bytes over 32 lanes
  const int head_in_flight = words_of_a_head_step * std::min(head_steps, head_steps_in_flight);
  r.other = addresses_and_bounds + (fragments ? keys_in_flight + head_in_flight : 0);
  // wgmma takes all of P at once, in 16 bits, while the next S is on its way
  r.probabilities = fragments || plan.p_in_smem ? 0 : blocks * plan.tile_n * plan.element_bytes / 8;
  // loads of the next tile of K or V are under way while this one is worked on, and arrive in registers
  if (plan.copy_kind == CopyKind::synchronous) {
    const int tile_words =
        plan.tile_n * std::max(plan.columns(Operand::k), plan.columns(Operand::v)) * plan.element_bytes / 4;
    r.copies = (tile_words + plan.threads() - 1) / plan.threads();
  }
  const int held = r.output + r.scores + r.query + r.rows + r.probabilities + r.copies;
  r.demand = held + r.other;
  r.least = held + (fragments ? least_other : addresses_and_bounds);
  r.limit = compute_limit(plan, device, bounds);

  // a launch gives every thread the same before setmaxnreg, and that is what its launch shows
  r.registers_per_thread = plan.producer_warps == 0 ? std::min(r.demand, r.limit) : launch_limit(plan, device, bounds);
  const int over = std::max(0, r.least - r.limit);
  r.stack_words = over + std::max(0, over - softmax_below_scores);
  r.spill_words = 2 * r.stack_words;  // once for each of the two points
  if (plan.known_registers != 0) {
    r.known = true;
    r.registers_per_thread = plan.known_registers;
    r.spill_words = plan.spill_words_per_key_tile;
  }
  return r;
}

}  // namespace attest
