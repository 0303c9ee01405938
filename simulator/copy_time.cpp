#include "copy_time.h"

namespace attest {
namespace {

// Off the function's machine code on compute capability 9.0: instructions, how long control words have a warp stall at
// them, what it waits for loads from L1 and conversions, and what it takes to jump (simulator/measured/copy_paths.csv).
// Its five kernels agree within 2 instructions and 2 cycles a granule. In the call there are two kinds, each the mean
// of its kernels: those of several warps and two slots hold its arguments in uniform registers and wait for these (228
// to 265 instructions, 969 to 1150 cycles), the others do not (210 to 252, 603 to 708).
constexpr CopyTime call{229, 649}, call_of_slots{244, 1057}, pass_over_rows{15, 45}, past_the_end{-8, -40};

CopyTime operator*(double n, CopyTime t) { return {n * t.instructions, n * t.cycles}; }
CopyTime operator+(CopyTime a, CopyTime b) { return {a.instructions + b.instructions, a.cycles + b.cycles}; }

CopyTime granule(int bytes, bool page, bool packed) {
  const CopyTime of_row = bytes == 2 ? CopyTime{44, 246} : bytes == 4 ? CopyTime{43, 226} : CopyTime{41, 208};
  constexpr CopyTime wide{38, 181}, lookup{34, 193}, division{36, 197};
  return (bytes == 16 ? wide : of_row) + (page ? 1.0 : 0.0) * lookup + (packed ? 1.0 : 0.0) * division;
}

}  // namespace

bool copies_by_call(const KernelPlan& plan) { return plan.refill_call_words > 0 && plan.copy_kind != CopyKind::tma; }

CopyTime copy_time(const KernelPlan& plan, const DeviceSpec& device, Operand x, bool pages) {
  const bool page = pages && x != Operand::q, packed = plan.packed_heads > 1 && x == Operand::q;
  const int bytes = plan.copy_bytes(x);
  if (!copies_by_call(plan) || (bytes == 16 && !page && !packed)) return {};
  const int panels = plan.granules(x) / plan.copy_lanes(x), panel_bytes = plan.copy_lanes(x) * bytes;
  const int present = (plan.valid_columns(x) * plan.bytes(x) + panel_bytes - 1) / panel_bytes;
  const CopyTime each = granule(bytes, page, packed);
  const CopyTime rows = pass_over_rows + present * each + (panels - present) * (each + past_the_end);
  const int passes = (plan.rows(x) + plan.copy_rows(x) - 1) / plan.copy_rows(x);
  // 2 bytes go through registers, and each waits for the one before
  const CopyTime arrives{0, bytes == 2 ? device.l2_latency_cycles : 0};
  const CopyTime of_call = plan.num_warps > 1 && plan.stages > 1 ? call_of_slots : call;
  return device.copy_time_scale * (of_call + passes * rows) + passes * present * arrives;
}

}  // namespace attest
