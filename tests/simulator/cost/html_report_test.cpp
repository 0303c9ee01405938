#include "attest/simulator/html_report.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace attest {
namespace {

using testing::HasSubstr, testing::Not, testing::StartsWith;

SimulationReport small_report(const std::string& name) {
  Case c;
  c.problem = Problem{1, 2, 2, 256, 256, 64, 64, Dtype::fp16, {}, Causal::none, -1, -1};
  DeviceSpec device = load_device("h100");
  device.name = device.description = name;
  return simulate(c, plan_named("fa2", c, device), device, name);
}

std::string embedded_json(const std::string& page) {
  const std::string open = R"(<script type="application/json" id="data">)";
  const std::size_t begin = page.find(open) + open.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

TEST(HtmlReport, StandsAlone) {
  const std::string page = html_report(small_report("h100"));
  EXPECT_THAT(page, StartsWith("<!DOCTYPE html>"));
  for (const char* loads : {"src=\"", "href=\"", "@import", "url("}) EXPECT_THAT(page, Not(HasSubstr(loads)));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
}

TEST(HtmlReport, OpensWithWhatThePersonAskedFor) {
  const SimulationReport r = small_report("h100");
  const std::string page = html_report(r);
  EXPECT_THAT(page, HasSubstr("batch 1, 2 heads, 256 × 256 tokens, headdim 64, fp16"));
  EXPECT_THAT(page, HasSubstr(" through DRAM"));
  EXPECT_THAT(page, HasSubstr("; unfused attention moves "));
}

TEST(HtmlReport, HoldsThePredictionAsItsDataWhateverTheNamesAre) {
  const std::string name = "</script><img src=x onerror=alert(1)><!--<script>{{data}}&amp;\u2028'\"\\\x01";
  const SimulationReport r = small_report(name);
  const std::string page = html_report(r);
  const std::string data = embedded_json(page);
  EXPECT_THAT(data, Not(HasSubstr("<")));
  EXPECT_THAT(data, Not(HasSubstr("\u2028")));
  EXPECT_EQ(nlohmann::ordered_json::parse(data), page_data(r));
  EXPECT_EQ(nlohmann::ordered_json::parse(data)["device"]["name"], name);
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, HasSubstr("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"));
}

TEST(HtmlReport, BytesThatAreNoTextBecomeReplacementCharacters) {
  const std::string page = html_report(small_report("caf\xe9"));
  EXPECT_EQ(nlohmann::ordered_json::parse(embedded_json(page))["device"]["name"], "caf\uFFFD");
}

TEST(HtmlReport, EscapesEveryCharacterWithAMeaning) {
  EXPECT_EQ(html_escaped("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(html_escaped("×\xC3\xA9"), "×\xC3\xA9");
}

TEST(HtmlReport, FlowsAreThoseOfTheReport) {
  const SimulationReport r = small_report("h100");
  const auto flow = page_data(r)["flow"];
  EXPECT_EQ(flow["fused"]["dram_read"], r.dram_read_bytes);
  EXPECT_EQ(flow["fused"]["sm_write"], r.sm_write_bytes);
  const double tensor = 2.0 * 256 * 64 * 2, matrix = r.unfused.matrix_bytes;
  // 256 queries and keys: a tile of S has all queries, O's one tile a head all keys; S's two tiles share the queries
  EXPECT_EQ(flow["unfused"]["l2_read"], 3 * tensor + 2 * matrix);
  EXPECT_EQ(flow["unfused"]["sm_write"], tensor + 2 * matrix);
}

}  // namespace
}  // namespace attest
