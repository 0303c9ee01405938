// How long a key tile takes on an SM: a closed network of the resources that its warps share.
//
// Each warp in turn needs the tensor pipe, the exponential unit, the pipe of products and sums (FMA) and the issue
// slots of its scheduler, or the pipe of maxima, masks and packing (ALU) if that takes longer, and the SM's shared
// memory. Warps of one CTA and of other CTAs overlap, but for products by an mma.sync that holds its scheduler's issue:
// while one waits for shared memory another issues its softmax. The time of a round follows from the demands and the
// number of warps alone (queueing_network.h).
#pragma once

#include <vector>

#include "attest/plan/kernel_plan.h"
#include "attest/problem/case.h"
#include "attest/simulator/counts.h"
#include "attest/simulator/device.h"

namespace attest {

/// Of a key tile of compiled code, from one barrier to the next: cycles of a warp that has its scheduler to itself and
/// whose copies have landed, and those until it issues its copies, on average, which the next such phase is to find
/// there: one slot's V and K in turn, or those of a later key tile (simulator/measured/warp_alone.csv).
struct AlonePhase {
  double cycles = 0, copies_issued = 0;
  double of_fragments = 0, of_copies = 0;  // of all that the key tile loads and copies: the part in this phase
};

/// Cycles that one warp needs of each resource for one key tile, alone on it.
struct StepDemand {
  double tensor = 0;    // of its scheduler's quarter
  double exp = 0;       // likewise
  double issue = 0;     // likewise: one warp instruction a cycle
  double smem = 0;      // of the SM's shared memory
  double filled = 0;    // of that, by its copies that are not bulk
  double operands = 0;  // of the same, by wgmma, within the tensor pipe's time
  /// Of a warpgroup's softmax, for products that run beside it: cycles of the pipes for maxima and masks, for sums,
  /// for packing, for rescaling O; and what waits or is counted in none of them.
  double maxima = 0, sums = 0, packing = 0, rescaling = 0, fixed = 0;
  double epilogue = 0;   // once a query tile: O is divided and packed
  double waits = 0;      // of a warp with mma.sync on no resource: for what its own instructions have not brought yet
  double loads = 0;      // that a warp waits for one by one: in `waits` as if L2 had them
  double products = 0;   // of `issue`, by mma.sync
  double among_exp = 0;  // of `issue`, in the exponentials' time: what stands among them
  double barriers = 0;   // at which the warps of a CTA meet
  double fma = 0, alu = 0;   // of the pipes of its scheduler's quarter, at their own rates
  double l2 = 0;             // of its SM's share of L2, by local memory that L1 does not serve
  double l2_waited = 0;      // of that, what it waits for beside other warps: loads leave an SM behind its stores
  double l2_alone = 0;       // of `l2` what its SM's own way there takes, however few others ask
  double behind_copies = 0;  // of waiting to load, behind what the CTA's other warps copy
  // of a warpgroup: products that scale its scores, and of `fixed` what its lanes wait for each other's maxima, and
  // what stands among products
  double scaling = 0, exchange = 0, among_products = 0;
  double copy_gate = 0, turn_gate = 0;  // passing them: a copy that has landed, a turn handed on by another warpgroup
  double masks = 0;                     // of a masked key tile's issue, what a whole one has not
  double masked = 0;                    // part of the key tiles that are masked
  double modifiers = 0;                 // of `sums`, what softcap, ALiBi and a bias add to each score
  std::vector<AlonePhase> alone = {};   // empty: not known
};

/// Address arithmetic, loop control, moves and packing beside the instructions that the models list, but for what
/// scales denormals: in SASS 1.23 to 1.25 times the list for an mma.sync forward of this shape (947 instructions a key
/// tile) and FlashAttention 2 at headdim 128 (1189), 1.19 at 64 (1636).
inline constexpr double unlisted_instructions = 1.24;

/// Instructions of a warpgroup's key tile that are no arithmetic on scores or O, as FlashAttention 3's loops have them.
double loop_instructions(const KernelPlan& plan);

/// What of a case its kernel's code hangs on beside the plan.
struct CaseParts {
  bool pages = false;            // K and V lie in them
  bool segments = false;         // documents or a prefix bound a row's keys
  double missing_arguments = 0;  // of calls that copy: those that L1 lacks the arguments of
  int column_instructions = 0;   // a warp's key tile: what compiled code has for rows that are no whole columns
};
CaseParts parts_of(const Case& c);

/// Demands averaged over the key tiles of a case whose counts are given; counts.key_tiles > 0.
StepDemand step_demand(const KernelPlan& plan, const DeviceSpec& device, const Counts& counts, int spill_words,
                       CaseParts parts = {});

/// Cycles from a CTA's start of a key tile to its start of the next when `ctas` share its SM.
double cycles_per_key_tile(const StepDemand& demand, const KernelPlan& plan, const DeviceSpec& device, int ctas);

/// What of a CTA alone on its SM, whose phases are known, a key tile takes longer whose K and V come from DRAM; of
/// others nothing. Beside other CTAs copies are there in time.
double longer_from_dram(const StepDemand& demand, const KernelPlan& plan, const DeviceSpec& device);

/// `l2_alone` of so many lines of 128 bytes a warp, which an SM sends and receives one after the other, whatever L2 has
/// to do: `local` in bench/hardware, one SM, of 32 warps' 48 words each, 191,874 cycles of 49,152 that are stored,
/// 85,503 of as many that miss L1, and 278,334 of both, on an H100 and within 1% of each on an H200.
double l2_alone_cycles(double missing_lines, double stored_lines);

/// TileWalkOptions::l2_busy with `ctas` on each SM.
double l2_busy(const StepDemand& demand, const KernelPlan& plan, const DeviceSpec& device, int ctas);

/// How many key tiles each of num_sms SMs does in that time with `ctas` on it, as TileWalkOptions::paces has them: from
/// where nobody uses L2 to where it is `most_busy`. The less it is the nearer an SM's time of L2 is to `l2_alone`. What
/// one leaves where L2 does not give all as much (DeviceSpec::l2_shares) goes to the others: together they do as many
/// as with equal shares. Where L2 has no time left an SM gets its share, where nobody waits for another it gets what it
/// asks for, and between the two the share to the power of the part of the time that L2 is busy. Empty where all are
/// within a thousandth of one.
std::vector<std::vector<double>> sm_paces(const StepDemand& demand, const KernelPlan& plan, const DeviceSpec& device,
                                          int ctas, double most_busy);

/// Cycles that a CTA spends once, or a persistent one for each query tile, at its start and end: Q and the first K
/// arrive, or the first scores and the last products run with nothing beside them; O is made ready.
double cycles_per_cta(const StepDemand& demand, const KernelPlan& plan, const DeviceSpec& device);

/// Cycles of a persistent CTA with a producer that none of its query tiles has: until its first copy, for that copy,
/// and for the last O to leave.
double cycles_around_ctas(const KernelPlan& plan, const DeviceSpec& device);

/// Of a kernel of `ctas`, around all that they do: of one, and what those on other SMs add.
double launch_cycles(double ctas, const DeviceSpec& device);

/// Until a warp has `lines` lines that it asks for together, of any pages, where others ask too: the slowest of them,
/// each of which takes an exponential variate beyond its latency (`first_use` and `waits` in docs/results/h200-sm.md).
/// From DRAM L2's part is included.
double cycles_from_l2(int lines, const DeviceSpec& device);
/// Likewise of what L1 has: five more than from shared memory (`latencies`, there: 34 for the 29 of a device's file).
double cycles_from_l1(const DeviceSpec& device);
double cycles_from_dram(int lines, const DeviceSpec& device);
/// The standard deviation of the latter.
double deviation_from_dram(int lines, const DeviceSpec& device);

/// Bytes that L2 delivers to one SM in a clock when all ask for as much.
double l2_bytes_per_clock(const DeviceSpec& device);

/// Bytes whose reading alone keeps L2 busy as long as what is read and written beside each other: written bytes at
/// their own rate, and half of the time of those that are read, which is what all SMs reach together (`local` in
/// docs/results/h200-sm.md).
double l2_busy_bytes(double read, double written, const DeviceSpec& device);

/// Of each GPC over their mean: which are fast is the device's, how far they lie apart hangs on the matrix instruction.
std::vector<double> gpc_clocks(const KernelPlan& plan, const DeviceSpec& device);

/// How much a key tile's time varies from one to the next, as a fraction, with so many CTAs on the SM.
double step_deviation(const KernelPlan& plan, const DeviceSpec& device, int ctas);

}  // namespace attest
