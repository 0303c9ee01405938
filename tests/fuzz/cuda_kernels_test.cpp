// Every CUDA kernel of this build under every property, in this process; without a GPU, that it says why it cannot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "attest/fuzz/campaign.h"
#include "attest/fuzz/kernels.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

using testing::HasSubstr;
using testing::Not;

class EveryCudaKernel : public testing::TestWithParam<std::string> {
 protected:
  // Of the machine and the build; empty where the kernel can run.
  static std::string unavailable() { return cuda_state().unavailable; }
};

std::vector<std::string> cuda_kernels() {
  std::vector<std::string> names = kernel_names();
  names.erase(std::remove(names.begin(), names.end(), "cpu"), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Cuda, EveryCudaKernel, testing::ValuesIn(cuda_kernels()), [](const auto& p) {
  std::string name = p.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST_P(EveryCudaKernel, PassesACampaign) {
  if (!unavailable().empty()) GTEST_SKIP() << unavailable();
  CampaignOptions options;
  options.kernel = GetParam();
  options.cases = 400;
  options.threads = 1;
  options.budget = {64, 1 << 16, 1024};
  const CampaignResult result = run_campaign([] { return make_kernel(GetParam()); }, options);
  EXPECT_TRUE(result.failures.empty()) << to_text(options, result);
  EXPECT_EQ(result.cases, 400u);
  EXPECT_GT(result.passed, 200u) << "most cases are not refused";
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
