#include "attest/fuzz/mutants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "attest/problem/error.h"
#include "naive_kernel.h"

namespace attest {
namespace {

Mutant naive_mutant(std::string id, Fault fault) {
  return {std::move(id), "planted in the naive kernel",
          [fault](const CpuPlanSpec&) { return std::make_unique<NaiveKernel>(fault); }};
}

TEST(Mutants, TheRunnerTellsCaughtFromSurvived) {
  const std::vector<Mutant> mutants = {naive_mutant("71-head-modulo", Fault::head_modulo),
                                       naive_mutant("none", Fault::none)};
  MutantOptions options;
  options.cases = 300;
  const MutantResults all = run_mutants(mutants, options);
  const std::vector<MutantResult>& results = all.mutants;
  ASSERT_EQ(results.size(), 2u);
  EXPECT_TRUE(results[0].caught);
  EXPECT_GE(results[0].cases, 1u);
  ASSERT_TRUE(results[0].failure);
  EXPECT_EQ(results[0].failure->minimal.problem.nheads_k, 2);
  EXPECT_FALSE(results[1].caught);
  EXPECT_EQ(results[1].cases, 300u);
  const nlohmann::ordered_json json = to_json(options, all);
  EXPECT_EQ(json["schema"], "attest/mutants/1");
  EXPECT_EQ(json["caught"], 1);
  EXPECT_EQ(json["survived"], 1);
  EXPECT_EQ(json["mutants"].size(), 2u);
  EXPECT_THAT(to_text(all), testing::HasSubstr("SURVIVED"));
}

TEST(Mutants, OnlyTakesAGlob) {
  const std::vector<Mutant> mutants = {naive_mutant("71-a", Fault::head_modulo),
                                       naive_mutant("82-b", Fault::head_modulo)};
  MutantOptions options;
  options.cases = 100;
  options.only = "82-*";
  const auto results = run_mutants(mutants, options);
  ASSERT_EQ(results.mutants.size(), 1u);
  EXPECT_EQ(results.mutants[0].mutant.id, "82-b");
  options.only = "nothing*";
  EXPECT_THROW(run_mutants(mutants, options), InvalidInput);
}

// The suite's own worth: every bug planted in the CPU kernel is caught, in the default number of cases.
class EveryMutant : public testing::TestWithParam<Mutant> {};
INSTANTIATE_TEST_SUITE_P(Mutants, EveryMutant, testing::ValuesIn(all_mutants()), [](const auto& p) {
  std::string name = p.param.id;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST_P(EveryMutant, IsCaught) {
  MutantOptions options;
  options.program = WorkerProgram{BROKEN_WORKER, {}};  // some crash
  const MutantResults all = run_mutants({GetParam()}, options);
  const std::vector<MutantResult>& results = all.mutants;
  std::cout << to_text(all);
  EXPECT_TRUE(results[0].caught) << GetParam().bug;
}

}  // namespace

void PrintTo(const Mutant& mutant, std::ostream* out) { *out << mutant.id; }

}  // namespace attest
