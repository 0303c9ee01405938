#include "attest/fuzz/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "attest/fuzz/campaign.h"
#include "attest/fuzz/commands.h"
#include "attest/problem/error.h"
#include "naive_kernel.h"

namespace attest {
namespace {

CheckOptions options_for(std::int64_t seqlen_q, std::int64_t seqlen_k) {
  CheckOptions options;
  options.kernel = "naive";
  options.the_case.problem = {2, 4, 2, seqlen_q, seqlen_k, 16, 16, Dtype::fp16, {}, Causal::bottom_right, -1, -1};
  return options;
}

TEST(Check, RunsEveryPropertyThatApplies) {
  NaiveKernel kernel;
  const CheckOptions options = options_for(5, 70);
  const CheckResult result = run_check(kernel, options);
  const auto applies = [&](const Property& property) { return property.applies(options.the_case); };
  EXPECT_EQ(std::ssize(result.verdicts), std::count_if(properties().begin(), properties().end(), applies));
  EXPECT_GT(result.verdicts.size(), 15u);
  for (const auto& [property, verdict] : result.verdicts) EXPECT_EQ(verdict.status, Status::passed) << property;
  EXPECT_EQ(to_json(options, result)["failed"], 0);
  EXPECT_EQ(to_json(options, result)["schema"], "attest/check/1");
}

TEST(Check, OnePropertyByName) {
  NaiveKernel kernel;
  CheckOptions options = options_for(5, 70);
  options.property = "gqa";
  const CheckResult result = run_check(kernel, options);
  ASSERT_EQ(result.verdicts.size(), 1u);
  EXPECT_EQ(result.verdicts[0].first, "gqa");
  options.property = "gqq";
  EXPECT_THROW(options.validate(), InvalidInput);
}

TEST(Check, DiffsListTheWorstElementsFirst) {
  NaiveKernel kernel(Fault::drops_last_key);
  CheckOptions options = options_for(5, 70);
  options.diffs = 4;
  const CheckResult result = run_check(kernel, options);
  ASSERT_EQ(result.differences.size(), 4u);
  EXPECT_GT(result.differences[0].error_over_budget, 1);
  for (std::size_t i = 1; i < 4; ++i)
    EXPECT_GE(result.differences[i - 1].error_over_budget, result.differences[i].error_over_budget);
  const Difference& worst = result.differences[0];
  EXPECT_NEAR(std::abs(worst.value - worst.expected), worst.error_over_budget * worst.bound, 1e-12);
  EXPECT_EQ(to_json(options, result)["diffs"].size(), 4u);
}

// Above the limit by less than its third digit shows.
TEST(Check, WhatIsJustOverItsBoundReadsSo) {
  Verdict verdict;
  verdict.rule = "O = 1", verdict.channel = "o", verdict.error_over_budget = 1.003;
  EXPECT_THAT(describe(verdict), testing::HasSubstr(", 1.003 times the "));
  CheckResult result;
  result.differences.emplace_back().error_over_budget = 1.003;
  verdict.error_over_budget = 0.9997;
  result.verdicts.emplace_back("reference", verdict);
  const std::string text = to_text(options_for(5, 70), result);
  EXPECT_THAT(text, testing::HasSubstr(", 1.003 of it"));
  EXPECT_THAT(text, testing::HasSubstr("0.9997 of the budget"));
}

TEST(Check, ADryRunRunsNothing) {
  NaiveKernel kernel(Fault::throws);
  CheckOptions options = options_for(5, 170);
  options.dry_run = true;
  const CheckResult result = run_check(kernel, options);
  EXPECT_TRUE(result.verdicts.empty());
  EXPECT_THAT(to_text(options, result), testing::HasSubstr("reference"));
}

TEST(CheckCommand, ExitCodes) {
  CheckOptions options = options_for(5, 70);
  options.kernel = "cpu";
  EXPECT_EQ(check_command(options, std::nullopt).exit_code, 0);
  options.kernel = "mutant:86-lse-in-base-2";
  const CommandResult wrong = check_command(options, std::nullopt);
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.text, testing::HasSubstr("lse"));
  options.kernel = "cpu";
  options.property = "gqa";
  options.the_case.problem.nheads = 2;
  EXPECT_EQ(check_command(options, std::nullopt).exit_code, 77);
  options.kernel = "gpu";
  EXPECT_THROW(check_command(options, std::nullopt), InvalidInput);
}

}  // namespace
}  // namespace attest
