// Every kernel of this build under every property, in this process; without a GPU, that a CUDA kernel says why it
// cannot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "attest/fuzz/campaign.h"
#include "attest/fuzz/generators.h"
#include "attest/fuzz/kernels.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* on_host = "cpu";

class EveryKernel : public testing::TestWithParam<std::string> {
 protected:
  // Of the machine and the build; empty where the kernel can run.
  static std::string unavailable() { return GetParam() == on_host ? "" : cuda_state().unavailable; }
};
class EveryCudaKernel : public EveryKernel {};

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::vector<std::string> cuda_kernels() {
  std::vector<std::string> names = kernel_names();
  names.erase(std::remove(names.begin(), names.end(), on_host), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Of, EveryKernel, testing::ValuesIn(kernel_names()), name_of);
INSTANTIATE_TEST_SUITE_P(Cuda, EveryCudaKernel, testing::ValuesIn(cuda_kernels()), name_of);

// As many cases as hold ten that it runs, and 400 at least: an ablation runs one in two thousand.
TEST_P(EveryKernel, PassesACampaign) {
  if (!unavailable().empty()) GTEST_SKIP() << unavailable();
  CampaignOptions options;
  options.kernel = GetParam();
  options.threads = 1;
  const std::unique_ptr<Kernel> kernel = make_kernel(GetParam());
  std::uint64_t supported = 0;
  for (options.cases = 0; options.cases < 400 || supported < 10; ++options.cases) {
    ASSERT_LT(options.cases, 100'000u) << "no " << supported + 1 << "th case that it runs";
    if (!kernel->unsupported(generate_case(options.seed, options.cases, options.budget))) ++supported;
  }
  const CampaignResult result = run_campaign([] { return make_kernel(GetParam()); }, options);
  EXPECT_TRUE(result.failures.empty()) << to_text(options, result);
  EXPECT_EQ(result.cases, options.cases);
  EXPECT_EQ(result.passed, supported);
}

TEST_P(EveryCudaKernel, SaysWhyItCannotRun) {
  if (unavailable().empty()) GTEST_SKIP() << "it can: there is a GPU here";
  try {
    make_kernel(GetParam());
    FAIL();
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
    const bool built = !cuda_state().runtime.empty();
    EXPECT_THAT(error.what(), HasSubstr(built ? "--kernel cpu" : "built without CUDA"));
  }
}

TEST_P(EveryCudaKernel, IsListedWithTheReason) {
  const std::vector<KernelEntry> kernels = list_kernels();
  const auto at =
      std::find_if(kernels.begin(), kernels.end(), [](const KernelEntry& entry) { return entry.name == GetParam(); });
  const bool built = !cuda_state().runtime.empty();
  ASSERT_EQ(at != kernels.end(), built) << "a build without CUDA does not list what it lacks";
  if (!built) return;
  EXPECT_EQ(at->unavailable, unavailable());
  EXPECT_EQ(at->capability.name, GetParam());
  EXPECT_FALSE(at->capability.dtypes.empty());
}

}  // namespace
}  // namespace attest
