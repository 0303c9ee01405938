// What a CTA waits for its machine code. An SM keeps some 32 KB of it; what is beyond is fetched from a cache that the
// SMs of a GPC share. CTAs that go in step share each line. Those that walk different numbers of key tiles are in
// different parts of the code, and each SM has its share of what the cache gives.
#pragma once
#include <cstdint>
#include <optional>

#include "attest/plan/kernel_plan.h"
#include "attest/problem/problem.h"
#include "attest/simulator/case_counts.h"
#include "attest/simulator/device.h"
#include "attest/simulator/registers.h"
#include "attest/simulator/step_time.h"

namespace attest {

/// Whether its CTAs walk different numbers of key tiles: where a mask or a window ends rows on one side, and lengths,
/// documents or a prefix. Those of a window that ends on both differ at the first and the last queries alone.
bool walk_apart(const Problem& p, const KernelPlan& plan);

/// Of code that a CTA walks from its start to its end, each byte once: around its key tiles, in those that are masked,
/// each with code of its own where the plan says so, and in those that are not; of machine code, where it is known.
double walked_code_bytes(const StepDemand& demand, const KernelPlan& plan, const DeviceSpec& device,
                         const KeyRuns& runs, const std::optional<PlaceCounts>& code = {});

/// The same of kernels that call functions, which copy granule after granule, and jump: with what is fetched behind
/// their jumps. `pages`: as copy_time() has it.
double fetched_code_bytes(const StepDemand& demand, const KernelPlan& plan, const DeviceSpec& device,
                          const KeyRuns& runs, bool pages);

/// What a launch brings along of a kernel's code, in bytes: its first 64 KiB (`cold_code` in docs/results/h100.md).
double launched_code_bytes(double code_bytes);

/// What a GPC asks L2 for beside that: of what its CTAs fetch the part that a kernel's other code has of it.
double asked_code_bytes(double code_bytes, double fetched);

/// Cycles that a launch takes longer where so much of it comes from DRAM, of kernels that call functions. CTAs of
/// others walk straight on: FlashAttention 2's take as long with the code in their GPC as from DRAM.
double cold_code_cycles(double asked);

/// What DRAM reads of a kernel's code, in bytes, and cycles that it takes longer, where L2 does not have it.
struct ColdCode {
  double bytes = 0, cycles = 0;
};
/// Of a kernel with so much code; `code`: its instructions by place, where they are known.
ColdCode cold_code(double code_bytes, const StepDemand& demand, const KernelPlan& plan, const DeviceSpec& device,
                   const KeyRuns& runs, bool pages, const std::optional<PlaceCounts>& code = {});

/// Cycles that a CTA, which takes `cycles` without them, waits for so much code beside the others of its SM: as one
/// that visits the SM's share of the cache once (`walked_code` in docs/results/h200-sm.md). One alone waits for none.
double code_wait_cycles(double code_bytes, double cycles, int ctas_per_sm, const DeviceSpec& device);

}  // namespace attest
