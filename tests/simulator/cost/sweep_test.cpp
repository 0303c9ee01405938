#include "attest/simulator/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "attest/problem/error.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;
using Values = std::vector<std::int64_t>;

TEST(Sweep, ReadsRangesAndLists) {
  EXPECT_EQ(parse_sweep("seqlen=512..4096:x2").values, (Values{512, 1024, 2048, 4096}));
  EXPECT_EQ(parse_sweep("seqlen=512..4095:x2").values, (Values{512, 1024, 2048}));
  EXPECT_EQ(parse_sweep("batch=1..10:+3").values, (Values{1, 4, 7, 10}));
  EXPECT_EQ(parse_sweep("batch=2..4").values, (Values{2, 3, 4}));
  EXPECT_EQ(parse_sweep("batch=5..5:x3").values, (Values{5}));
  EXPECT_EQ(parse_sweep("headdim=128,64,129").values, (Values{128, 64, 129}));
  EXPECT_EQ(parse_sweep("window-left=-1,64").field, "window_left");
  EXPECT_EQ(parse_sweep("tile_n=16..128:x2").values.size(), 4u);
  EXPECT_EQ(parse_sweep("seed=1..1000").values.size(), most_sweep_points);
  // the last value that is below the end, and no overflow on the way there
  EXPECT_EQ(parse_sweep("seqlen=4611686018427387904..9223372036854775807:x2").values.size(), 1u);
  EXPECT_EQ(parse_sweep("seqlen=9223372036854775806..9223372036854775807:+2").values.size(), 1u);
}

TEST(Sweep, RefusesNonsenseByName) {
  for (const char* bad : {"",
                          "seqlen",
                          "seqlen=",
                          "=1,2",
                          "seqlens=1,2",
                          "dtype=1",
                          "swizzled=0,1",
                          "element_bytes=1,2",
                          "seqlen=1..",
                          "seqlen=..4",
                          "seqlen=1..4:",
                          "seqlen=1..4:2",
                          "seqlen=1..4:x",
                          "seqlen=1..4:x1",
                          "seqlen=1..4:x0",
                          "seqlen=1..4:x-2",
                          "seqlen=1..4:+0",
                          "seqlen=1..4:+-1",
                          "seqlen=4..1",
                          "seqlen=0..8:x2",
                          "seqlen=-4..8:x2",
                          "seqlen=1,,2",
                          "seqlen=1,2,",
                          "seqlen=1,1",
                          "seqlen=1.5,2",
                          "seqlen=1e3",
                          "seqlen= 1",
                          "seed=1..1001",
                          "seed=0..9223372036854775807",
                          "seqlen=1..99999999999999999999:x2",
                          "seqlen=1..4:x99999999999999999999"}) {
    try {
      (void)parse_sweep(bad);
      FAIL() << bad;
    } catch (const InvalidInput& error) {
      EXPECT_EQ(error.field(), "sweep") << bad;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

std::vector<SweepPoint> swept(const char* axis, const Json& fields, const char* plan = "attest",
                              const char* device_name = "h200") {
  const DeviceSpec device = load_device(device_name);
  return sweep(parse_sweep(axis), fields, device, [&](const Case& c) { return load_plan(plan, c, device); });
}

TEST(Sweep, EachPointIsThePredictionOfItsCase) {
  const DeviceSpec device = load_device("h200");
  const Json fields = {{"nheads", 4}, {"headdim", 128}, {"seqlen_q", 7}};
  const auto points = swept("seqlen=256..1024:x2", fields);
  ASSERT_EQ(points.size(), 3u);
  for (const SweepPoint& point : points) {
    Case c;
    c.problem.nheads = c.problem.nheads_k = 4;
    c.problem.headdim = c.problem.headdim_v = 128;
    c.problem.seqlen_q = c.problem.seqlen_k = point.value;
    const SimulationReport alone = simulate(c, plan_named("attest", c, device), device);
    ASSERT_TRUE(point.report.has_value()) << point.refused;
    EXPECT_EQ(figures_json(*point.report), figures_json(alone));
  }
  EXPECT_DOUBLE_EQ(points[2].report->flops, 16 * points[0].report->flops);
}

TEST(Sweep, TakesEachIntegerOfACase) {
  const DeviceSpec device = load_device("a100");
  for (const char* text : {"seed=1,2", "seqlen=1,2", "batch=1,2", "window=-1,2", "nheads=1,2", "base_offset=0,8"}) {
    const auto points = sweep(parse_sweep(text), to_json(Case{}), device, [&](const Case& c) {
      return DescribedPlan{"attest", plan_named("attest", c, device)};
    });
    for (const SweepPoint& point : points) EXPECT_TRUE(point.report) << text << ": " << point.refused;
  }
}

TEST(Sweep, OfAPlansFieldSaysWhatDoesNotFit) {
  const auto points = swept("stages=1..6", {{"headdim", 96}, {"seqlen_q", 256}}, "attest", "a100");
  ASSERT_EQ(points.size(), 6u);
  EXPECT_EQ(points[0].report->plan.stages, 1);
  EXPECT_GT(points[1].report->smem_bytes_per_cta, points[0].report->smem_bytes_per_cta);
  EXPECT_NE(points[5].refused.find("stages: 6 is outside 1 to 4"), std::string::npos) << points[5].refused;
}

TEST(Sweep, ACaseThatIsNoneIsRefusedBeforeAnythingIsPredicted) {
  EXPECT_THROW(swept("headdim=64,300", {{"seqlen_q", 64}}), InvalidInput);
  EXPECT_THROW(swept("nheads_k=1..3", {{"nheads", 4}, {"seqlen_q", 64}}), InvalidInput);
  EXPECT_THROW(swept("seqlen=4611686018427387904,1", {{"nheads", 4}}), InvalidInput);
  EXPECT_THROW(swept("batch=0,-1", Json::object()), InvalidInput);
}

TEST(Sweep, TableCsvAndJsonHaveARowAPoint) {
  const SweepAxis axis = parse_sweep("stages=1,4");
  const auto points = swept("stages=1,4", {{"headdim", 256}, {"seqlen_q", 256}}, "attest", "a100");
  const std::string csv = to_csv(axis, points), table = to_table(axis, points);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 3);
  EXPECT_TRUE(csv.starts_with("stages,time_us,cycles,")) << csv;
  const auto columns = [&](std::string line) {  // commas outside quotes
    bool quoted = false;
    return std::count_if(line.begin(), line.end(), [&](char c) {
      if (c == '"') quoted = !quoted;
      return c == ',' && !quoted;
    });
  };
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);)
    EXPECT_EQ(columns(line), static_cast<std::ptrdiff_t>(report_figures().size()) + 3) << line;
  const Json json = to_json(axis, points);
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["stages"], 1);
  EXPECT_TRUE(json[0]["time_us"].is_number());
  EXPECT_FALSE(json[1]["refused"].get<std::string>().empty());
}

}  // namespace
}  // namespace attest
