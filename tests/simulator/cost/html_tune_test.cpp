#include "attest/simulator/html_tune.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "attest/simulator/html_report.h"

namespace attest {
namespace {

using testing::HasSubstr, testing::Not, testing::StartsWith;

TuneResult small_result(const std::string& device_name = "") {
  Case c;
  c.problem = Problem{1, 2, 2, 256, 256, 64, 64, Dtype::fp16, {}, Causal::none, -1, -1};
  DeviceSpec device = load_device("a100");
  if (!device_name.empty()) device.name = device.description = device_name;
  return tune(c, device, {.full = 4, .rough_events = 200, .rough_line_accesses = 500});
}

TEST(HtmlTune, StandsAloneAndOpensWithTheWinner) {
  const TuneResult result = small_result();
  const std::string page = html_tune(result, 5);
  EXPECT_THAT(page, StartsWith("<!DOCTYPE html>"));
  for (const char* loads : {"src=\"", "href=\"", "@import", "url("}) EXPECT_THAT(page, Not(HasSubstr(loads)));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
  EXPECT_THAT(page, HasSubstr("batch 1, 2 heads, 256 × 256 tokens, headdim 64, fp16"));
  const std::size_t begin = page.find("<p class=\"headline\">");
  const std::string headline = page.substr(begin, page.find("</p>", begin) - begin);
  EXPECT_THAT(headline, HasSubstr("The fastest takes "));
  const KernelPlan& plan = result.winner().plan.plan;
  if (!result.winner().named) {
    EXPECT_THAT(headline, HasSubstr(std::to_string(plan.tile_m) + " × " + std::to_string(plan.tile_n) + " tiles"));
  }
  for (const TunedPlan& t : result.ranked)
    if (t.named) {
      EXPECT_THAT(headline, HasSubstr(t.plan.name));
    }
}

TEST(HtmlTune, DrawsEveryPlanThatFitsAndCountsTheOthers) {
  const TuneResult result = small_result();
  const auto data = tune_page_data(result, 5);
  ASSERT_EQ(data["plans"].size(), result.ranked.size());
  for (std::size_t i = 0; i < result.ranked.size(); ++i) {
    const SimulationReport& r = result.ranked[i].report;
    EXPECT_EQ(data["plans"][i]["rank"], i + 1);
    EXPECT_EQ(data["plans"][i]["time_us"], r.time_us);
    EXPECT_EQ(data["plans"][i]["dram_bytes"], r.dram_read_bytes + r.dram_write_bytes);
    EXPECT_EQ(data["plans"][i]["spill_bytes"], r.spill_bytes_per_thread);
  }
  std::size_t skipped = 0;
  for (const auto& reason : data["skipped"]) {
    skipped += reason["count"].get<std::size_t>();
    EXPECT_FALSE(reason["detail"].get<std::string>().empty());
  }
  EXPECT_EQ(skipped, result.skipped.size());
  EXPECT_GT(skipped, 0u);  // fa3, at least
}

TEST(HtmlTune, TakesNamesForText) {
  const std::string name = "</script><img src=x onerror=alert(1)><!--{{data}}";
  const std::string page = html_tune(small_result(name), 5);
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, HasSubstr(html_escaped(name)));
}

}  // namespace
}  // namespace attest
