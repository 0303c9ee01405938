#include "trace_sms.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

namespace attest {
namespace {

using Json = TraceEvents::Json;
using Kind = TimelineEvent::Kind;

constexpr std::size_t max_detailed_slices = 40'000;  // of warps and copies: about 5 MB
constexpr int threads_a_slot = 100, copy_thread = 1, first_warp_thread = 2;

/// Which threads of the trace stand for a CTA's warps, and how its key tile divides among them.
struct Warps {
  int rows = 1;      // warpgroups with wgmma, else warps
  int together = 1;  // of them, as many have a tensor pipe each; the next ones take turns with these
  int turns = 1;

  /// Of a key tile, for all that take turns. CTAs that share an SM get a part of its tensor pipes each: a phase takes
  /// its time on the pipe times the CTAs, so that no pipe gives more than it has.
  struct Shares {
    double scores = 0, softmax = 0, output = 0;
  };
  std::vector<Shares> shares;  // with n CTAs an SM, at [n - 1]

  explicit Warps(const SimulationReport& r) {
    const KernelPlan& plan = r.plan;
    const auto schedulers = static_cast<int>(r.device.warp_schedulers_per_sm);
    const bool groups = plan.matrix_kind == MatrixKind::wgmma;
    rows = groups ? plan.num_warps / 4 : plan.num_warps;
    together = groups ? 1 : schedulers;
    turns = (rows + together - 1) / together;
    double tensor = 0, vector = 0;
    for (const Utilisation& u : r.utilisation) {
      if (u.resource == "tensor") tensor = u.fraction;
      for (const auto* resource : {"exp", "FMA", "ALU", "issue"})
        if (u.resource == resource) vector = std::max(vector, u.fraction);
    }
    const std::vector<double>& cycles = r.walk_options.cycles_per_key_tile;
    shares.resize(cycles.size());
    if (r.walk.key_tiles == 0) return;
    // what a warp's key tile keeps a scheduler's units busy for, in cycles of the walk, which is stretched to r.cycles
    const double of_warp = r.walk.cycles * static_cast<double>(r.device.num_sms) /
                           static_cast<double>(r.walk.key_tiles) * schedulers / plan.num_warps;
    for (std::size_t i = 0; i < cycles.size(); ++i) {
      const double sharing = std::max(1.0, static_cast<double>(i + 1) * plan.num_warps / schedulers);
      const double of_tensor = std::min(1.0, tensor * of_warp * sharing / cycles[i]);
      shares[i].scores = of_tensor * plan.headdim / (plan.headdim + plan.headdim_v);
      shares[i].softmax = std::min(1.0, vector * of_warp * sharing / cycles[i]);
      shares[i].output = of_tensor - shares[i].scores;
    }
  }
};

/// One CTA slot of an SM.
class SlotTrace {
 public:
  SlotTrace(const SimulationReport& r, const Warps& warps, const TraceClock& clock, TraceEvents& events, int sm,
            int slot)
      : r_(r),
        plan_(r.plan),
        warps_(warps),
        clock_(clock),
        events_(events),
        pid_(first_sm_process + sm),
        tid_(slot * threads_a_slot) {
    const auto name = [&](int thread, std::string_view what) {
      events_.name_thread(pid_, tid_ + thread, fmt::format("slot {}: {}", slot, what));
    };
    name(0, plan_.cluster > 1 ? fmt::format("clusters of {} CTAs, the first on this SM", plan_.cluster) : "CTAs");
    if (plan_.producer_warps > 0)
      name(copy_thread, fmt::format("producer, {} warps: bulk copies", plan_.producer_warps));
    else
      name(copy_thread, plan_.copy_kind == CopyKind::cp_async ? "copies by cp.async" : "copies through registers");
    const std::string_view role = plan_.producer_warps > 0 ? "consumer " : "";
    for (int row = 0; row < warps_.rows; ++row)
      name(first_warp_thread + row,
           fmt::format("{}{} {}", role, plan_.matrix_kind == MatrixKind::wgmma ? "warpgroup" : "warp", row));
  }

  void write(const std::vector<const TimelineEvent*>& events, double detailed_until) {
    std::size_t start = 0;  // of this CTA
    for (std::size_t i = 0; i < events.size(); ++i) {
      const TimelineEvent& e = *events[i];
      const TraceNs begin = clock_(e.begin), end = clock_(e.end);
      if (e.kind == Kind::start) {
        std::size_t last = start = i;
        while (last + 1 < events.size() && events[last + 1]->kind != Kind::start) ++last;
        write_cta(e, clock_(events[last]->end));
        events_.slice(pid_, tid_, "start: Q and the first K arrive", begin, end);
      } else if (e.kind == Kind::key_tile) {
        events_.slice(pid_, tid_, tiles(e), begin, end);
        if (e.begin >= detailed_until) continue;
        for (int row = 0; row < warps_.rows; ++row)
          write_phases(row, warps_.shares[static_cast<std::size_t>(e.ctas) - 1], begin, end);
        // a slot of shared memory is free for the next tile when the tile in it has been used
        const auto ahead = static_cast<std::size_t>(std::max(1, plan_.stages - 1));
        const bool asynchronous = plan_.copy_kind != CopyKind::synchronous;
        if (asynchronous)
          write_copies(e, clock_(events[i - std::min(ahead, i - start)]->begin), begin);
        else
          write_copies(e, begin, end);
      } else {
        events_.slice(pid_, tid_, "finish: O and LSE leave", begin, end);
      }
    }
  }

 private:
  void write_cta(const TimelineEvent& e, TraceNs end) {
    const std::string_view what = plan_.cluster > 1 ? "Cluster" : "CTA", from = plan_.cluster > 1 ? "from " : "";
    events_.slice(pid_, tid_,
                  fmt::format("{}: batch {}, head {}, {}query tile {}", what, e.batch, e.head, from, e.q_tile),
                  clock_(e.begin), end, {{"batch", e.batch}, {"head", e.head}, {"query_tile", e.q_tile}});
  }

  std::string tiles(const TimelineEvent& e) const {
    const int more = r_.walk.key_tiles_per_event - 1;
    return more == 0 ? fmt::format("key tile {}", e.key_tile)
                     : fmt::format("key tiles {} to {} at most", e.key_tile, e.key_tile + more);
  }

  /// Warps that share a tensor pipe take it in turns: the scores of all, then, at the end, P V of all.
  void write_phases(int row, const Warps::Shares& shares, TraceNs begin, TraceNs end) {
    const int turn = row / warps_.together, tid = tid_ + first_warp_thread + row;
    const auto at = [&](double share) { return begin + std::llround(static_cast<double>(end - begin) * share); };
    const double of_scores = shares.scores / warps_.turns, of_output = shares.output / warps_.turns;
    const double softmax = of_scores * (turn + 1), output = 1 - of_output * (warps_.turns - turn);
    events_.slice(pid_, tid, "S = Q K^T", at(of_scores * turn), at(softmax));
    events_.slice(pid_, tid, "softmax", at(softmax), at(std::min(output, softmax + shares.softmax)));
    events_.slice(pid_, tid, "O += P V", at(output), at(output + of_output));
  }

  /// K, then V, from when there is room for them, and there before they are used.
  void write_copies(const TimelineEvent& tile, TraceNs room, TraceNs deadline) {
    const DeviceSpec& d = r_.device;
    const int tiles_copied = r_.walk.key_tiles_per_event;
    const double k = 1.0 * plan_.tile_bytes(Operand::k) * tiles_copied;
    const double v = 1.0 * plan_.tile_bytes(Operand::v) * tiles_copied;
    // L2 serves all SMs alike, and a cluster once
    const double seconds =
        (k + v) * static_cast<double>(d.num_sms) * r_.ctas_per_sm / d.l2_bytes_per_second / plan_.cluster;
    const TraceNs begin = std::min(std::max(room, copied_until_), deadline);
    const TraceNs end = std::min(deadline, begin + static_cast<TraceNs>(std::llround(1e9 * seconds)));
    const TraceNs middle = begin + std::llround(static_cast<double>(end - begin) * k / (k + v));
    const std::string name = tiles(tile);
    events_.slice(pid_, tid_ + copy_thread, "K of " + name, begin, middle, {{"bytes", k}});
    events_.slice(pid_, tid_ + copy_thread, "V of " + name, middle, end, {{"bytes", v}});
    copied_until_ = end;
  }

  const SimulationReport& r_;
  const KernelPlan& plan_;
  const Warps& warps_;
  const TraceClock& clock_;
  TraceEvents& events_;
  int pid_, tid_;
  TraceNs copied_until_ = 0;
};

}  // namespace

double write_sms(const SimulationReport& r, const TraceClock& clock, TraceEvents& events) {
  if (r.walk.timeline.empty()) return 0;
  const Warps warps(r);
  const std::size_t slices_a_tile = 3 * static_cast<std::size_t>(warps.rows) + 2;
  std::map<int, std::map<int, std::vector<const TimelineEvent*>>> by_sm;  // and slot
  std::size_t slices = 0;
  double detailed_until = r.walk.cycles, last = 0;
  for (const TimelineEvent& e : r.walk.timeline) {
    by_sm[e.sm][e.slot].push_back(&e);
    last = std::max(last, e.end);
    if (e.kind != Kind::key_tile) continue;
    slices += slices_a_tile;
    if (slices > max_detailed_slices) detailed_until = std::min(detailed_until, e.begin);
  }
  for (const auto& [sm, slots] : by_sm) {
    events.name_process(first_sm_process + sm, fmt::format("fused: SM {} of 0 to {}", sm, r.device.num_sms - 1));
    for (const auto& [slot, of_slot] : slots)
      SlotTrace(r, warps, clock, events, sm, slot).write(of_slot, detailed_until);
  }
  return std::min(detailed_until, last);
}

}  // namespace attest
