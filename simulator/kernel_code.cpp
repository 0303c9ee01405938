#include "kernel_code.h"

#include "copy_time.h"

namespace attest {
namespace {

// simulator/measured/kernel_paths.csv, on compute capability 9.0: means of its kernels, of those of different tiles as
// lines over the words of O or S that a lane has. Its before and after, and its score terms, are within a seventh.
CodeTime operator+(CodeTime a, CodeTime b) {
  return {a.instructions + b.instructions, a.cycles + b.cycles, a.jumps + b.jumps};
}

double scores_of_lane(const KernelPlan& plan) { return plan.rows_per_warp() * plan.tile_n / 32.0; }

// What a jump over 32 instructions adds to the 32 after it, for a warp in 67 KB of code: what these kernels and their
// general loops have, beyond the 32 KB from which on fetching takes longer (docs/results/h200-sm/fetch.csv: 4.35 - 1.15
// cycles an instruction).
constexpr double jump_cycles = 102;
// In fewer, as copy_paths.py has a jump to code that is not near: it is taken, and its line is fetched.
constexpr double jump_within_l1_cycles = 4.7 + 9.5;

}  // namespace

CodeTime operator*(double n, CodeTime t) { return {n * t.instructions, n * t.cycles, n * t.jumps}; }

double waits_of(const CodeTime& code) { return code.cycles - code.instructions + code.jumps * jump_cycles; }

CodeTime code_around_tiles(const KernelPlan& plan) {
  const double outputs = plan.rows_per_warp() * plan.columns(Operand::o) / 32.0;
  if (copies_by_call(plan)) return CodeTime{785, 1437, 36} + outputs * CodeTime{4.6, 12.6, 0};
  return CodeTime{357, 846, 13} + outputs * CodeTime{6.5, 9.9, 0};
}

// .text of nvcc 13.0, sm_90a: 214,144 bytes of d64, 241,536 of d128, 161,792 of d256, 146,304 and 169,728 of the short
// tiles, within 7% as lines over a lane's words of S and O.
double code_bytes(const KernelPlan& plan) {
  if (!copies_by_call(plan)) return 0;
  const double outputs = plan.rows_per_warp() * plan.columns(Operand::o) / 32.0;
  return 146'304 + 2120 * (scores_of_lane(plan) - 32) + 396 * (outputs - 64);
}

CodeTime code_of_tile(const KernelPlan& plan) {
  if (!copies_by_call(plan)) return {};
  // those of scores and masks, which make a loop longer than that, are apart
  return {0, jumps_of_tile * jump_within_l1_cycles, 0};
}

CodeTime code_of_scores(const KernelPlan& plan) {
  if (!copies_by_call(plan) || !plan.modifies_scores()) return {};
  const double scores = scores_of_lane(plan);
  constexpr CodeTime scaled{28, 112, 2}, a_score{1.2, 1.2, 0};
  const CodeTime plain = scaled + scores * a_score;
  CodeTime sum = plan.softcap ? CodeTime{36, 194, 2} + scores * CodeTime{6.2, 9.6, 0} : plain;
  // the distance of a row asks for each score again whether heads share tiles
  if (plan.alibi) sum = sum + CodeTime{6, 1, -1} + scores * CodeTime{6.5, 13.8, 1};
  if (plan.bias) sum = sum + CodeTime{38, 0, -1} + scores * CodeTime{4.0, 8.9, 0};
  return sum;
}

CodeTime code_of_masks(const KernelPlan& plan, bool segments) {
  if (!copies_by_call(plan)) return {};
  if (!segments) return CodeTime{47, 22, 0} + scores_of_lane(plan) * CodeTime{2.1, 5.8, 0.1};
  return CodeTime{43, 0, 0} + scores_of_lane(plan) * CodeTime{11.3, 37.8, 1.5};
}

}  // namespace attest
