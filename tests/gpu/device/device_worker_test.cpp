// A device that refuses all further work costs one worker; a launch that fails costs nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "attest/fuzz/campaign.h"
#include "attest/fuzz/generators.h"
#include "attest/gpu/device.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t cases = 24;
constexpr Budget budget{64, 1 << 14, 512};

CampaignResult campaign_of(const std::string& kernel) {
  CampaignOptions options;
  options.kernel = kernel;
  options.cases = cases;
  options.threads = 2;
  options.max_failed = 1000;
  options.budget = budget;
  options.shrink.max_runs = 4;
  const auto beside = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "device_worker";
  return run_campaign(WorkerProgram{beside.string(), {}}, options);
}

// Every case that the planted kernel declares to take, fp16 without a backward; the others are refused before a launch.
void expect_all_crashed(const CampaignResult& result) {
  std::uint64_t taken = 0;
  for (std::uint64_t k = 0; k < cases; ++k) {
    const Case c = generate_case(CampaignOptions{}.seed, k, budget);
    taken += c.problem.dtype == Dtype::fp16 && !c.backward;
  }
  EXPECT_GT(taken, 3u);
  EXPECT_EQ(result.statuses[Status::crashed], taken);
  EXPECT_EQ(result.statuses[Status::unsupported], cases - taken);
}

class DeviceWorker : public testing::Test {
 protected:
  void SetUp() override {
    try {
      open_device();
    } catch (const EnvironmentError& error) {
      GTEST_SKIP() << error.what();
    }
  }
};

TEST_F(DeviceWorker, AnIllegalAddressIsAFindingAndTheCampaignGoesOn) {
  const CampaignResult result = campaign_of("crashes");
  EXPECT_EQ(result.cases, cases);
  expect_all_crashed(result);
  ASSERT_FALSE(result.failures.empty());
  EXPECT_THAT(result.failures[0].verdict.detail, HasSubstr("the kernel: cudaErrorIllegalAddress"));
}

TEST_F(DeviceWorker, ALaunchThatFailsIsAFindingWithItsCause) {
  const CampaignResult result = campaign_of("takes_too_much");
  expect_all_crashed(result);
  ASSERT_FALSE(result.failures.empty());
  EXPECT_THAT(result.failures[0].verdict.detail, HasSubstr("planted: cudaErrorInvalidValue"));
}

}  // namespace
}  // namespace attest
