// What a compiler made of gpu/sm80's kernels (simulator/measured/registers_gpu_sm80.csv, which travels in the program)
// and of FlashAttention 2's (compiled_fa2.h).
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "attest/plan/kernel_plan.h"
#include "attest/problem/case.h"
#include "attest/simulator/device.h"
#include "attest/simulator/registers.h"
#include "attest/simulator/step_time.h"
#include "attest/simulator/tile_walk.h"
#include "compiled_spill.h"
#include "spill_trace.h"

namespace attest {

/// `plan`, which `name` names, with the registers of the kernel that gpu/sm80 launches for a case and the words that it
/// stores: in each key tile, those of ALiBi's branch where there is ALiBi; once a CTA, those of the first tile's
/// rescaled O and of two runs of key tiles among them; and by how much an SM's older CTA is faster
/// (simulator/measured/cta_leads.csv). Masked tiles are taken for whole ones. With those of FlashAttention 2's kernel
/// where `name` is fa2: words of a turn of its loop, and as once a CTA the others of its frame. Unchanged where the
/// plan is another one (made smaller for the device, 32-bit or 8-bit inputs, FlashAttention 3's or cuDNN's) or the
/// device's architecture was not compiled for.
KernelPlan with_compiled_registers(KernelPlan plan, std::string_view name, const Case& c, const DeviceSpec& device);

/// Of the compiled kernel whose registers and spill `plan` has: the one that `name` names, or any of its tiles. None
/// where there is none.
std::optional<CompiledSpill> compiled_spill(const KernelPlan& plan, std::string_view name, const Case& c,
                                            const DeviceSpec& device);

/// What a warp of FlashAttention 2's kernel executes whose registers and spill a plan has, by the same places. None of
/// other plans and where the kernel is not known.
std::optional<PlaceCounts> compiled_instructions(const KernelPlan& plan, const Case& c, const DeviceSpec& device);

/// Of these, what a key tile's copies of rows that are no whole columns take more; 0 of other plans.
int compiled_column_instructions(const KernelPlan& plan, const Case& c, const DeviceSpec& device);

/// Of gpu/sm80's kernel whose registers and spill a plan has: a key tile's phases. Empty where they are not known, and
/// where a case asks for what stands between them (scores that are changed, copies by a function, segments of keys).
std::vector<AlonePhase> compiled_alone(const KernelPlan& plan, std::string_view name, const Case& c,
                                       const DeviceSpec& device);

/// Machine code of a compiled kernel, with the functions that it calls, in bytes. None where the kernel is not known.
std::optional<double> compiled_code_bytes(const KernelPlan& plan, std::string_view name, const Case& c,
                                          const DeviceSpec& device);

/// Of a compiled kernel in that case, from simulator/measured/spill_traces.csv: kernels of gpu/sm80. Empty where there
/// is none.
SpillTraces compiled_traces(const KernelPlan& plan, std::string_view name, const Case& c, const DeviceSpec& device);

/// Of that kernel, and of its trace, where there is one, the words that a whole tile stores. None where the kernel is
/// not known or spills nothing.
std::optional<LocalFrame> compiled_frame(const KernelPlan& plan, std::string_view name, const Case& c,
                                         const DeviceSpec& device);

/// Of that kernel's forward launch, shared-memory wavefronts that an H200's counters leave out, of all and of those
/// without conflicts: they take the predicate P0 for false, on which copies by simulator/measured/unseen_copies.csv
/// hang (docs/results/h200-banks.md). Negative where they see more than there are.
struct UnseenWavefronts {
  double all = 0, ideal = 0;
};
UnseenWavefronts unseen_wavefronts(const KernelPlan& plan, std::string_view name, const Case& c,
                                   const DeviceSpec& device);

}  // namespace attest
