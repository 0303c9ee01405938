#include "attest/fuzz/junit.h"

#include <fmt/format.h>

#include <algorithm>

#include "attest/fuzz/properties.h"

namespace attest {
namespace {

// Length of the well-formed UTF-8 sequence that begins here; 0 if none does.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first < 0xF0) {
    const bool overlong = first == 0xE0 && byte(1) < 0xA0, surrogate = first == 0xED && byte(1) >= 0xA0;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first < 0xF5) {
    const bool overlong = first == 0xF0 && byte(1) < 0x90, beyond = first == 0xF4 && byte(1) >= 0x90;
    return continues(1) && continues(2) && continues(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

// As text or as the value of an attribute. What XML 1.0 cannot hold becomes '?'.
std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::size_t length = utf8_length(text);
    const std::string_view sequence = text.substr(0, length);
    const auto c = static_cast<unsigned char>(text[0]);
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\n' || c == '\t')
      out += fmt::format("&#{};", c);
    else if (length == 0 || c < 0x20 || c == 0x7F || sequence == "\xEF\xBF\xBE" || sequence == "\xEF\xBF\xBF")
      out += '?';
    else
      out += sequence;
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  return out;
}

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
  return fmt::format("      <{0} type=\"{0}\" message=\"{1}\">{2}</{0}>\n", tag, escaped(message), escaped(body));
}

}  // namespace

std::string to_junit(const CampaignOptions& options, const CampaignResult& result) {
  std::string cases;
  int tests = 0, failures = 0, errors = 0, skipped = 0;
  for (const Property& property : properties()) {
    ++tests;
    cases += fmt::format("    <testcase classname=\"attest.{}\" name=\"{}\" time=\"0\">\n", escaped(options.kernel),
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
      totals, escaped(options.kernel), result.seconds, options.seed, result.cases, to_string(result.stopped), cases);
}

}  // namespace attest
