#include "attest/simulator/trace.h"

#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

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
          report_of({1, 32, 8, 1, 8192, 128, 128, Dtype::bf16, {}, Causal::none, -1, -1}, "attest", "rtx4090")};
}

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
    EXPECT_EQ(deepest, 3) << "a CTA, its key tiles, their phases";
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
  const SimulationReport r = reports()[0];
  ASSERT_EQ(r.walk.key_tiles_per_event, 1);
  std::size_t ctas = 0, tiles = 0, phases = 0, copies = 0, starts = 0;
  for (const TimelineEvent& e : r.walk.timeline) {
    starts += e.kind == TimelineEvent::Kind::start;
    tiles += e.kind == TimelineEvent::Kind::key_tile;
  }
  std::size_t shown = 0;
  std::int64_t end = 0;
  for (const Json& e : events_of(r)) {
    if (e["ph"] != "X" || e["pid"] != 1) continue;
    const auto name = e["name"].get<std::string>();
    ctas += name.starts_with("CTA: ");
    shown += name.starts_with("key tile ");
    phases += name == "softmax";
    copies += name.starts_with("K and V of ");
    end = std::max(end, ns(e["ts"]) + ns(e["dur"]));
  }
  EXPECT_GT(starts, 0U);
  EXPECT_EQ(ctas, starts);
  EXPECT_EQ(shown, tiles);
  EXPECT_EQ(phases, tiles);
  EXPECT_EQ(copies, tiles);
  EXPECT_EQ(end, ns(r.time_us + 1e6 * r.device.launch_overhead_seconds)) << "nothing outlasts the kernel";
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
