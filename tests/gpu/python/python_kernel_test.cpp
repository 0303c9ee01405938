// Python functions under test: PyTorch's own attention passes, a planted fault is found and made small, and a function
// that does wrong is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "attest/fuzz/commands.h"
#include "attest/fuzz/inspect.h"
#include "attest/fuzz/kernels.h"
#include "attest/gpu/forward_buffers.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

using testing::HasSubstr;

const WorkerProgram program{ATTEST_PROGRAM, {"__worker"}};

class Python : public testing::Test {
 protected:
  static void SetUpTestSuite() { ::setenv("ATTEST_PYTHON", ATTEST_PYTHON_WITH_TORCH, 1); }
};

std::string example(const std::string& name) { return EXAMPLES "/torch_kernel.py:" + name; }
std::string liar(const std::string& name) { return LIARS "/liar.py:" + name; }

CampaignOptions campaign(const std::string& kernel, std::uint64_t cases) {
  CampaignOptions options;
  options.kernel = kernel;
  options.cases = cases;
  options.threads = 1;
  options.budget = {64, 1 << 13, 256};
  return options;
}

TEST_F(Python, TorchPassesACampaignForwardAndBackward) {
  const CommandResult command = fuzz_command(campaign(example("plain"), 600), program);
  EXPECT_EQ(command.exit_code, exit_pass) << command.text;
  EXPECT_GT(command.json->at("passed").get<int>(), 20);
}

// Where it did not say that it divides P first, `accumulator` would accuse it.
TEST_F(Python, TorchsSoftmaxPassesEveryProbe) {
  Case c;
  c.problem.dtype = Dtype::fp32;
  c.problem.seqlen_q = 5;
  c.problem.seqlen_k = 3;
  c.problem.headdim_v = 16;
  const std::unique_ptr<Kernel> kernel = make_kernel(example("softmax_first"));
  EXPECT_TRUE(kernel->numerics(c).normalises_first);
  EXPECT_FALSE(make_kernel(example("plain"))->numerics(c).normalises_first);
  for (const char* const property : {"reference", "one_v", "one_hot_v", "accumulator", "lookup", "mask"}) {
    CheckOptions options;
    options.kernel = example("softmax_first");
    options.the_case = c;
    options.property = property;
    const CommandResult command = check_command(options, program);
    EXPECT_EQ(command.exit_code, exit_pass) << command.text;
  }
}

TEST_F(Python, NumpyPassesTheDoctor) {
  const Inspection inspection = inspect_kernel(program, example("numpy"));
  EXPECT_EQ(inspection.exit_code, exit_pass) << to_text(inspection);
}

TEST_F(Python, AFaultIsFoundMadeSmallAndItsLineRepeatsIt) {
  CampaignOptions options = campaign(example("off_by_one"), 2000);
  options.max_failed = 1;
  const CampaignResult result = run_campaign(program, options);
  ASSERT_FALSE(result.failures.empty()) << to_text(options, result);
  const Failure& failure = result.failures[0];
  EXPECT_NE(failure.minimal.problem.causal, Causal::none);
  EXPECT_LE(failure.minimal.problem.seqlen_k, 8) << failure.repro;
  EXPECT_THAT(failure.repro, HasSubstr("--kernel " + example("off_by_one")));
  CheckOptions check;
  check.kernel = options.kernel;
  check.property = failure.property;
  check.the_case = failure.minimal;
  EXPECT_EQ(check_command(check, program).exit_code, exit_kernel_wrong);
}

CommandResult check(const std::string& name) {
  CheckOptions options;
  options.kernel = liar(name);
  options.the_case.problem.dtype = Dtype::fp32;
  options.the_case.problem.seqlen_q = options.the_case.problem.seqlen_k = 5;
  options.property = "reference";
  options.hang_seconds = 1;
  return check_command(options, program);
}

TEST_F(Python, WhatDoesWrongIsAFinding) {
  for (const auto& [name, exit_code, says] :
       {std::tuple<std::string, ExitCode, std::string>{"raises", exit_kernel_crashed,
                                                       "RuntimeError: no room (liar.py:"},
        {"crashes", exit_kernel_crashed, "python ended by SIGSEGV"},
        {"exits", exit_kernel_crashed, "python ended with exit status 0"},
        {"hangs", exit_kernel_crashed, "no end after 1 s"},
        {"asked_badly", exit_kernel_crashed, "no_such_field"},
        {"rounds_badly", exit_kernel_crashed, "numerics.chain: 0 is outside 1 to"},
        {"refuses", exit_unsupported, "batch: 1 is not to my liking"},
        {"chatters", exit_kernel_wrong, "unwritten"},
        {"out_of_bounds", exit_kernel_wrong, "out_of_bounds"},
        {"far_away", exit_kernel_wrong, "unwritten"}}) {
    const CommandResult command = check(name);
    EXPECT_EQ(command.exit_code, exit_code) << command.text;
    EXPECT_THAT(command.text, HasSubstr(says));
  }
}

// What a call takes is the child's CPU time: this process does nothing but wait.
TEST_F(Python, ItsCallsAreTimedWhereTheyRun) {
  const std::unique_ptr<Kernel> kernel = make_kernel(liar("burns"));
  Case c;
  c.problem.dtype = Dtype::fp32;
  c.problem.seqlen_q = c.problem.seqlen_k = 4;
  ForwardBuffers buffers;
  const CallTimes times = buffers.time(*kernel, c, make_inputs(c), 3);
  EXPECT_FALSE(times.on_device);
  ASSERT_EQ(times.seconds.size(), 3U);
  for (const double seconds : times.seconds) {
    EXPECT_GE(seconds, 0.03);
    EXPECT_LT(seconds, 0.06);
  }
  buffers.run(*kernel, c, make_inputs(c));  // computes again after being timed
  EXPECT_LT(buffers.time(*kernel, c, make_inputs(c), 1).seconds.at(0), 0.06);
}

TEST_F(Python, WhatCannotBeMadeIsToldInOneLine) {
  for (const auto& [kernel, exit_code, says] :
       {std::tuple<std::string, ExitCode, std::string>{LIARS "/no_such_file.py", exit_usage, "is no file"},
        {liar("nobody"), exit_usage, "names none of its kernels: raises, crashes"},
        {liar("unknown_dtype"), exit_environment, "dtypes: 'fp64' is none of fp16"},
        {liar("no_base"), exit_usage, "capability.lse_base: 1 is no base"},
        {LIARS "/no_import.py", exit_environment, "No module named 'no_such_module_anywhere'"}}) {
    const Inspection inspection = inspect_kernel(program, kernel);
    EXPECT_EQ(inspection.exit_code, exit_code) << to_text(inspection);
    EXPECT_THAT(inspection.steps.at(0).detail, HasSubstr(says));
  }
  ::setenv("ATTEST_PYTHON", "/no/such/python", 1);
  const Inspection inspection = inspect_kernel(program, example("numpy"));
  ::setenv("ATTEST_PYTHON", ATTEST_PYTHON_WITH_TORCH, 1);
  EXPECT_EQ(inspection.exit_code, exit_environment);
  EXPECT_THAT(inspection.steps.at(0).detail, HasSubstr("$ATTEST_PYTHON names another"));
}

}  // namespace
}  // namespace attest
