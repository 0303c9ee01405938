// The SMs of a trace: what their CTA slots, producers and warps do.
#pragma once
#include <functional>

#include "attest/simulator/report.h"
#include "trace_events.h"

namespace attest {

/// Process of an SM in the trace: this and its number.
constexpr int first_sm_process = 100;

/// Where in the trace a time of the walk is, in cycles.
using TraceClock = std::function<TraceNs(double cycles)>;

/// A process for each SM that the walk followed. Returns the cycles up to which warps and copies are shown: the file
/// would grow beyond what a viewer takes if all of them were.
double write_sms(const SimulationReport& report, const TraceClock& clock, TraceEvents& events);

}  // namespace attest
