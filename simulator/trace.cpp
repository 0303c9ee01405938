#include "attest/simulator/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

/// Whole nanoseconds, so that slices nest exactly.
using Ns = std::int64_t;
constexpr int fused_process = 1, unfused_process = 2;
constexpr int kernel_thread = 0, first_slot_thread = 10, first_copy_thread = 1010;

class Events {
 public:
  void name_process(int pid, std::string_view name) { metadata("process_name", pid, 0, {{"name", name}}); }
  void name_thread(int pid, int tid, std::string_view name) {
    metadata("thread_name", pid, tid, {{"name", name}});
    metadata("thread_sort_index", pid, tid, {{"sort_index", tid}});
  }
  void slice(int pid, int tid, std::string_view name, Ns begin, Ns end, const Json& args = Json::object()) {
    Json event = {{"ph", "X"}, {"name", name}, {"pid", pid}, {"tid", tid}, {"ts", us(begin)}, {"dur", us(end - begin)}};
    if (!args.empty()) event["args"] = args;
    timed_.push_back({begin, end - begin, std::move(event)});
  }
  void counter(int pid, std::string_view name, std::string_view unit, Ns at, double value) {
    timed_.push_back({at,
                      0,
                      {{"ph", "C"},
                       {"name", name},
                       {"pid", pid},
                       {"tid", 0},
                       {"ts", us(at)},
                       {"args", {{std::string(unit), value}}}}});
  }

  /// Ascending; of what begins together the longest first, so that a slice stands before what it holds.
  Json take() {
    std::stable_sort(timed_.begin(), timed_.end(), [](const Timed& a, const Timed& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.duration > b.duration;
    });
    for (Timed& t : timed_) all_.push_back(std::move(t.event));
    return std::move(all_);
  }

 private:
  struct Timed {
    Ns begin, duration;
    Json event;
  };
  static double us(Ns ns) { return static_cast<double>(ns) / 1000; }
  void metadata(std::string_view what, int pid, int tid, const Json& args) {
    all_.push_back({{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", args}});
  }
  Json all_ = Json::array();
  std::vector<Timed> timed_;
};

/// Shares of a key tile, by how busy what each phase needs is over the kernel.
struct Phases {
  double scores = 0, softmax = 0, output = 0;

  explicit Phases(const SimulationReport& r) {
    double tensor = 0, vector = 0;
    for (const Utilisation& u : r.utilisation) {
      if (u.resource == "tensor") tensor = u.fraction;
      if (u.resource == "exp" || u.resource == "issue") vector = std::max(vector, u.fraction);
    }
    const double all = tensor + vector, of_scores = 1.0 * r.plan.headdim / (r.plan.headdim + r.plan.headdim_v);
    if (all == 0) return;
    scores = tensor / all * of_scores;
    softmax = vector / all;
    output = 1 - scores - softmax;
  }
};

class FusedTrace {
 public:
  FusedTrace(const SimulationReport& r, Events& events)
      : r_(r), events_(events), phases_(r), begin_(ns(1e6 * r.device.launch_overhead_seconds)) {
    end_ = begin_ + ns(r.time_us);
  }

  void write() {
    name();
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
    std::vector<const TimelineEvent*> of_slot;
    for (int slot = 0; slot < r_.ctas_per_sm; ++slot) {
      of_slot.clear();
      for (const TimelineEvent& e : r_.walk.timeline)
        if (e.slot == slot) of_slot.push_back(&e);
      write_slot(slot, of_slot);
    }
  }

 private:
  static Ns ns(double us) { return std::llround(1000 * us); }
  /// A time of the walk. Where bytes over a rate take longer than the walk, all of it is stretched to the kernel's
  /// time.
  Ns at(double cycles) const {
    const double stretch = r_.walk.cycles == 0 ? 0 : std::min(1.0, cycles / r_.walk.cycles);
    return begin_ + ns(r_.time_us * stretch);
  }
  static int slot_thread(int slot) { return first_slot_thread + slot; }
  static int copy_thread(int slot) { return first_copy_thread + slot; }

  void name() {
    events_.name_process(fused_process, fmt::format("fused: {} on {}", r_.plan_name, r_.device.description));
    events_.name_thread(fused_process, kernel_thread, "kernels");
    if (r_.walk.timeline.empty()) return;
    for (int slot = 0; slot < r_.ctas_per_sm; ++slot) {
      events_.name_thread(fused_process, slot_thread(slot),
                          fmt::format("SM 0, slot {}: {} warps", slot, r_.plan.warps()));
      events_.name_thread(fused_process, copy_thread(slot), fmt::format("SM 0, slot {}: copies", slot));
    }
  }

  void average(std::string_view what, std::string_view unit, double value) {
    events_.counter(fused_process, what, unit, begin_, value);
    events_.counter(fused_process, what, unit, end_, 0);
  }

  void write_slot(int slot, const std::vector<const TimelineEvent*>& events) {
    using Kind = TimelineEvent::Kind;
    const int tid = slot_thread(slot);
    for (std::size_t i = 0; i < events.size(); ++i) {
      const TimelineEvent& e = *events[i];
      if (e.kind == Kind::start) {
        std::size_t last = i;
        while (last + 1 < events.size() && events[last + 1]->kind != Kind::start) ++last;
        const Json place = {{"batch", e.batch}, {"head", e.head}, {"query_tile", e.q_tile}};
        events_.slice(fused_process, tid,
                      fmt::format("CTA: batch {}, head {}, query tile {}", e.batch, e.head, e.q_tile), at(e.begin),
                      at(events[last]->end), place);
        events_.slice(fused_process, tid, "start: Q and the first K arrive", at(e.begin), at(e.end));
      } else if (e.kind == Kind::key_tile) {
        write_key_tile(tid, e);
        const bool synchronous = r_.plan.copy_kind == CopyKind::synchronous || i == 0;
        write_copy(slot, e, synchronous ? e : *events[i - 1]);
      } else {
        events_.slice(fused_process, tid, "finish: O and LSE leave", at(e.begin), at(e.end));
      }
    }
  }

  std::string tiles(const TimelineEvent& e) const {
    const int more = r_.walk.key_tiles_per_event - 1;
    return more == 0 ? fmt::format("key tile {}", e.key_tile)
                     : fmt::format("key tiles {} to {} at most", e.key_tile, e.key_tile + more);
  }

  void write_key_tile(int tid, const TimelineEvent& e) {
    const Ns begin = at(e.begin), end = at(e.end);
    const auto part = [&](double share) { return begin + std::llround(static_cast<double>(end - begin) * share); };
    events_.slice(fused_process, tid, tiles(e), begin, end, {{"key_tile", e.key_tile}});
    const Ns softmax = part(phases_.scores), output = part(phases_.scores + phases_.softmax);
    events_.slice(fused_process, tid, "S = Q K^T", begin, softmax);
    events_.slice(fused_process, tid, "softmax", softmax, output);
    events_.slice(fused_process, tid, "O += P V", output, end);
  }

  /// K and V of a key tile, on their way while the step before it runs.
  void write_copy(int slot, const TimelineEvent& tile, const TimelineEvent& under) {
    const DeviceSpec& d = r_.device;
    const double bytes = (r_.plan.tile_bytes(Operand::k) + r_.plan.tile_bytes(Operand::v)) *
                         static_cast<double>(r_.walk.key_tiles_per_event);
    const double seconds = bytes * static_cast<double>(d.num_sms) * r_.ctas_per_sm / d.l2_bytes_per_second;
    const Ns begin = at(under.begin), end = std::min(at(under.end), begin + ns(1e6 * seconds));
    events_.slice(fused_process, copy_thread(slot), fmt::format("K and V of {}", tiles(tile)), begin, end,
                  {{"bytes", bytes}});
  }

  const SimulationReport& r_;
  Events& events_;
  Phases phases_;
  Ns begin_, end_ = 0;
};

void write_unfused(const SimulationReport& r, Events& events) {
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
                  {"flops", kernel.flops}});
    const auto average = [&](std::string_view what, std::string_view unit, double value) {
      events.counter(unfused_process, what, unit, begin, run_us > 0 ? value / run_us : 0);
      events.counter(unfused_process, what, unit, end, 0);
    };
    average("DRAM", "GB/s", bytes / 1e3);
    average("DRAM busy", "%", 100 * 1e6 * bytes / r.device.dram_bytes_per_second);
    average("arithmetic", "TFLOP/s", kernel.flops / 1e6);
    from_us += kernel.time_us;
  }
}

}  // namespace

Json trace_json(const SimulationReport& r) {
  Events events;
  FusedTrace(r, events).write();
  write_unfused(r, events);
  return {{"displayTimeUnit", "ns"},
          {"otherData",
           {{"source", "attest predict --trace: simulated, not measured"},
            {"case", command_line(r.c)},
            {"plan", r.plan_name},
            {"device", r.device.description},
            {"time_us", r.time_us},
            {"unfused_time_us", r.unfused.time_us}}},
          {"traceEvents", events.take()}};
}

}  // namespace attest
