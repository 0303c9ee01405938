#include "attest/simulator/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trace_events.h"
#include "trace_sms.h"

namespace attest {
namespace {

using Json = TraceEvents::Json;
using Ns = TraceNs;
constexpr int fused_process = 1, unfused_process = 2, kernel_thread = 0;

class FusedTrace {
 public:
  FusedTrace(const SimulationReport& r, TraceEvents& events)
      : r_(r), events_(events), begin_(ns(1e6 * r.device.launch_overhead_seconds)) {
    end_ = begin_ + ns(r.time_us);
  }

  void write_kernel() {
    events_.name_process(fused_process, fmt::format("fused: {} on {}", r_.plan_name, r_.device.description));
    events_.name_thread(fused_process, kernel_thread, "kernels");
    if (r_.time_us == 0) return;
    events_.slice(fused_process, kernel_thread, "launch", 0, begin_);
    events_.slice(fused_process, kernel_thread, fmt::format("fused attention, bound by {}", r_.bound), begin_, end_,
                  {{"time_us", r_.time_us},
                   {"dram_read_bytes", r_.dram_read_bytes},
                   {"dram_write_bytes", r_.dram_write_bytes},
                   {"flops", r_.flops_executed},
                   {"ctas", r_.walk.ctas}});
    average("DRAM", "GB/s", (r_.dram_read_bytes + r_.dram_write_bytes) / r_.time_us / 1e3);
    average("L2 to SMs", "GB/s", r_.l2_read_bytes / r_.time_us / 1e3);
    average("arithmetic", "TFLOP/s", r_.flops_executed / r_.time_us / 1e6);
    for (const Utilisation& u : r_.utilisation) average(fmt::format("{} busy", u.resource), "%", 100 * u.fraction);
  }

  /// Returns until when warps and copies are shown, in microseconds of the trace.
  double write_sms() {
    if (r_.time_us == 0) return 0;
    const TraceClock clock = [this](double cycles) { return at(cycles); };
    return static_cast<double>(at(attest::write_sms(r_, clock, events_))) / 1000;
  }

 private:
  static Ns ns(double us) { return std::llround(1000 * us); }
  /// A time of the walk. Where bytes over a rate take longer than the walk, all of it is stretched to the kernel's
  /// time.
  Ns at(double cycles) const {
    const double stretch = r_.walk.cycles == 0 ? 0 : std::min(1.0, cycles / r_.walk.cycles);
    return begin_ + ns(r_.time_us * stretch);
  }

  void average(std::string_view what, std::string_view unit, double value) {
    events_.counter(fused_process, what, unit, begin_, value);
    events_.counter(fused_process, what, unit, end_, 0);
  }

  const SimulationReport& r_;
  TraceEvents& events_;
  Ns begin_, end_ = 0;
};

void write_unfused(const SimulationReport& r, TraceEvents& events) {
  events.name_process(unfused_process,
                      fmt::format("unfused: {} kernels on {}", UnfusedCost::kernels, r.device.description));
  events.name_thread(unfused_process, kernel_thread, "kernels");
  const double launch_us = 1e6 * r.device.launch_overhead_seconds;
  double from_us = 0;
  const auto ns = [](double us) { return static_cast<Ns>(std::llround(1000 * us)); };
  for (const UnfusedKernel& kernel : r.unfused.steps) {
    if (kernel.time_us == 0) continue;
    const Ns launch = ns(from_us), begin = ns(from_us + launch_us), end = ns(from_us + kernel.time_us);
    const double run_us = kernel.time_us - launch_us, bytes = kernel.dram_read_bytes + kernel.dram_write_bytes;
    events.slice(unfused_process, kernel_thread, "launch", launch, begin);
    events.slice(unfused_process, kernel_thread, kernel.name, begin, end,
                 {{"dram_read_bytes", kernel.dram_read_bytes},
                  {"dram_write_bytes", kernel.dram_write_bytes},
                  {"flops", kernel.flops},
                  {"bound", kernel.bound}});
    const auto average = [&](std::string_view what, std::string_view unit, double value) {
      events.counter(unfused_process, what, unit, begin, run_us > 0 ? value / run_us : 0);
      events.counter(unfused_process, what, unit, end, 0);
    };
    average("DRAM", "GB/s", bytes / 1e3);
    for (const Utilisation& u : kernel.utilisation)
      average(fmt::format("{} busy", u.resource), "%", 100 * u.fraction * run_us);
    average("arithmetic", "TFLOP/s", kernel.flops / 1e6);
    from_us += kernel.time_us;
  }
}

}  // namespace

Json trace_json(const SimulationReport& r) {
  TraceEvents events;
  FusedTrace fused(r, events);
  fused.write_kernel();
  write_unfused(r, events);
  const double detailed_until_us = fused.write_sms();
  return {{"displayTimeUnit", "ns"},
          {"otherData",
           {{"source", "attest predict --trace: simulated, not measured"},
            {"case", command_line(r.c)},
            {"plan", r.plan_name},
            {"device", r.device.description},
            {"time_us", r.time_us},
            {"unfused_time_us", r.unfused.time_us},
            {"phases",
             "S, softmax and P V share a key tile in the model's proportions, and copies take their bytes over a rate; "
             "neither is simulated"},
            {"key_tiles_per_slice", r.walk.key_tiles_per_event},
            {"warps_and_copies_until_us", detailed_until_us}}},
          {"traceEvents", events.take()}};
}

}  // namespace attest
