#include "attest/simulator/html_sweep.h"

#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "attest/simulator/html_report.h"

namespace attest {
namespace {

using testing::HasSubstr, testing::IsEmpty, testing::Not, testing::StartsWith;
using Json = nlohmann::ordered_json;

struct Swept {
  SweepAxis axis;
  std::vector<SweepPoint> points;
};
Swept swept(const std::string& text, const std::string& device_name = "", int tokens = 256) {
  Json fields = to_json(Case{});
  fields.update(Json{{"nheads", 32}, {"seqlen_q", tokens}, {"seqlen_k", tokens}, {"headdim", 64}, {"headdim_v", 64}});
  const SweepAxis axis = parse_sweep(text);
  DeviceSpec device = load_device("a100");
  if (!device_name.empty()) device.name = device.description = device_name;
  return {axis, sweep(axis, fields, device, [](const Case& c, const DeviceSpec& d, std::string_view) {
            return DescribedPlan{"attest", plan_named("attest", c, d)};
          })};
}

std::vector<SweepPoint> points_of(double (*time_us)(double), std::int64_t first, std::int64_t step, int count,
                                  bool times) {
  std::vector<SweepPoint> points;
  for (std::int64_t value = first; count-- > 0; value = times ? value * step : value + step) {
    points.push_back({.value = {std::to_string(value), static_cast<double>(value)}, .report = SimulationReport{}});
    points.back().report->time_us = time_us(static_cast<double>(value));
  }
  return points;
}

TEST(HtmlSweep, NothingStandsOutOfACurve) {
  EXPECT_THAT(standing_out(points_of([](double x) { return 7 * x * x; }, 512, 2, 9, true)), IsEmpty());
  EXPECT_THAT(standing_out(points_of([](double x) { return 5e5 + x * x; }, 512, 2, 9, true)), IsEmpty());
  EXPECT_THAT(standing_out(points_of([](double x) { return 3 * x; }, 100, 100, 20, false)), IsEmpty());
  EXPECT_THAT(standing_out(points_of([](double x) { return 10 + x; }, -5, 1, 20, false)), IsEmpty());
  EXPECT_THAT(standing_out({}), IsEmpty());
}

TEST(HtmlSweep, AStepStandsOutAloneAndWithItsSize) {
  const auto steps = standing_out(points_of([](double x) { return x <= 128 ? 400.0 : 460.0; }, 120, 1, 17, false));
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].from.text, "128");
  EXPECT_EQ(steps[0].to.text, "129");
  EXPECT_DOUBLE_EQ(steps[0].ratio, 1.15);
  // both sides of the edge
  EXPECT_EQ(standing_out(points_of([](double x) { return x <= 9 ? 100 : 111.; }, 1, 1, 20, false)).size(), 1u);
  EXPECT_EQ(standing_out(points_of([](double x) { return x <= 9 ? 100 : 109.; }, 1, 1, 20, false)).size(), 0u);
  EXPECT_EQ(standing_out(points_of([](double x) { return x <= 9 ? 100 : 80.; }, 1, 1, 20, false)).size(), 1u);
}

TEST(HtmlSweep, AHeadOfOneMoreColumnCostsNarrowCopies) {
  const Swept s = swept("headdim=126..132:+1", "", 2048);
  const std::string page = html_sweep(s.axis, s.points);
  EXPECT_THAT(page, HasSubstr("From headdim 128 to 129 time grows "));
  EXPECT_THAT(page, HasSubstr("the plan goes from 128 × 64 to 64 × 64 tiles"));
  EXPECT_THAT(page, HasSubstr("copies of 2 instead of 16 bytes"));
  EXPECT_GT(s.points[3].report->sm_read_bytes, 1.5 * s.points[2].report->sm_read_bytes);
  EXPECT_GT(s.points[3].report->smem_wavefronts, 1.2 * s.points[2].report->smem_wavefronts);
}

TEST(HtmlSweep, ValuesWithoutOrderStayAsTheyWereAsked) {
  const Swept s = swept("dtype=fp32,bf16,fp16,fp8_e4m3", "", 512);
  const std::string page = html_sweep(s.axis, s.points);
  EXPECT_THAT(page, HasSubstr("<h1>dtype fp32, bf16, fp16, fp8_e4m3</h1>"));
  EXPECT_THAT(page, HasSubstr("Slowest at fp32: "));
  const Json data = sweep_page_data(s.axis, s.points);
  EXPECT_EQ(data["numeric"], false);
  EXPECT_EQ(data["points"][0]["value"], "fp32");
  EXPECT_THAT(data["steps"], IsEmpty());
  EXPECT_THAT(standing_out(s.points), IsEmpty());
}

TEST(HtmlSweep, StandsAloneAndHoldsEveryPoint) {
  const Swept s = swept("tile_n=16,64,100000000");  // the last does not exist
  const std::string page = html_sweep(s.axis, s.points);
  EXPECT_THAT(page, StartsWith("<!DOCTYPE html>"));
  for (const char* loads : {"src=\"", "href=\"", "@import", "url("}) EXPECT_THAT(page, Not(HasSubstr(loads)));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
  EXPECT_THAT(page, HasSubstr("Fastest at tile_n "));
  EXPECT_THAT(page, HasSubstr("1 of 3 values cannot be predicted"));
  const Json data = sweep_page_data(s.axis, s.points);
  ASSERT_EQ(data["points"].size(), 3u);
  EXPECT_EQ(data["points"][1]["time_us"], s.points[1].report->time_us);
  EXPECT_EQ(data["points"][2]["refused"], s.points[2].refused);
  EXPECT_NE(s.points[2].refused, "");
}

TEST(HtmlSweep, TakesNamesForText) {
  const std::string name = "</script><img src=x onerror=alert(1)><!--{{data}}";
  Swept s = swept("seqlen=128,256", name);
  for (SweepPoint& point : s.points) point.report->plan_name = name;
  const std::string page = html_sweep(s.axis, s.points);
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, HasSubstr("plan " + html_escaped(name)));
}

}  // namespace
}  // namespace attest
