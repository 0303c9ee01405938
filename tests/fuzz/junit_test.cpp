#include "attest/fuzz/junit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "naive_kernel.h"

namespace attest {
namespace {

using testing::HasSubstr;
using testing::Not;

CampaignResult a_result(const std::string& detail, Status status) {
  CampaignResult result;
  result.cases = 2;
  result.by_property["reference"].add(Status::passed);
  result.by_property["reference"].add(status);
  result.by_property["hazards"].add(Status::passed);
  Failure failure;
  failure.property = "reference";
  failure.verdict.status = status;
  failure.verdict.detail = detail;
  failure.repro = "attest check --kernel k --seed 1";
  result.failures.push_back(failure);
  return result;
}

// By Python's parser, where there is a Python.
void expect_well_formed(const std::string& xml) {
  if (std::system("python3 -c 'import xml.dom.minidom' 2> /dev/null") != 0) return;
  FILE* const python =
      ::popen("python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.stdin.buffer)'", "w");
  ASSERT_TRUE(python);
  std::fwrite(xml.data(), 1, xml.size(), python);
  EXPECT_EQ(::pclose(python), 0) << xml;
}

TEST(Junit, AFailureAnErrorAndASkip) {
  CampaignOptions options;
  const std::string wrong = to_junit(options, a_result("is 3", Status::wrong_values));
  expect_well_formed(wrong);
  EXPECT_THAT(wrong, HasSubstr("failures=\"1\" errors=\"0\" skipped=\"" + std::to_string(properties().size() - 2)));
  EXPECT_THAT(wrong, HasSubstr("<failure type=\"failure\" message=\"wrong_values: is 3\">"));
  EXPECT_THAT(wrong, HasSubstr("attest check --kernel k --seed 1"));
  EXPECT_THAT(wrong, HasSubstr("2 judged, 1 passed, 1 wrong_values"));
  const std::string crash = to_junit(options, a_result("SIGSEGV", Status::crashed));
  EXPECT_THAT(crash, HasSubstr("failures=\"0\" errors=\"1\""));
  EXPECT_THAT(crash, HasSubstr("<error type=\"error\" message=\"crashed: SIGSEGV\">"));
}

TEST(Junit, WhateverAKernelSaysIsWellFormed) {
  CampaignOptions options;
  options.kernel = "a<b>&\"c\"'";
  std::string all;
  for (int byte = 1; byte < 256; ++byte) all += static_cast<char>(byte);
  all += "]]> \xED\xA0\x80 \xF4\x90\x80\x80 \xC0\x80 \xEF\xBF\xBE \xE2\x82";  // a surrogate, beyond, overlong, cut
  const std::string xml = to_junit(options, a_result(all, Status::wrong_values));
  expect_well_formed(xml);
  EXPECT_THAT(xml, HasSubstr("attest fuzz a&lt;b&gt;&amp;&quot;c&quot;"));
  EXPECT_THAT(xml, Not(HasSubstr("]]>")));
  const std::string kept = to_junit(options, a_result("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80", Status::wrong_values));
  expect_well_formed(kept);
  EXPECT_THAT(kept, HasSubstr("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"));
}

TEST(Junit, APropertyWhoseFailuresAreNotListedFailsNevertheless) {
  CampaignResult result = a_result("", Status::wrong_values);
  result.failures.clear();
  const std::string xml = to_junit({}, result);
  expect_well_formed(xml);
  EXPECT_THAT(xml, HasSubstr("<failure type=\"failure\" message=\"1 cases, none of them listed\">"));
}

}  // namespace
}  // namespace attest
