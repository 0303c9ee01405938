#include <fmt/format.h>

#include <map>

#include "attest/fuzz/xml.h"
#include "attest/nightly/report.h"

namespace attest {
namespace {

struct Suite {
  std::string cases;
  int tests = 0, failures = 0, errors = 0, skipped = 0;

  void add(const Check& check, const RedSince* since) {
    ++tests;
    cases +=
        fmt::format("    <testcase classname=\"attest.nightly\" name=\"{}\" time=\"0\">\n", xml_escaped(check.name));
    if (check.state == CheckState::skipped) {
      ++skipped;
      cases += fmt::format("      <skipped message=\"{}\"/>\n", xml_escaped(check.detail));
    } else if (since) {
      const bool crashed = check.state == CheckState::crashed;
      ++(crashed ? errors : failures);
      cases += fmt::format("      <{0} type=\"{1}\" message=\"{2}\">{3}&#10;red since {4}</{0}>\n",
                           crashed ? "error" : "failure", to_string(check.state), xml_escaped(check.detail),
                           xml_escaped(check.repro), since->first);
    } else if (!check.detail.empty()) {
      cases += fmt::format("      <system-out>{}</system-out>\n", xml_escaped(check.detail));
    }
    cases += "    </testcase>\n";
  }
};

}  // namespace

std::string to_junit(const NightReport& report) {
  std::map<std::string, const RedSince*> red;
  for (const auto& [check, since] : report.red) red[check.name] = &since;
  std::map<std::string, Suite> suites;
  for (const Check& check : report.night.checks) {
    const auto found = red.find(check.name);
    suites[check.name.substr(0, check.name.find('/'))].add(check, found == red.end() ? nullptr : found->second);
  }
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"attest nightly\">\n";
  for (const auto& [name, suite] : suites)
    text += fmt::format(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" timestamp=\"{}\">\n{}  "
        "</testsuite>\n",
        xml_escaped(name), suite.tests, suite.failures, suite.errors, suite.skipped,
        report.night.started.substr(0, report.night.started.find('Z')), suite.cases);
  return text + "</testsuites>\n";
}

}  // namespace attest
