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
// Where registers run out the compiler gives up what it has in flight but the plan's `fragment_words`, and, where not
// even what the loop only reads makes room, all but the fragments of 16 keys. It keeps this much that comes and goes
// within a step, the stack pointer, and what is lost where operands lie in aligned fours.
constexpr int words_of_16_keys = 4, least_temporaries = 15;
// The widest point of a key tile is S = Q K^T, where O is idle and is what goes. K's fragments and this much below it
// lies the softmax, which rescales O; what is parked is gone by then, and what goes there is something else.
constexpr int softmax_below_products = 16;

// sm_90's compiler keeps more of a loop's words in registers. It does not give up what it keeps for a head's steps
// where K and V have one slot each, and K's is filled again while S is live: it parks it.
constexpr int compiler_that_parks = 90;

// wgmma, read off bench/hardware/registers/sm90_skeleton.cu. Beside what is held consumers keep 24 words; one that
// lacks a word has it stored and loaded twice, and with P in shared memory the smaller accumulators make way
// altogether.
constexpr int least_other_wgmma = 24;
// One wgmma's operands beside its accumulators, descriptors and addresses among them, and P where it is in registers.
constexpr int operands_of_wgmma = 26, operands_of_p = 4;
// Producers only issue copies, and a ring of slots and tiles from a counter are what fills their registers. Those that
// copy by address, all their threads, take more.
constexpr int producer_registers = 24, addressing_producer_registers = 40, least_of_dynamic_producer = 26;

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

/// Those of a thread that computes, and of one that copies: with producers setmaxnreg moves theirs over, which leaves
/// 24/240 and 32/160 of the launch's 168 and 128 for two and three consumer warpgroups.
void share(const KernelPlan& plan, const DeviceSpec& device, const LaunchBounds& bounds, RegisterEstimate& r) {
  const std::int64_t launch = launch_limit(plan, device, bounds), most = device.registers_per_thread_max;
  r.limit = static_cast<int>(launch);
  if (plan.producer_warps == 0) return;
  const std::int64_t pool = (launch + 7) / 8 * 8 * plan.warps();  // of a lane in each warp
  const std::int64_t kept = plan.copy_kind == CopyKind::tma ? producer_registers : addressing_producer_registers;
  const std::int64_t left = (pool - kept * plan.producer_warps) / plan.num_warps / 8 * 8;
  if (left < 8) refuse_few(plan, device);
  r.limit = static_cast<int>(std::min(most, left));
  const std::int64_t taken = (std::int64_t{r.limit} + 7) / 8 * 8 * plan.num_warps;
  r.producer_limit = static_cast<int>(std::min(most, (pool - taken) / plan.producer_warps / 8 * 8));
}

/// Words that mma.sync's compiler lacks in a key tile with everything given up that it gives up.
struct Lack {
  int least = 0;    // that it needs at the wider of S = Q K^T and a call under a live S
  int parked = 0;   // stored once: what the loop only reads, which goes first
  int spilled = 0;  // what remains, there and in the softmax, once loads in flight have gone as well
};
Lack lack_of(const KernelPlan& plan, const DeviceSpec& device, const RegisterEstimate& r, int held) {
  const int loop = plan.loop_words + (device.compute_capability >= compiler_that_parks ? plan.loop_words_sm90 : 0);
  const int scores = held + loop + least_temporaries;  // less K's fragments
  const bool calls = plan.stages == 1 && plan.refill_call_words > 0;
  const int dead = plan.q_in_registers ? 0 : r.query;  // Q's fragments, once S is there
  Lack lack;
  lack.least = std::max(scores + plan.fragment_words, calls ? scores - dead + plan.refill_call_words : 0);
  const int widest = std::max(0, lack.least - r.limit);
  lack.parked = std::min(widest, loop);
  const int in_flight = std::max(0, plan.fragment_words - words_of_16_keys);
  const int softmax = scores - lack.parked - softmax_below_products - r.limit;
  lack.spilled = std::max(0, widest - lack.parked - in_flight) + std::max(0, softmax);
  return lack;
}

/// setmaxnreg comes after the launch, whose share each instruction must fit.
void refuse_wide_wgmma(const KernelPlan& plan, const RegisterEstimate& r, int launch) {
  const int products = r.output + (plan.p_in_smem ? 0 : operands_of_p);
  const int needed = std::max(r.scores, products) + operands_of_wgmma;
  if (needed > launch)
    throw InvalidInput("tile_m", fmt::format("{}", plan.tile_m),
                       fmt::format("launches {} threads of {} registers each, and one wgmma of {} columns needs {}",
                                   plan.threads(), launch, 2 * std::max(r.scores, r.output), needed));
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
  share(plan, device, bounds, r);
  const Lack lack = lack_of(plan, device, r, held);
  r.least = fragments ? lack.least : held + least_other_wgmma + plan.tile_words;
  r.demand = std::max(held + r.other, r.least);
  // a launch gives every thread the same before setmaxnreg, and that is what its launch shows
  const int launch = launch_limit(plan, device, bounds);
  r.registers_per_thread = plan.producer_warps == 0 ? std::min(r.demand, r.limit) : launch;
  const int over = std::max(0, r.least - r.limit);
  if (fragments) {
    r.parked_words = lack.parked;
    r.spill_words = 2 * lack.spilled;  // once for each of the two points
    if (plan.stages == 1 && device.compute_capability >= compiler_that_parks && over == 0)
      r.parked_words = std::max(0, r.demand - keys_in_flight - r.limit);
    r.stack_words = r.parked_words + lack.spilled;
  } else {
    if (plan.known_registers == 0) refuse_wide_wgmma(plan, r, launch);
    r.parked_words = std::min(over, plan.tile_words);  // stored once as well
    const int lacking = over - r.parked_words;
    r.spill_words = lacking == 0 ? 0 : 2 * (plan.p_in_smem ? std::min(r.scores, r.output) : lacking);
    r.stack_words = r.parked_words + r.spill_words;
  }
  const bool dynamic_ring = plan.persistence == Persistence::dynamic && plan.stages > 1;
  const int producer_words =
      plan.producer_words > 0 ? plan.producer_words : (dynamic_ring ? least_of_dynamic_producer : 0);
  if (plan.producer_warps > 0) r.producer_stack_words = std::max(0, producer_words - r.producer_limit);
  if (plan.known_registers != 0) {
    r.known = true;
    r.registers_per_thread = plan.known_registers;
    r.spill_words = plan.spill_words_per_key_tile;
    r.parked_words = plan.spill_words_per_cta;
  }
  const int of_tile = r.spill_words + (r.known ? 0 : r.parked_words);
  r.stored.enters = plan.spill_words_entering, r.stored.once = r.parked_words - r.stored.enters;
  r.stored.masked = r.stored.whole = r.spill_words;
  r.loaded.once = r.known ? r.parked_words : 0, r.loaded.masked = r.loaded.whole = of_tile;
  return r;
}

}  // namespace attest
