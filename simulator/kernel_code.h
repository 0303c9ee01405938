// What gpu/sm80's kernels execute beside what a plan implies, off their machine code: around the loops over key tiles,
// and in a general kind's key tiles for what a case asks of the scores. Of other kernels nothing is known; once a CTA
// they are taken for gpu/sm80's fast kind, which they are nearer to than to nothing.
#pragma once
#include "attest/plan/kernel_plan.h"

namespace attest {

/// Of a warp.
struct CodeTime {
  double instructions = 0;
  double cycles = 0;  // that they take it alone, once they have been fetched
  double jumps = 0;   // to code that has not been fetched with what is before it
};

CodeTime operator*(double n, CodeTime t);

/// Beyond issuing its instructions.
double waits_of(const CodeTime& code);

/// Once a CTA, before and after its key tiles.
CodeTime code_around_tiles(const KernelPlan& plan);

/// All that a general kind's kernel has, executed or not, in bytes; 0 of other kernels, of which gpu/sm80's fast kinds
/// have 64 KiB at most.
double code_bytes(const KernelPlan& plan);

/// A general kind's key tile beside what the plan implies: its jumps over the code of what a case does not ask for, as
/// long as the turns of a loop stay within the instructions' cache of 32 KB.
CodeTime code_of_tile(const KernelPlan& plan);
inline constexpr int jumps_of_tile = 8;  // `alike` of kernel_paths.csv has 6 to 8, and the loop's own

/// A key tile's scores, scaled and with softcap, ALiBi or bias; nothing for a kind that has no code for them.
CodeTime code_of_scores(const KernelPlan& plan);

/// A masked key tile's masks; `segments`: of documents or a prefix. Nothing for a kind that has no code for those.
CodeTime code_of_masks(const KernelPlan& plan, bool segments);

}  // namespace attest
