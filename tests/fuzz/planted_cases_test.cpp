// Every planted bug of a feature has a case made by hand that shows it, and the right kernel passes that case: what a
// campaign's budget of cases has to find exists.
#include "planted_cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "attest/cpu/mutants.h"
#include "attest/fuzz/campaign.h"
#include "attest/fuzz/check.h"

namespace attest {
namespace {

std::vector<std::string> failed_properties(Kernel& kernel, const Case& c) {
  std::vector<std::string> failed;
  for (const char* property : {"hazards", "reference"}) {
    CheckOptions options;
    options.the_case = c;
    options.property = property;
    const CheckResult result = run_check(kernel, options);
    EXPECT_FALSE(result.unsupported) << *result.unsupported;
    for (const auto& [name, verdict] : result.verdicts)
      if (verdict.status != Status::passed) failed.push_back(name + ": " + describe(verdict));
  }
  return failed;
}

class PlantedCases : public testing::TestWithParam<Planted> {};

TEST_P(PlantedCases, ShowTheBugAndPassTheRightKernel) {
  const auto& all = forward_mutants();
  const auto mutant = std::find_if(all.begin(), all.end(), [](const Mutant& m) { return m.id == GetParam().id; });
  ASSERT_NE(mutant, all.end());
  const Case c = case_from_json_text(GetParam().json);
  const CpuPlanSpec spec = parse_cpu_plan_spec(GetParam().plan);
  CpuKernel right(spec);
  EXPECT_THAT(failed_properties(right, c), testing::IsEmpty());
  const auto wrong = mutant->make(spec);
  EXPECT_THAT(failed_properties(*wrong, c), testing::Not(testing::IsEmpty()));
}

INSTANTIATE_TEST_SUITE_P(Mutants, PlantedCases, testing::ValuesIn(planted_cases), [](const auto& test) {
  std::string name = test.param.id;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace attest
