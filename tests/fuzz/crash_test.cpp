// Kernels that crash, hang, exit, talk and damage, in workers: each is a finding, and the campaign goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "attest/fuzz/campaign.h"
#include "attest/fuzz/check.h"
#include "attest/fuzz/commands.h"
#include "attest/fuzz/corpus.h"
#include "attest/fuzz/interrupt.h"
#include "attest/problem/child.h"
#include "attest/problem/error.h"
#include "attest/problem/exit_code.h"
#include "goes.h"

namespace attest {
namespace {

using testing::HasSubstr;

const WorkerProgram program{BROKEN_WORKER, {}};

CampaignOptions options_for(const std::string& word, std::uint64_t cases = 200) {
  CampaignOptions options;
  options.kernel = "broken:" + word;
  options.cases = cases;
  options.threads = 2;
  options.max_failed = 1'000'000;
  options.max_hung = 1'000'000;
  options.hang_seconds = 5;
  options.budget = {64, 1 << 14, 512};
  options.shrink.max_runs = 60;
  return options;
}

std::uint64_t cases_above_30_keys(const CampaignOptions& options) {
  std::uint64_t count = 0;
  for (std::uint64_t k = 0; k < options.cases; ++k)
    count += generate_case(options.seed, k, options.budget).problem.seqlen_k > 30;
  return count;
}

class EveryCrash : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Crash, EveryCrash,
                         testing::Values("segfaults", "aborts", "exits", "is_killed", "overflows", "leaves_a_child",
                                         "loses", "aborts_when_asked", "throws_when_asked"),
                         [](const auto& p) { return p.param; });

TEST_P(EveryCrash, IsAFindingAndTheCampaignGoesOn) {
  const CampaignOptions options = options_for(GetParam(), 60);
  const CampaignResult result = run_campaign(program, options);
  const std::uint64_t expected = cases_above_30_keys(options);
  ASSERT_GT(expected, 2u);
  EXPECT_EQ(result.cases, 60u);
  EXPECT_EQ(result.statuses[Status::crashed], expected) << to_text(options, result);
  EXPECT_EQ(result.passed, 60 - expected);
  EXPECT_EQ(result.first_uncovered_k, 60u);
  ASSERT_EQ(result.failures.size(), 1u);
  const Failure& failure = result.failures[0];
  EXPECT_EQ(failure.property, "hazards") << "the first that runs the kernel";
  EXPECT_EQ(failure.verdict.status, Status::crashed);
  EXPECT_EQ(failure.seen, expected);
  EXPECT_EQ(failure.minimal.problem.seqlen_k, 31) << failure.repro;
  EXPECT_THAT(failure.repro, HasSubstr("--kernel broken:" + GetParam() + " --property hazards"));
  EXPECT_FALSE(failure.verdict.detail.empty());
}

// The kernel goes on, and either side notices late what it did: which property is blamed is chance.
TEST(Crash, AKernelThatDamagesTheWorkersDescriptorsIsAFinding) {
  for (const std::string word : {"closes", "garbles"}) {
    const CampaignOptions options = options_for(word, 60);
    const CampaignResult result = run_campaign(program, options);
    EXPECT_EQ(result.cases, 60u) << word;
    EXPECT_EQ(result.statuses[Status::crashed], cases_above_30_keys(options)) << to_text(options, result);
    EXPECT_EQ(result.passed + result.failed, 60u) << word;
    ASSERT_FALSE(result.failures.empty()) << word;
    for (const Failure& failure : result.failures) EXPECT_GT(failure.minimal.problem.seqlen_k, 30) << failure.repro;
  }
}

TEST(Crash, SaysHowTheWorkerEnded) {
  const auto detail = [](const std::string& word) {
    CampaignOptions options = options_for(word, 30);
    options.max_failed = 1;
    const CampaignResult result = run_campaign(program, options);
    return result.failures.empty() ? "" : result.failures[0].verdict.detail;
  };
  EXPECT_EQ(detail("exits"), "exit status 0 in the kernel");
  EXPECT_EQ(detail("is_killed"), "SIGKILL, as where memory runs out in the kernel");
  EXPECT_THAT(detail("garbles"), HasSubstr("garbage"));
  EXPECT_EQ(detail("aborts_when_asked"), "SIGABRT in the kernel's unsupported()");
  EXPECT_EQ(detail("throws_when_asked"), "no room");
  EXPECT_EQ(detail("loses"), "the kernel: cudaErrorIllegalAddress: as a GPU would say in the kernel");
  EXPECT_EQ(detail("segfaults_in_numerics"), "SIGSEGV in the kernel's numerics()");
}

TEST(Crash, DamagedMemoryIsAFindingWhereverItShows) {
  const CampaignOptions options = options_for("damages", 60);
  const CampaignResult result = run_campaign(program, options);
  EXPECT_EQ(result.cases, 60u);
  EXPECT_GT(result.statuses[Status::crashed], 0u);
  EXPECT_EQ(result.passed + result.failed, 60u);
}

TEST(Crash, DoesNotDependOnTheNumberOfWorkers) {
  CampaignOptions options = options_for("segfaults", 90);
  options.threads = 1;
  const CampaignResult one = run_campaign(program, options);
  options.threads = 3;
  const CampaignResult three = run_campaign(program, options);
  EXPECT_EQ(one.statuses, three.statuses);
  EXPECT_EQ(one.by_property, three.by_property);
  ASSERT_EQ(one.failures.size(), three.failures.size());
  EXPECT_EQ(one.failures[0].k, three.failures[0].k);
  EXPECT_EQ(one.failures[0].minimal, three.failures[0].minimal);
}

TEST(Crash, AKernelThatThrowsNeedsNoNewWorker) {
  const CampaignResult result = run_campaign(program, options_for("throws", 60));
  EXPECT_EQ(result.statuses[Status::crashed], cases_above_30_keys(options_for("throws", 60)));
  EXPECT_THAT(result.failures.at(0).verdict.detail, HasSubstr("no room"));
}

TEST(Crash, WhatAKernelPrintsDisturbsNobody) {
  const CampaignOptions options = options_for("chatters", 40);
  testing::internal::CaptureStdout();
  const CampaignResult result = run_campaign(program, options);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(result.passed, 40u);
}

TEST(Crash, AKernelThatCannotBeMadeIsToldBeforeAnything) {
  try {
    run_campaign(program, options_for("refuses"));
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(), "kernel: 'broken:refuses' is refused, as it should be");
    EXPECT_EQ(error.field(), "kernel");
  }
  EXPECT_THROW(run_campaign(program, options_for("dies_when_made")), KernelCrashed);
  EXPECT_THROW(run_campaign(WorkerProgram{"/no/such/program", {}}, options_for("exits")), EnvironmentError);
}

class EveryHang : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Crash, EveryHang, testing::Values("hangs", "spins", "hangs_when_asked", "hangs_in_numerics"),
                         [](const auto& p) { return p.param; });

TEST_P(EveryHang, IsAFindingMadeSmallAndTheCampaignGoesOn) {
  CampaignOptions options = options_for(GetParam() + ":60", 40);
  options.hang_seconds = 0.4;
  options.shrink.max_seconds = 30;
  const CampaignResult result = run_campaign(program, options);
  EXPECT_EQ(result.cases, 40u);
  EXPECT_GT(result.statuses[Status::hung], 0u);
  EXPECT_EQ(result.passed + result.statuses[Status::hung], 40u);
  ASSERT_EQ(result.failures.size(), 1u);
  EXPECT_EQ(result.failures[0].minimal.problem.seqlen_k, 61) << result.failures[0].repro;
  const std::string call = GetParam() == "hangs_when_asked"    ? "'s unsupported()"
                           : GetParam() == "hangs_in_numerics" ? "'s numerics()"
                                                               : "";
  EXPECT_EQ(result.failures[0].verdict.detail, "no end after 0.4 s in the kernel" + call);
}

TEST(Crash, AFewHangsEndACampaign) {
  CampaignOptions options = options_for("hangs:0", 1000);
  options.hang_seconds = 0.2;
  options.max_hung = 3;
  options.shrink.max_seconds = 0;
  const CampaignResult result = run_campaign(program, options);
  EXPECT_EQ(result.stopped, Stopped::failures);
  EXPECT_EQ(result.statuses[Status::hung], 3u);
  EXPECT_LT(result.cases, 100u);
}

TEST(Crash, AHangWhileShrinkingIsNoEnd) {
  CampaignOptions options = options_for("wrong_and_hangs", 10);
  options.hang_seconds = 0.3;
  options.max_failed = 1;
  const CampaignResult result = run_campaign(program, options);
  EXPECT_GT(result.statuses[Status::wrong_values], 0u);
  ASSERT_FALSE(result.failures.empty());
  EXPECT_EQ(result.failures[0].verdict.status, Status::wrong_values);
  EXPECT_GE(result.failures[0].minimal.seed, 2u) << "below it hangs, and is not wrong";
}

TEST(Crash, ASlowKernelIsNoHangAndKeepsTheTime) {
  CampaignOptions options = options_for("slow", 1'000'000);
  options.time_seconds = 1;
  const auto start = std::chrono::steady_clock::now();
  const CampaignResult result = run_campaign(program, options);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 6);
  EXPECT_EQ(result.stopped, Stopped::time);
  EXPECT_EQ(result.passed, result.cases);
  EXPECT_GT(result.cases, 0u);
}

// The kernel writes nothing and is back at once, and the truth of the corpus's case takes many times the limit.
TEST(Crash, TheTimeOfTheTruthIsNotTheKernels) {
  CampaignOptions options = options_for("hurries", 1);
  options.corpus = testing::TempDir() + "attest_large_case";
  std::filesystem::remove_all(options.corpus);
  Case large;
  large.problem.nheads = large.problem.nheads_k = 4;
  large.problem.seqlen_q = large.problem.seqlen_k = 1024;
  const Corpus corpus(options.corpus);
  corpus.add({large, "one_v", options.kernel, Status::wrong_values, generator_version, utc_now()});
  corpus.add({large, "reference", options.kernel, Status::wrong_values, generator_version, utc_now()});
  options.hang_seconds = 0.05;
  options.shrink.max_seconds = 0;
  const CampaignResult result = run_campaign(program, options);
  EXPECT_EQ(result.corpus.replayed, 2u);
  EXPECT_EQ(result.corpus.statuses[Status::unwritten], 2u) << to_text(options, result);
  std::filesystem::remove_all(options.corpus);
}

TEST(Crash, AnInterruptDoesNotWaitForAHang) {
  const StopOnSignals stop;
  std::jthread killer([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    ::kill(::getpid(), SIGTERM);
  });
  CampaignOptions options = options_for("hangs:0", 1000);
  options.hang_seconds = 60;
  const auto start = std::chrono::steady_clock::now();
  const CampaignResult result = run_campaign(program, options);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 15);
  EXPECT_EQ(result.stopped, Stopped::interrupted);
  EXPECT_LT(result.first_uncovered_k, 10u);
}

TEST(Crash, ASecondSignalEndsTheProcessAtOnce) {
  EXPECT_EXIT(
      {
        const StopOnSignals stop;
        ::raise(SIGTERM);
        std::fputs("the first did not", stderr);
        ::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "the first did not");
}

// A worker that ends with its parent leaves what it started; its group has that too, and who has the signal ends it.
TEST(Crash, ASecondSignalGoesToWhoHadItBeforeTheCampaign) {
  const std::string path = testing::TempDir() + "attest_started_by_a_worker";
  std::filesystem::remove(path);
  const auto signalled_twice = [&] {
    ::signal(SIGINT, [](int) { end_children(), ::_exit(exit_interrupted); });
    const StopOnSignals stop;
    const Child worker(
        "sh", {"sh", "-c", "sleep 60 >&- 2>&- & echo $! > " + path + ".new; mv " + path + ".new " + path + "; wait"},
        {});
    for (int look = 0; look < 500 && !std::filesystem::exists(path); ++look)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ::raise(SIGINT);
    ::raise(SIGINT);
  };
  const pid_t parent = ::fork();  // EXPECT_EXIT waits for all who have its pipe
  if (parent == 0) signalled_twice(), ::_exit(0);
  int status = 0;
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == exit_interrupted) << status;
  std::string pid;
  ASSERT_TRUE(std::ifstream(path) >> pid);
  EXPECT_TRUE(goes(pid));
  std::filesystem::remove(path);
}

CheckOptions check_of(const std::string& word) {
  CheckOptions options;
  options.kernel = "broken:" + word;
  options.the_case.problem.seqlen_q = 3;
  options.the_case.problem.seqlen_k = 101;
  options.hang_seconds = 0.3;
  return options;
}

TEST(Crash, CheckTellsACrashAndAHang) {
  for (const auto& [word, status] : {std::pair<std::string, Status>{"segfaults", Status::crashed},
                                     {"exits", Status::crashed},
                                     {"hangs", Status::hung},
                                     {"hangs_when_asked", Status::hung},
                                     {"throws_when_asked", Status::crashed}}) {
    const CommandResult command = check_command(check_of(word), program);
    EXPECT_EQ(command.exit_code, exit_kernel_crashed) << word;
    EXPECT_THAT(command.text, HasSubstr(std::string(to_string(status)))) << word;
    EXPECT_THAT(command.text, HasSubstr("not judged: reference")) << word;
  }
}

TEST(Crash, CheckTellsAKernelThatThrowsWhileMaskAndDifferencesAreRead) {
  for (const std::string word : {"throws", "throws_in_numerics"}) {
    CheckOptions options = check_of(word);
    options.property = "repeat";
    options.mask = true;
    options.diffs = 2;
    const CommandResult command = check_command(options, program);
    EXPECT_EQ(command.exit_code, exit_kernel_crashed) << command.text;
    std::vector<std::string> crashed;
    for (const auto& verdict : command.json->at("verdicts"))
      if (verdict.at("status") == "crashed" && verdict.at("detail") == "no room")
        crashed.push_back(verdict.at("property"));
    EXPECT_THAT(crashed, testing::IsSupersetOf({"mask", "reference"})) << command.text;
  }
}

TEST(Crash, CheckInAWorkerSaysWhatCheckHereSays) {
  CheckOptions options = check_of("");
  options.kernel = "mutant:86-lse-in-base-2";
  options.hang_seconds = 60;
  options.diffs = 3;
  const CommandResult in_worker = check_command(options, program), here = check_command(options, std::nullopt);
  EXPECT_EQ(in_worker.text, here.text);
  EXPECT_EQ(in_worker.exit_code, exit_kernel_wrong);
  EXPECT_EQ(here.exit_code, exit_kernel_wrong);
}

TEST(Crash, AMutantMayCrash) {
  MutantOptions options;
  options.program = program;
  options.cases = 100;
  const MutantResults results = run_mutants({{"86-lse-in-base-2", "", nullptr}}, options);
  EXPECT_TRUE(results.mutants.at(0).caught);
}

}  // namespace
}  // namespace attest
