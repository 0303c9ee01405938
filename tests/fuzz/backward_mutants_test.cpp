// Every planted backward bug is caught, and by no luck of one seed.
#include "attest/cpu/backward_mutants.h"

#include <gtest/gtest.h>

#include "attest/fuzz/properties.h"
#include "backward_case.h"

namespace attest {
namespace {

constexpr Dtype dtypes[] = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
constexpr std::uint64_t most_cases = 400;

Verdict judge_backward(Trial& trial) {
  Verdict verdict;
  for (const char* name : {"hazards", "reference", "repeat"}) {
    const Property& property = property_named(name);
    if (property.applies(trial.the_case())) verdict = judge(property, trial);
    if (verdict.status != Status::passed) break;
  }
  return verdict;
}

TEST(BackwardCases, PassTheRightKernel) {
  CpuKernel kernel;
  ForwardBuffers buffers;
  for (std::uint64_t seed = 0; seed < 5; ++seed)
    for (std::uint64_t k = 0; k < 80; ++k) {
      const Case c = test::backward_case(seed << 32 | k, dtypes[k % 3]);
      Trial trial(kernel, buffers, c);
      const Verdict verdict = judge_backward(trial);
      ASSERT_EQ(verdict.status, Status::passed) << command_line(c) << "\n" << verdict.detail;
    }
}

class EveryBackwardMutant : public testing::TestWithParam<Mutant> {};

TEST_P(EveryBackwardMutant, IsCaught) {
  const auto kernel = GetParam().make({});
  ForwardBuffers buffers;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    std::uint64_t cases = 0;
    for (bool caught = false; !caught; ++cases) {
      ASSERT_LT(cases, most_cases) << "seed " << seed;
      const Case c = test::backward_case(seed << 32 | cases, dtypes[cases % 3]);
      Trial trial(*kernel, buffers, c);
      caught = judge_backward(trial).status != Status::passed;
    }
    std::printf("%s seed %d: %d cases\n", GetParam().id.c_str(), static_cast<int>(seed), static_cast<int>(cases));
    RecordProperty("cases_seed_" + std::to_string(seed), static_cast<int>(cases));
  }
}

INSTANTIATE_TEST_SUITE_P(Mutants, EveryBackwardMutant, testing::ValuesIn(backward_mutants()), [](const auto& p) {
  std::string name;
  for (const char c : p.param.id) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

}  // namespace
}  // namespace attest
