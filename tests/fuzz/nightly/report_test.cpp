#include "attest/nightly/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "attest/problem/error.h"
#include "nights.h"

namespace attest {
namespace {

using testing::HasSubstr, testing::Not;

using NightReportTest = InItsOwnFolder;

TEST_F(NightReportTest, AnEmptyHistoryIsRefused) {
  const History history(folder);
  EXPECT_THROW(make_report(history), InvalidInput);
}

TEST_F(NightReportTest, SaysWhatIsRedSinceWhenAndHowToRepeatIt) {
  History history(folder);
  add_night(history, night_of("2026-11-01"), CheckState::passed, {1e-3});
  add_night(history, night_of("2026-11-02"), CheckState::regressed, {2e-3});
  const std::int64_t id = add_night(history, night_of("2026-11-03"), CheckState::regressed, {2e-3});
  history.record(id, {{"fuzz/cpu", 1, ""},
                      {{"fuzz/cpu/gqa", CheckState::wrong, "<b>&bad", "attest check --kernel cpu"}},
                      {},
                      {{"cpu", 0, {Status::passed, Status::wrong_values}}}});
  const NightReport report = make_report(history);
  EXPECT_EQ(report.exit_code(), exit_kernel_wrong) << "1 before 5";
  ASSERT_EQ(report.red.size(), 2u);
  EXPECT_EQ(report.red[0].first.name, "fuzz/cpu/gqa") << "worst first";
  EXPECT_EQ(report.red[1].second.first, "2026-11-02T01:00:00Z");

  const auto json = to_json(report);
  EXPECT_EQ(json.at("schema"), "attest/nightly/1");
  EXPECT_EQ(json.at("red").at(1).at("since"), "2026-11-02T01:00:00Z");
  EXPECT_EQ(json.at("red").at(1).at("nights"), 2);
  EXPECT_EQ(json.at("red").at(1).at("last_good"), "2026-11-01T01:00:00Z");
  EXPECT_EQ(json.at("fuzz").at(0).at("first_uncovered_k"), 2);

  const std::string page = to_html(report);
  EXPECT_THAT(page, HasSubstr("2 checks red"));
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;&amp;bad"));
  EXPECT_THAT(page, Not(HasSubstr("<b>&bad")));
  EXPECT_THAT(page, HasSubstr("<time>2026-11-02 01:00</time>, 2 nights; last good 2026-11-01 01:00"));
  EXPECT_THAT(page,
              HasSubstr("<pre><span>attest</span> <span>check</span> <span>--kernel</span> <span>cpu</span></pre>"));
  EXPECT_LT(page.find("<pre>"), page.find("id=\"nights\"")) << "what is red comes first";

  const std::string junit = to_junit(report);
  EXPECT_THAT(junit, HasSubstr("<testsuite name=\"fuzz\" tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\""));
  EXPECT_THAT(junit, HasSubstr("<failure type=\"wrong\" message=\"&lt;b&gt;&amp;bad\">attest check --kernel cpu"));
  EXPECT_THAT(junit, HasSubstr("red since 2026-11-02T01:00:00Z"));
}

TEST_F(NightReportTest, AGreenOneIsGreenAndAnInterruptedOneIsNeither) {
  History history(folder);
  add_night(history, night_of("2026-11-01"), CheckState::passed);
  EXPECT_EQ(make_report(history).exit_code(), exit_pass);
  EXPECT_THAT(to_html(make_report(history)), HasSubstr("class=\"verdict green\">Nothing is red"));
  history.begin(night_of("2026-11-02"));
  EXPECT_EQ(make_report(history).exit_code(), exit_interrupted);
  EXPECT_THAT(to_html(make_report(history)), HasSubstr("; the night is not over"));
  EXPECT_THAT(to_html(make_report(history)), testing::Not(HasSubstr("class=\"verdict green\"")));
}

// Nothing that ran was of a kernel: the machine was looked at, a device file was asked, the kernel was skipped.
TEST_F(NightReportTest, ANightThatCheckedNoKernelIsNotGreen) {
  History history(folder);
  const std::int64_t id = history.begin(night_of("2026-11-01"));
  const auto record = [&](const char* name, CheckState state, bool of_a_kernel) {
    history.record(id, {{name, 1, ""}, {{name, state, "why", "", of_a_kernel}}, {}, {}});
  };
  record("doctor", CheckState::passed, false);
  record("anything/x", CheckState::passed, false);
  record("time/cpu", CheckState::skipped, true);
  EXPECT_EQ(make_report(history).exit_code(), exit_interrupted) << "it may still";
  EXPECT_EQ(make_report(history).verdict(), NightVerdict::interrupted);
  EXPECT_THAT(to_html(make_report(history)),
              HasSubstr("class=\"verdict nothing\">None of 3 checks so far is red; the night is not over"));
  history.finish(id, "2026-11-01T02:00:00Z");
  NightReport report = make_report(history);
  EXPECT_EQ(report.exit_code(), exit_unsupported);
  EXPECT_EQ(to_json(report).at("verdict"), "NOTHING CHECKED");
  EXPECT_EQ(to_json(report).at("exit_code"), 77);
  EXPECT_THAT(to_text(report), testing::StartsWith("NOTHING CHECKED on "));
  EXPECT_THAT(to_html(report), HasSubstr("class=\"verdict nothing\">No kernel was checked: 3 checks"));
  EXPECT_THAT(to_html(report), HasSubstr("<li class=\"open\" title=\"2026-11-01 01:00: nothing checked\">"));
  record("fuzz/cpu/reference", CheckState::passed, true);
  EXPECT_EQ(make_report(history).exit_code(), exit_pass);
  record("anything/x", CheckState::regressed, false);
  EXPECT_EQ(make_report(history).exit_code(), exit_regression);
}

}  // namespace
}  // namespace attest
