#include "attest/simulator/trace.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

SimulationReport report_of(Problem p, std::string_view plan, const std::string& device) {
  Case c;
  c.problem = std::move(p);
  const DeviceSpec spec = load_device(device);
  return simulate(c, plan_named(plan, c, spec), spec, plan);
}

/// As a viewer reads it: from text.
Json events_of(const SimulationReport& r) { return Json::parse(trace_json(r).dump())["traceEvents"]; }
std::int64_t ns(const Json& us) { return std::llround(1000 * us.get<double>()); }

std::vector<SimulationReport> reports() {
  return {report_of({2, 8, 8, 1024, 1024, 64, 64, Dtype::fp16, {}, Causal::bottom_right, -1, -1}, "attest", "a100"),
          report_of({1, 32, 8, 4096, 4096, 128, 128, Dtype::bf16, {}, Causal::none, -1, -1}, "fa2", "h200"),
          report_of({1, 32, 8, 1, 8192, 128, 128, Dtype::bf16, {}, Causal::none, -1, -1}, "attest", "rtx4090"),
          report_of({1, 16, 16, 4096, 4096, 128, 128, Dtype::bf16, {}, Causal::bottom_right, -1, -1}, "fa3", "h100"),
          report_of({1, 16, 16, 2048, 2048, 128, 128, Dtype::bf16, {}, Causal::none, -1, -1}, "fa3", "h100")};
}

constexpr int first_sm = 100;  // its process
bool of_sm(const Json& e) { return e["ph"] == "X" && e["pid"].get<int>() >= first_sm; }
bool on_tensor_pipe(const Json& e) { return e["name"] == "S = Q K^T" || e["name"] == "O += P V"; }
/// Threads of a slot: CTAs, copies, then its warps.
int slot_of(const Json& e) { return e["tid"].get<int>() / 100; }
int row_of(const Json& e) { return e["tid"].get<int>() % 100 - 2; }

TEST(Trace, TimesAscendAndSlicesOfAThreadNest) {
  for (const SimulationReport& r : reports()) {
    SCOPED_TRACE(command_line(r.c));
    std::map<std::pair<int, int>, std::vector<std::int64_t>> open;  // ends of the slices around, by thread
    std::int64_t last = 0;
    int deepest = 0;
    for (const Json& e : events_of(r)) {
      if (e["ph"] == "M") continue;
      EXPECT_GE(ns(e["ts"]), last);
      last = ns(e["ts"]);
      if (e["ph"] != "X") continue;
      const std::int64_t begin = ns(e["ts"]), end = begin + ns(e["dur"]);
      EXPECT_GE(end, begin);
      auto& around = open[{e["pid"], e["tid"]}];
      while (!around.empty() && around.back() <= begin) around.pop_back();
      if (!around.empty()) {
        EXPECT_LE(end, around.back()) << e;
      }
      around.push_back(end);
      deepest = std::max(deepest, static_cast<int>(around.size()));
    }
    EXPECT_EQ(deepest, 2) << "a CTA, its key tiles";
  }
}

TEST(Trace, KernelsTakeThePredictedTimes) {
  for (const SimulationReport& r : reports()) {
    double fused = 0, unfused = 0;
    int kernels = 0;
    for (const Json& e : events_of(r)) {
      if (e["ph"] != "X" || e["tid"] != 0) continue;
      if (e["pid"] == 1 && e["name"] != "launch") fused += e["dur"].get<double>();
      if (e["pid"] == 2) unfused += e["dur"].get<double>(), kernels += e["name"] != "launch";
    }
    EXPECT_NEAR(fused, r.time_us, 1e-3);
    EXPECT_NEAR(unfused, r.unfused.time_us, 6e-3);
    EXPECT_EQ(kernels, 3);
  }
}

TEST(Trace, HoldsEveryEventOfTheTimeline) {
  for (const SimulationReport& r : reports()) {
    SCOPED_TRACE(command_line(r.c));
    ASSERT_EQ(r.walk.key_tiles_per_event, 1);
    const std::size_t rows = r.plan.matrix_kind == MatrixKind::wgmma ? r.plan.num_warps / 4 : r.plan.num_warps;
    std::size_t ctas = 0, tiles = 0, softmax = 0, tensor = 0, copies = 0, starts = 0;
    std::set<int> followed, sms;
    for (const TimelineEvent& e : r.walk.timeline) {
      starts += e.kind == TimelineEvent::Kind::start;
      tiles += e.kind == TimelineEvent::Kind::key_tile;
      followed.insert(first_sm + e.sm);
    }
    std::size_t shown = 0;
    std::int64_t end = 0;
    const Json trace = Json::parse(trace_json(r).dump());
    for (const Json& e : trace["traceEvents"]) {
      if (e["ph"] == "X" && e["pid"] == 1) end = std::max(end, ns(e["ts"]) + ns(e["dur"]));
      if (!of_sm(e)) continue;
      sms.insert(e["pid"].get<int>());
      const auto name = e["name"].get<std::string>();
      ctas += name.starts_with(r.plan.cluster > 1 ? "Cluster: " : "CTA: ");
      shown += name.starts_with("key tile ");
      softmax += name == "softmax";
      tensor += on_tensor_pipe(e);
      copies += name.starts_with("K of ") || name.starts_with("V of ");
      EXPECT_LE(ns(e["ts"]) + ns(e["dur"]), ns(r.time_us + 1e6 * r.device.launch_overhead_seconds));
    }
    EXPECT_EQ(followed.size(), 4U);
    EXPECT_EQ(sms, followed);
    EXPECT_GT(starts, 0U);
    EXPECT_EQ(ctas, starts);
    EXPECT_EQ(shown, tiles);
    EXPECT_EQ(end, ns(r.time_us + 1e6 * r.device.launch_overhead_seconds)) << "the kernel takes its time";
    const double until = trace["otherData"]["warps_and_copies_until_us"];
    EXPECT_LE(until, end / 1e3);
    if (softmax == tiles * rows) {
      EXPECT_EQ(tensor, 2 * softmax);
      EXPECT_EQ(copies, 2 * tiles);
    } else {
      EXPECT_GT(softmax, 30'000 / 3) << "left out for size alone";
      EXPECT_LT(until, 0.99 * end / 1e3);
    }
  }
}

TEST(Trace, NoTensorPipeGivesMoreThanItHas) {
  for (const SimulationReport& r : reports()) {
    SCOPED_TRACE(command_line(r.c));
    const bool groups = r.plan.matrix_kind == MatrixKind::wgmma;
    struct Use {
      std::int64_t begin, end;
    };
    std::map<std::tuple<int, int, int>, std::vector<Use>> uses;  // by SM, slot and scheduler
    double busy = 0;
    const Json trace = trace_json(r);
    for (const Json& e : trace["traceEvents"]) {
      if (!of_sm(e) || !on_tensor_pipe(e)) continue;
      const int scheduler = groups ? 0 : row_of(e) % 4;
      ASSERT_GE(row_of(e), 0);
      uses[{e["pid"], slot_of(e), scheduler}].push_back({ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])});
      if (scheduler == 0) busy += e["dur"].get<double>() / r.ctas_per_sm;
    }
    EXPECT_GE(uses.size(), 4U);
    for (auto& [pipe, of_slot] : uses) {  // each slot has a part of it, which its warps take turns with
      EXPECT_LT(std::get<1>(pipe), r.ctas_per_sm);
      std::sort(of_slot.begin(), of_slot.end(), [](const Use& a, const Use& b) { return a.begin < b.begin; });
      for (std::size_t i = 1; i < of_slot.size(); ++i) ASSERT_LE(of_slot[i - 1].end, of_slot[i].begin);
    }
    const double until = trace["otherData"]["warps_and_copies_until_us"].get<double>();
    const double of_sms = busy / 4 / (until - 1e6 * r.device.launch_overhead_seconds);
    if (r.plan.num_warps >= 4 && r.walk.ctas > 4 * r.device.num_sms) {  // else SMs differ
      // of four SMs, whose last of 3.9 waves ends when the slowest one's does
      EXPECT_NEAR(of_sms / r.utilisation[0].fraction, 1, 0.12) << "as busy as predicted";
    }
  }
}

TEST(Trace, KeysArriveBeforeTheyAreUsedAndOneAfterTheOther) {
  const std::vector<SimulationReport> all = reports();
  EXPECT_EQ(all[4].plan.cluster, 2);
  Case narrow;  // with room for a third stage, which lets copies run two key tiles ahead
  narrow.problem = {1, 16, 16, 2048, 2048, 64, 64, Dtype::bf16, {}, Causal::bottom_right, -1, -1};
  KernelPlan ahead = plan_named("fa3", narrow, all[3].device);
  ahead.stages = 3;
  for (const SimulationReport& r : {all[3], all[4], simulate(narrow, ahead, all[3].device)}) {
    SCOPED_TRACE(command_line(r.c));
    ASSERT_EQ(r.plan.producer_warps, 4);
    std::map<std::pair<int, int>, std::vector<std::int64_t>> ctas, asked, arrived, used;  // by SM and slot
    std::map<std::pair<int, int>, std::int64_t> free;
    std::set<std::string> names;
    for (const Json& e : events_of(r)) {
      if (e["name"] == "thread_name") names.insert(e["args"]["name"]);
      if (!of_sm(e)) continue;
      const std::pair<int, int> slot{e["pid"], slot_of(e)};
      const auto name = e["name"].get<std::string>();
      if (name.starts_with("start: ")) ctas[slot].push_back(ns(e["ts"]));
      if (name.starts_with("key tile ")) used[slot].push_back(ns(e["ts"]));
      if (row_of(e) != -1) continue;
      EXPECT_GE(ns(e["ts"]), free[slot]);
      free[slot] = ns(e["ts"]) + ns(e["dur"]);
      EXPECT_GT(ns(e["dur"]), 0);
      if (name.starts_with("K of ")) asked[slot].push_back(ns(e["ts"]));
      if (name.starts_with("V of ")) arrived[slot].push_back(free[slot]);
    }
    EXPECT_GE(arrived.size(), 4U);
    for (const auto& [slot, times] : arrived)
      for (std::size_t i = 0; i < times.size(); ++i) {
        ASSERT_LE(times[i], used[slot][i]);
        const auto later = std::upper_bound(ctas[slot].begin(), ctas[slot].end(), used[slot][i]);
        ASSERT_GE(asked[slot][i], *std::prev(later)) << "a CTA asks for nothing before it begins";
      }
    EXPECT_TRUE(names.contains("slot 0: producer, 4 warps: bulk copies"));
    EXPECT_TRUE(names.contains("slot 0: consumer warpgroup 1"));
    EXPECT_EQ(names.contains("slot 0: clusters of 2 CTAs, the first on this SM"), r.plan.cluster == 2);
  }
}

TEST(Trace, OfALargeCaseStaysBelowTenMegabytes) {
  const SimulationReport r =
      report_of({8, 64, 64, 16384, 16384, 64, 64, Dtype::fp16, {}, Causal::none, -1, -1}, "attest", "a100");
  const std::string text = trace_json(r).dump();
  EXPECT_GT(text.size(), 1'000'000U);
  EXPECT_LT(text.size(), 10'000'000U);
}

TEST(Trace, CountersHoldTheBytesAndReturnToZero) {
  const SimulationReport r = reports()[1];
  std::map<std::pair<int, std::string>, std::vector<std::pair<double, double>>> tracks;  // (us, value)
  for (const Json& e : events_of(r))
    if (e["ph"] == "C")
      tracks[{e["pid"], e["name"]}].emplace_back(e["ts"].get<double>(), e["args"].front().get<double>());
  const auto area = [](const std::vector<std::pair<double, double>>& track) {
    double sum = 0;
    for (std::size_t i = 1; i < track.size(); ++i) sum += track[i - 1].second * (track[i].first - track[i - 1].first);
    return sum;
  };
  for (const auto& [name, track] : tracks) EXPECT_EQ(track.back().second, 0) << name.second;
  const double fused = r.dram_read_bytes + r.dram_write_bytes;
  const double unfused = r.unfused.dram_read_bytes + r.unfused.dram_write_bytes;
  EXPECT_NEAR((area(tracks[{1, "DRAM"}]) * 1e3) / fused, 1, 1e-3);
  EXPECT_NEAR((area(tracks[{2, "DRAM"}]) * 1e3) / unfused, 1, 1e-3);
}

TEST(Trace, EveryThreadAndProcessHasAName) {
  std::set<std::pair<int, int>> named, used;
  for (const Json& e : events_of(reports()[0])) {
    const std::pair<int, int> thread{e["pid"], e["tid"]};
    if (e["name"] == "thread_name") named.insert(thread);
    if (e["ph"] == "X") used.insert(thread);
  }
  EXPECT_GE(used.size(), 4U);
  for (const auto& thread : used) EXPECT_TRUE(named.contains(thread)) << thread.first << ", " << thread.second;
}

TEST(Trace, OfNothingHasNoSlices) {
  for (const Json& e :
       events_of(report_of({1, 1, 1, 0, 0, 64, 64, Dtype::fp16, {}, Causal::none, -1, -1}, "attest", "h100")))
    EXPECT_EQ(e["ph"], "M");
}

}  // namespace
}  // namespace attest
