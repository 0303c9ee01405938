#include "copy_time.h"

#include <algorithm>

#include "address.h"
#include "attest/simulator/step_time.h"

namespace attest {
namespace {

// Off the function's machine code on compute capability 9.0: instructions, how long control words have a warp stall at
// them, what it waits for loads from L1, conversions and products of 64 bits, and what it takes to jump and to fetch
// code (simulator/measured/copy_paths.csv). Its five kernels agree within 2 instructions and 2 cycles a granule. In the
// call there are two kinds, each the mean of its kernels: those of several warps and two slots hold its arguments in
// uniform registers and wait for these.
struct Call {
  CopyTime keys, pages, queries, pass_over_rows;
  double arguments;  // cycles more where L1 has none of them
};
constexpr Call call{{265, 962}, {250, 862}, {228, 746}, {14, 40}, 733};
constexpr Call call_of_slots{{283, 1367}, {265, 1281}, {242, 1172}, {15, 49}, 854};

CopyTime operator*(double n, CopyTime t) { return {n * t.instructions, n * t.cycles, n * t.loads}; }
CopyTime operator+(CopyTime a, CopyTime b) {
  return {a.instructions + b.instructions, a.cycles + b.cycles, a.loads + b.loads};
}

CopyTime of_row(int bytes) {
  return bytes == 2 ? CopyTime{45, 261} : bytes == 4 ? CopyTime{43, 226} : CopyTime{41, 208};
}

CopyTime granule(int bytes, bool page, bool packed) {
  constexpr CopyTime wide{38, 181}, lookup{34, 212}, division{36, 209};
  return (bytes == 16 ? wide : of_row(bytes)) + (page ? 1.0 : 0.0) * lookup + (packed ? 1.0 : 0.0) * division;
}

/// More where columns of some lanes are past the end: each time they go ahead to where a warp's lanes meet.
CopyTime parting(int bytes) { return bytes == 2 ? CopyTime{2, 46} : CopyTime{1, 23}; }

/// A granule past the end, which is not loaded.
CopyTime zeros(int bytes, CopyTime granule) { return granule + (bytes == 2 ? CopyTime{-9, -55} : CopyTime{-8, -40}); }

}  // namespace

bool copies_by_call(const KernelPlan& plan) { return plan.refill_call_words > 0 && plan.copy_kind != CopyKind::tma; }

bool copies_a_granule_at_a_time(const KernelPlan& plan, Operand x, bool pages) {
  const bool page = pages && x != Operand::q, packed = plan.packed_heads > 1 && x == Operand::q;
  return copies_by_call(plan) && (plan.copy_bytes(x) < 16 || page || packed);
}

CopyTime copy_time(const KernelPlan& plan, const DeviceSpec& device, Operand x, bool pages, double missing) {
  const bool page = pages && x != Operand::q, packed = plan.packed_heads > 1 && x == Operand::q;
  const int bytes = plan.copy_bytes(x);
  if (!copies_a_granule_at_a_time(plan, x, pages)) return {};
  const int panels = plan.granules(x) / plan.copy_lanes(x), panel_bytes = plan.copy_lanes(x) * bytes;
  const int row_bytes = plan.valid_columns(x) * plan.bytes(x), present = (row_bytes + panel_bytes - 1) / panel_bytes;
  const int passes = (plan.rows(x) + plan.copy_rows(x) - 1) / plan.copy_rows(x);
  const Call& of_plan = plan.num_warps > 1 && plan.stages > 1 ? call_of_slots : call;
  const CopyTime each = granule(bytes, page, packed);
  const CopyTime rows = of_plan.pass_over_rows + present * each + (panels - present) * zeros(bytes, each) +
                        (row_bytes % panel_bytes != 0 ? 1.0 : 0.0) * parting(bytes);
  const CopyTime begin = (x == Operand::q ? of_plan.queries
                          : page          ? of_plan.pages
                                          : of_plan.keys) +
                         missing * CopyTime{0, of_plan.arguments};
  CopyTime time = device.copy_time_scale * (begin + passes * rows);
  if (bytes == 2) {  // through registers, and each granule waits for the one before
    time.loads = passes * std::min<double>(present, row_bytes / double{LineSampler::sector_bytes});
    time.cycles += time.loads * (device.l2_latency_cycles - cycles_from_l1(device));
  }
  return time;
}

}  // namespace attest
