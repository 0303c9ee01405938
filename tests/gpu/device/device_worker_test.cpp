// A device that refuses all further work costs one worker; a launch that fails costs nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attest/fuzz/campaign.h"
#include "attest/gpu/device.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

using testing::HasSubstr;

CampaignResult campaign_of(const std::string& kernel) {
  CampaignOptions options;
  options.kernel = kernel;
  options.cases = 8;
  options.threads = 2;
  options.max_failed = 1000;
  options.budget = {64, 1 << 14, 512};
  options.shrink.max_runs = 4;
  return run_campaign(WorkerProgram{DEVICE_WORKER, {}}, options);
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
  EXPECT_EQ(result.cases, 8u);
  EXPECT_EQ(result.statuses[Status::crashed], 8u);
  ASSERT_FALSE(result.failures.empty());
  EXPECT_THAT(result.failures[0].verdict.detail, HasSubstr("the kernel: cudaErrorIllegalAddress"));
}

TEST_F(DeviceWorker, ALaunchThatFailsIsAFindingWithItsCause) {
  const CampaignResult result = campaign_of("takes_too_much");
  EXPECT_EQ(result.statuses[Status::crashed], 8u);
  ASSERT_FALSE(result.failures.empty());
  EXPECT_THAT(result.failures[0].verdict.detail, HasSubstr("planted: cudaErrorInvalidValue"));
}

}  // namespace
}  // namespace attest
