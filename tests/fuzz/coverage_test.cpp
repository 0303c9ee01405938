#include "attest/fuzz/coverage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "attest/fuzz/campaign.h"
#include "naive_kernel.h"

namespace attest {
namespace {

using testing::HasSubstr;

bool has(const std::vector<Coverage::Gap>& gaps, std::string_view first, std::string_view second) {
  return std::any_of(gaps.begin(), gaps.end(), [&](const auto& g) { return g.first == first && g.second == second; });
}

TEST(Coverage, OneCaseTriesItsOwnPairsAndNoOthers) {
  Coverage coverage;
  Case c;
  c.problem.dtype = Dtype::fp16;
  c.problem.seqlen_q = c.problem.seqlen_k = 20;
  c.inputs = Distribution::large;
  const Property* const judged[] = {&property_named("reference")};
  const std::size_t none_tried = coverage.pairs();
  EXPECT_EQ(coverage.untried_feature_inputs().size() + coverage.untried_feature_property().size() +
                coverage.untried_inputs_property().size(),
            none_tried);
  coverage.add(c, judged);
  EXPECT_FALSE(has(coverage.untried_feature_inputs(), "fp16", "large"));
  EXPECT_TRUE(has(coverage.untried_feature_inputs(), "fp16", "normal"));
  EXPECT_TRUE(has(coverage.untried_feature_inputs(), "bf16", "large"));
  EXPECT_FALSE(has(coverage.untried_feature_property(), "fp16", "reference"));
  EXPECT_TRUE(has(coverage.untried_feature_property(), "fp16", "zero_q"));
  EXPECT_FALSE(has(coverage.untried_inputs_property(), "large", "reference"));
  EXPECT_EQ(coverage.untried_inputs_property().size(), std::size(all_distributions) * properties().size() - 1);
  const auto untried = coverage.untried_feature_property();
  const auto zero_q = std::find_if(untried.begin(), untried.end(),
                                   [](const auto& g) { return g.first == "fp16" && g.second == "zero_q"; });
  EXPECT_EQ(zero_q->met, 1u) << "it applies to that case, and was not drawn";
}

TEST(Coverage, AnUnsupportedCaseTriesNothing) {
  Coverage coverage;
  coverage.add(Case{}, {});
  EXPECT_THAT(coverage.to_string(), HasSubstr("never tried: "));
  EXPECT_EQ(coverage.to_json()["tried"], 0);
}

TEST(Coverage, InputsAreAnAxisAndNoFeature) {
  const nlohmann::ordered_json json = Coverage().to_json();
  const auto plain = std::count_if(features().begin(), features().end(),
                                   [](const Feature& f) { return !f.name.starts_with("inputs "); });
  EXPECT_EQ(json["features"].size(), static_cast<std::size_t>(plain));
  EXPECT_LT(json["features"].size(), features().size());
  EXPECT_EQ(json["inputs"].size(), std::size(all_distributions));
  EXPECT_EQ(json["properties"].size(), properties().size());
}

TEST(Coverage, ACampaignSaysWhatItNeverTried) {
  CampaignOptions options;
  options.kernel = "naive";
  options.cases = 5;
  options.budget = {64, 1 << 12, 256};
  const auto make = [] { return std::make_unique<NaiveKernel>(); };
  const CampaignResult few = run_campaign(make, options);
  EXPECT_THAT(to_text(options, few), HasSubstr("never tried: "));
  options.cases = 3000;
  const CampaignResult many = run_campaign(make, options);
  EXPECT_GT(many.coverage.to_json()["tried"], few.coverage.to_json()["tried"]);
  EXPECT_TRUE(has(many.coverage.untried_feature_property(), "seqlen_q = 0", "zero_q")) << "it applies to none of these";
}

}  // namespace
}  // namespace attest
