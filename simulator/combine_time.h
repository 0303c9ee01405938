// The kernel that combines splits.
#pragma once
#include <cstdint>

#include "attest/plan/kernel_plan.h"
#include "attest/problem/case.h"
#include "attest/simulator/device.h"
#include "attest/simulator/tile_walk.h"

namespace attest {

/// A part of what a warp of gpu/sm80's combine() executes: instructions, cycles that they take it alone where every
/// load hits L1, and how often it waits for loads one after the other.
struct CombineCode {
  double instructions = 0, cycles = 0, waits = 0;
};
// simulator/measured/combine_paths.csv: all but the splits; four splits' O; weights of what 32 lanes hold. Of the waits
// those for LSE in `row` but the first, and that in `weights`, are for what L1 has.
inline constexpr CombineCode combine_row{375, 1413.9, 5}, combine_turn{222, 540.7, 3}, combine_weights{47, 211.6, 1};
inline constexpr int combine_argument_lines = 7;  // of 64 bytes that `row` reads; the same file
inline constexpr int combine_registers = 40;      // a thread; h200_panel.csv, launch__registers_per_thread

/// A CTA has combine_rows warps and rows, of one head or of those that share keys.
struct CombineWork {
  double ctas = 0;
  int splits = 1;
  double bytes = 0;      // of O and LSE that it reads
  double from_dram = 0;  // the part of them that L2 no longer has
  double lines = 4;      // of a row of O, in one split
};

/// Of a call in splits, behind its walk.
CombineWork combine_work(const Problem& p, const KernelPlan& plan, const TileWalk& walk);

/// Up to so many lines, below: of 8 nearly all warps go together, of 14 hardly any
/// (docs/results/h200-sm/combine_lse.csv).
inline constexpr int lines_of_warps_together = 12;
/// Sectors of 32 bytes that combine() writes of LSE, a word a warp. Those of warps that end within some cycles of each
/// other leave together: of a CTA that has its SM to itself, where a warp loads its partial LSE from so few lines that
/// the other warps' loads are not far behind. Other warps' leave one by one. `ctas`: combine()'s.
std::int64_t combined_lse_sectors(const Case& c, const KernelPlan& plan, const DeviceSpec& device, double ctas);

/// Cycles from its launch to its end. A warp executes its code, waits for the kernel's arguments, for LSE, then for the
/// O of each four splits; CTAs start one after the other, and an SM's share its issue slots.
double combine_cycles(const CombineWork& work, const DeviceSpec& device);

}  // namespace attest
