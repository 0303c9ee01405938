#include "attest/fuzz/junit.h"

#include <fmt/format.h>

#include "attest/fuzz/properties.h"
#include "attest/fuzz/xml.h"

namespace attest {
namespace {

bool crashes(const Tally& tally) { return tally[Status::crashed] + tally[Status::hung] > 0; }

// One element, as readers expect of a testcase: the first way in which the property failed, and in its text all of
// them. Where none is listed, as beyond the limit of that list, the counts alone.
std::string finding(const CampaignResult& result, std::string_view property, const Tally& tally) {
  const char* const tag = crashes(tally) ? "error" : "failure";
  std::string message, body;
  for (const Failure& failure : result.failures) {
    if (failure.property != property) continue;
    const std::string line = fmt::format("{}: {}", to_string(failure.verdict.status), describe(failure.verdict));
    if (message.empty()) message = line;
    body += fmt::format("{}\n{}\n", line, failure.repro);
  }
  if (message.empty()) message = fmt::format("{} cases, none of them listed", tally.failed());
  return fmt::format("      <{0} type=\"{0}\" message=\"{1}\">{2}</{0}>\n", tag, xml_escaped(message),
                     xml_escaped(body));
}

}  // namespace

std::string to_junit(const CampaignOptions& options, const CampaignResult& result) {
  std::string cases;
  int tests = 0, failures = 0, errors = 0, skipped = 0;
  for (const Property& property : properties()) {
    ++tests;
    cases += fmt::format("    <testcase classname=\"attest.{}\" name=\"{}\" time=\"0\">\n", xml_escaped(options.kernel),
                         property.name);
    const auto found = result.by_property.find(std::string(property.name));
    if (found == result.by_property.end()) {
      ++skipped;
      cases += "      <skipped message=\"put to no case\"/>\n    </testcase>\n";
      continue;
    }
    const Tally& tally = found->second;
    std::string counts = fmt::format("{} judged", tally.total());
    for (const Status status : all_statuses)
      if (tally[status] > 0) counts += fmt::format(", {} {}", tally[status], to_string(status));
    if (tally.failed() > 0) {
      ++(crashes(tally) ? errors : failures);
      cases += finding(result, property.name, tally);
    }
    cases += fmt::format("      <system-out>{}</system-out>\n    </testcase>\n", counts);
  }
  const std::string totals =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"", tests, failures, errors, skipped);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {0}>\n"
      "  <testsuite name=\"attest fuzz {1}\" {0} time=\"{2:.3f}\">\n    <properties>\n"
      "      <property name=\"seed\" value=\"{3}\"/>\n      <property name=\"cases\" value=\"{4}\"/>\n"
      "      <property name=\"stopped\" value=\"{5}\"/>\n    </properties>\n{6}  </testsuite>\n</testsuites>\n",
      totals, xml_escaped(options.kernel), result.seconds, options.seed, result.cases, to_string(result.stopped),
      cases);
}

}  // namespace attest
