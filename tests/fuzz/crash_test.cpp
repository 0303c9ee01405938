// What a crash, a hang and an interruption leave behind. Death tests: each runs in a process of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "attest/fuzz/campaign.h"
#include "attest/fuzz/in_flight.h"
#include "naive_kernel.h"

namespace attest {
namespace {

class Segfaults : public NaiveKernel {
 public:
  RunReport run(const Case& c, const ForwardArgs& args) override {
    if (c.problem.seqlen_k > 100) ::raise(SIGSEGV);
    return NaiveKernel::run(c, args);
  }
};

class Hangs : public NaiveKernel {
 public:
  RunReport run(const Case& c, const ForwardArgs& args) override {
    while (c.problem.seqlen_k > 100) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return NaiveKernel::run(c, args);
  }
};

CampaignOptions options_for_death() {
  CampaignOptions options;
  options.kernel = "broken";
  options.threads = 2;
  return options;
}

class CrashTest : public testing::Test {
 protected:
  // Threads run in the child: start it afresh instead of forking this process.
  void SetUp() override { testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
};

TEST_F(CrashTest, ASegfaultPrintsTheLineThatRepeatsIt) {
  EXPECT_EXIT(
      {
        install_crash_handlers();
        run_campaign([] { return std::make_unique<Segfaults>(); }, options_for_death());
      },
      testing::ExitedWithCode(4),
      "SIGSEGV.*\n.*attest check --kernel broken --property .* --batch .* --seqlen-k [0-9]{3,}");
}

TEST_F(CrashTest, AHangPrintsTheLineThatRepeatsIt) {
  EXPECT_EXIT(
      {
        CampaignOptions options = options_for_death();
        options.hang_seconds = 0.3;
        run_campaign([] { return std::make_unique<Hangs>(); }, options);
      },
      testing::ExitedWithCode(4), "hangs.*\n.*attest check --kernel broken --property .* --seqlen-k [0-9]{3,}");
}

// The campaign's only case has more keys than one; shrinking tries one.
TEST_F(CrashTest, AHangWhileShrinkingIsSeenToo) {
  class HangsOnSmall : public NaiveKernel {
   public:
    HangsOnSmall() : NaiveKernel(Fault::lse_base_2) {}
    RunReport run(const Case& c, const ForwardArgs& args) override {
      while (c.problem.seqlen_k == 1) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      return NaiveKernel::run(c, args);
    }
  };
  EXPECT_EXIT(
      {
        CampaignOptions options = options_for_death();
        options.hang_seconds = 0.3;
        options.max_failed = 1;
        options.cases = 1;
        const CampaignResult result = run_campaign([] { return std::make_unique<HangsOnSmall>(); }, options);
        std::_Exit(result.failed == 1 ? 30 : 31);
      },
      testing::ExitedWithCode(4), "hangs");
}

TEST_F(CrashTest, ACrashOutsideACaseIsNotTheKernels) {
  EXPECT_EXIT(
      {
        install_crash_handlers();
        ::raise(SIGSEGV);
      },
      testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(CrashTest, AnInterruptKeepsTheResults) {
  EXPECT_EXIT(
      {
        const StopOnSignals stop;
        std::jthread killer([] {
          std::this_thread::sleep_for(std::chrono::milliseconds(300));
          ::kill(::getpid(), SIGINT);
        });
        CampaignOptions options = options_for_death();
        options.cases = 100'000'000;
        const CampaignResult result = run_campaign([] { return std::make_unique<NaiveKernel>(); }, options);
        std::_Exit(result.stopped == Stopped::interrupted && result.cases > 0 && result.passed == result.cases ? 30
                                                                                                               : 31);
      },
      testing::ExitedWithCode(30), "");
}

}  // namespace
}  // namespace attest
