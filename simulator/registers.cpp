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

int register_limit(const KernelPlan& plan, const DeviceSpec& device, const LaunchBounds& bounds) {
  const auto by_launch =
      static_cast<int>(device.registers_per_sm / plan.threads() / std::max(1, bounds.min_ctas_per_sm) / 8 * 8);
  if (by_launch < 1)
    throw InvalidInput(
        "registers_per_sm", fmt::format("{}", device.registers_per_sm),
        fmt::format("leaves the {} threads of a CTA fewer than 8 registers each (in {})", plan.threads(), device.name));
  return std::min(static_cast<int>(device.registers_per_thread_max), by_launch);
}

}  // namespace

RegisterEstimate estimate_registers(const KernelPlan& plan, const DeviceSpec& device, const LaunchBounds& bounds) {
  RegisterEstimate r;
  const int blocks = plan.m_blocks(), head_steps = plan.columns(Operand::q) / plan.k_step();
  const int one_step = 4 * blocks;                   // Q's fragments of a matrix step: 16 x 32 bytes over 32 lanes
  r.output = blocks * plan.columns(Operand::o) / 2;  // 16 x columns fp32 over 32 lanes
  r.scores = blocks * plan.tile_n / 2;
  r.query = one_step * (plan.q_in_registers ? head_steps : 2);
  r.rows = 4 * blocks;
  const int keys_in_flight = plan.tile_n / 4;  // K's fragments of one matrix step: tile_n x 32 bytes over 32 lanes
  r.other = addresses_and_bounds + keys_in_flight + words_of_a_head_step * std::min(head_steps, head_steps_in_flight);
  const int held = r.output + r.scores + r.query + r.rows;
  r.demand = held + r.other;
  r.least = held + least_other;
  r.limit = register_limit(plan, device, bounds);

  r.registers_per_thread = std::min(r.demand, r.limit);
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
