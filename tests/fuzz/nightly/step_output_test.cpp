// What steps make of how another program ended and what it said before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "steps.h"

namespace attest {
namespace {

Ended ended_with(int exit_status, const std::string& out = "") { return {{exit_status}, false, false, out, ""}; }
Ended killed_by(int signal, const std::string& out = "") { return {{-1, signal}, false, false, out, ""}; }
Ended over_time(const std::string& out = "") { return {{-1, SIGKILL}, true, false, out, ""}; }
Ended interrupted(const std::string& out = "") { return {{-1, SIGKILL}, false, true, out, ""}; }

// The worst of a name, as a history keeps it.
Check check_of(const Part& part, const std::string& name) {
  Check worst{"none of this name", CheckState::passed, "", ""};
  for (const Check& check : part.checks)
    if (check.name == name && (worst.name != name || check.state > worst.state)) worst = check;
  EXPECT_EQ(worst.name, name);
  return worst;
}

Part tests_of(const Ended& ended) {
  Part part;
  read_tests_output("p", "/bin/p", ended, part);
  return part;
}

const std::string good = "[ RUN      ] S.One\n[       OK ] S.One (3 ms)\n";
const std::string bad = "[ RUN      ] S.Two\nboom\n[  FAILED  ] S.Two (1 ms)\n";
const std::string open_test = "[ RUN      ] S.Three\n";

TEST(TestsOutput, OfAProgramThatSkipsAllIsSkipped) {
  const std::string skipped = "[ RUN      ] S.One\n[  SKIPPED ] S.One (0 ms)\n";
  EXPECT_EQ(check_of(tests_of(ended_with(0, skipped)), "tests/p").state, CheckState::skipped);
  EXPECT_EQ(check_of(tests_of(ended_with(0, skipped + good)), "tests/p").state, CheckState::passed);
}

TEST(TestsOutput, OfAProgramThatEndsByItself) {
  const Part part = tests_of(ended_with(1, good + bad + "[  FAILED  ] 1 test, listed below:\n[  FAILED  ] S.Two\n"));
  EXPECT_EQ(check_of(part, "tests/p/S.One").state, CheckState::passed);
  EXPECT_EQ(check_of(part, "tests/p/S.Two").state, CheckState::wrong);
  EXPECT_EQ(check_of(part, "tests/p/S.Two").repro, "/bin/p --gtest_filter=S.Two");
  EXPECT_EQ(check_of(part, "tests/p").detail, "1 passed, 1 failed");
  EXPECT_EQ(part.checks.size(), 3u) << "the summary repeats the failed one";
  EXPECT_EQ(check_of(tests_of(ended_with(0, good)), "tests/p").state, CheckState::passed);
  const Check silent = check_of(tests_of(ended_with(127, "no such library")), "tests/p");
  EXPECT_EQ(silent.state, CheckState::wrong);
  EXPECT_EQ(silent.detail, "exit status 127: no such library");
}

TEST(TestsOutput, WhatIsKilledForTimeIsSkipped) {
  for (const Ended& ended : {over_time(good + open_test), interrupted(good + open_test)}) {
    const Check check = check_of(tests_of(ended), "tests/p");
    EXPECT_EQ(check.state, CheckState::skipped);
    EXPECT_EQ(check.detail, ended.how() + " in S.Three; 1 passed, 0 failed");
  }
  EXPECT_EQ(check_of(tests_of(over_time(bad + open_test)), "tests/p/S.Two").state, CheckState::wrong);
}

TEST(TestsOutput, WhatIsKilledByASignalIsACrash) {
  const Check in_test = check_of(tests_of(killed_by(SIGSEGV, good + open_test)), "tests/p");
  EXPECT_EQ(in_test.state, CheckState::crashed);
  EXPECT_EQ(in_test.detail, "SIGSEGV in S.Three; 1 passed, 0 failed");
  EXPECT_EQ(check_of(tests_of(killed_by(SIGABRT, good)), "tests/p").detail,
            "SIGABRT between tests; 1 passed, 0 failed");
  EXPECT_EQ(check_of(tests_of(ended_with(0, open_test)), "tests/p").state, CheckState::crashed) << "exit() in a test";
}

Part sanitized(const Ended& ended) {
  Part part;
  read_sanitizer_output({"sm80"}, ended, part);
  return part;
}

TEST(SanitizerOutput, ACleanOneHasPassed) {
  const Part part = sanitized(ended_with(0, "left racecheck sm80 --causal\ncompute-sanitizer: 3 clean, 0 not\n"));
  EXPECT_EQ(check_of(part, "sanitizer/sm80/memcheck").state, CheckState::passed);
  EXPECT_EQ(check_of(part, "sanitizer/sm80/racecheck").state, CheckState::skipped);
  EXPECT_EQ(part.step.note, "compute-sanitizer: 3 clean, 0 not");
}

TEST(SanitizerOutput, AnErrorIsWrong) {
  const std::string repro =
      "ATTEST_DEVICE_MEMORY=exact compute-sanitizer --tool memcheck attest check --kernel sm80 --x";
  const Part part = sanitized(ended_with(1, "FAILED (exit 99) " + repro + "\ncompute-sanitizer: 1 clean, 1 not\n"));
  EXPECT_EQ(check_of(part, "sanitizer/sm80/memcheck").state, CheckState::wrong);
  EXPECT_EQ(check_of(part, "sanitizer/sm80/memcheck").repro, repro);
  EXPECT_EQ(check_of(part, "sanitizer/sm80/initcheck").state, CheckState::passed);
}

TEST(SanitizerOutput, WhatDidNotRunToItsEndHasNotPassed) {
  for (const Ended& ended : {killed_by(SIGKILL), killed_by(SIGSEGV), over_time(), interrupted(), ended_with(127),
                             ended_with(1, "compute-sanitizer: 0 clean, 0 not, 9 refused by the kernel\n")}) {
    const Part part = sanitized(ended);
    EXPECT_EQ(check_of(part, "sanitizer").state, CheckState::skipped) << ended.how();
    EXPECT_EQ(part.checks.size(), 1u) << ended.how();
  }
}

TEST(WithoutAFigure, AKernelThatCrashedIsToldFromWhatIsNotItsOwn) {
  EXPECT_EQ(state_without_figure(ended_with(exit_kernel_crashed)), CheckState::crashed);
  EXPECT_EQ(state_without_figure(killed_by(SIGSEGV)), CheckState::crashed);
  EXPECT_EQ(state_without_figure(ended_with(exit_kernel_wrong)), CheckState::wrong);
  for (const Ended& ended : {ended_with(exit_usage), ended_with(exit_environment), over_time(), interrupted()})
    EXPECT_EQ(state_without_figure(ended), CheckState::skipped) << ended.how();
}

}  // namespace
}  // namespace attest
