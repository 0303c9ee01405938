// A prediction as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing show.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "attest/simulator/report.h"

namespace attest {

/// Trace events in the JSON format of Chrome's trace viewer, in microseconds, ascending, some megabytes at most.
/// Process 1 is the fused kernel with its launch, process 2 the unfused path's kernels; both have counters of DRAM, L2
/// and arithmetic, averages over each kernel. Process 100 + n is SM n, of four SMs spread over those that have work:
/// for each CTA slot its CTAs (or clusters) and key tiles, its copies of K and V, and its warps or, with wgmma,
/// warpgroups with S, softmax and P V. The walk has when key tiles begin and end. Within them phases are drawn as the
/// model has the units busy: in a CTA, warps that share a tensor pipe take turns, and CTAs that share an SM have equal
/// parts of its pipes. A copy begins when a stage is free and takes what its bytes take at an SM's share of L2's rate.
/// otherData says from when on warps and copies are left out, for size.
nlohmann::ordered_json trace_json(const SimulationReport& report);

}  // namespace attest
