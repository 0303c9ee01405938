// What FlashAttention 2's forward kernels do as a wheel of PyTorch carries them:
// simulator/measured/registers_fa2_torch.csv, which travels in the program.
#pragma once
#include <array>

#include "attest/plan/kernel_plan.h"
#include "attest/problem/case.h"
#include "attest/simulator/case_counts.h"
#include "attest/simulator/device.h"
#include "attest/simulator/tile_walk.h"
#include "compiled_spill.h"

namespace attest {

struct CompiledFa2 {
  int registers = 0;
  int code_bytes = 0;
  LocalFrame frame;
  CompiledSpill spill;
  PlaceCounts instructions;  // that a warp executes, by the same places; what stands around key tiles is of the first
  int column_instructions = 0;  // of a turn of its loop, what one that copies whole rows has not
  /// Of Q, K and V: copies of 16 bytes a thread that the predicate P0 stops, by the same places, and those of them
  /// whose addresses hang on it too.
  std::array<PlaceCounts, 3> stopped, stale;
};

/// The kernel that is launched for a case on tiles of that plan, without what the wheel's kernels do not do (a bias, a
/// sink, segments, ALiBi, softcap), which would take more registers; nullptr where there is none: inputs of other than
/// 16 bits, splits and pages, which other kernels do, and architectures that the wheel has no code for.
const CompiledFa2* compiled_fa2(const KernelPlan& plan, const Case& c, const DeviceSpec& device);

/// Of a warp of each CTA that has key tiles, together: of counts by place of a kernel whose first key tiles have code
/// of their own, masked or not.
double of_all_ctas(const PlaceCounts& n, const KeyRuns& runs, std::int64_t key_tiles);

/// Of code that such a CTA walks, each instruction once, on average.
double walked_once(const PlaceCounts& instructions, const KeyRuns& runs);

}  // namespace attest
