// A prediction as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing show.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "attest/simulator/report.h"

namespace attest {

/// Trace events in the JSON format of Chrome's trace viewer, in microseconds, ascending. Process 1 is the fused kernel:
/// its launch and itself, the CTAs of one SM slot by slot, their key tiles with S, softmax and P V inside, and the
/// copies that run under them. Process 2 is the unfused path's kernels. Both have counters of DRAM, L2 and arithmetic,
/// averages over each kernel. Phases share a key tile as the resources they need are busy; a copy takes what its bytes
/// take at an SM's share of L2's rate.
nlohmann::ordered_json trace_json(const SimulationReport& report);

}  // namespace attest
