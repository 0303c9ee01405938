// Plug-ins that do wrong, each in its own way: a finding or a line that names field, value and limit, and never the end
// of the program that tests them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "attest/fuzz/commands.h"
#include "attest/fuzz/inspect.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

using testing::HasSubstr;
using testing::Not;

WorkerProgram worker_program(double load_seconds) { return {ATTEST_PROGRAM, {"__worker"}, load_seconds}; }
const WorkerProgram program = worker_program(20);
const std::string liar = PLUGINS "/libliar.so", thrower = PLUGINS "/libthrower.so";

// What the liar does before it has options.
class AtLoad {
 public:
  explicit AtLoad(const std::string& wrong) { ::setenv("ATTEST_LIAR", wrong.c_str(), 1); }
  ~AtLoad() { ::unsetenv("ATTEST_LIAR"); }
  AtLoad(const AtLoad&) = delete;
  AtLoad& operator=(const AtLoad&) = delete;
};

// Exit status and line of what cannot even be made.
std::pair<ExitCode, std::string> refusal(const std::string& kernel, double load_seconds = 20) {
  const Inspection inspection = inspect_kernel(worker_program(load_seconds), kernel);
  EXPECT_EQ(inspection.steps.size(), 1u) << to_text(inspection);
  return {inspection.exit_code, inspection.steps.at(0).detail};
}

struct Wrong {
  std::string word;
  ExitCode exit_code;
  std::string says;
};
std::ostream& operator<<(std::ostream& out, const Wrong& wrong) { return out << wrong.word; }
std::string name_of(const testing::TestParamInfo<Wrong>& info) { return info.param.word; }

class WrongAtLoad : public testing::TestWithParam<Wrong> {};
INSTANTIATE_TEST_SUITE_P(
    Liar, WrongAtLoad,
    testing::Values(Wrong{"crash_at_load", exit_kernel_crashed, "SIGSEGV"},
                    Wrong{"exit_at_load", exit_kernel_crashed, "exit status 0"},
                    Wrong{"close_at_load", exit_kernel_crashed, "exit status"},
                    Wrong{"limit_at_load", exit_kernel_crashed,
                          "changes the limits of its process, RLIMIT_AS: 1048576"},
                    Wrong{"wild_pointer", exit_kernel_crashed, "SIGSEGV"},
                    Wrong{"null_table", exit_environment, "attest_kernel() gave no table"},
                    Wrong{"null_record", exit_environment, "capability: the table points to no record"},
                    Wrong{"version", exit_environment, "abi_version: 2 is not 1"},
                    Wrong{"table_small", exit_environment, "struct_size of attest_kernel_api: 40 is outside"},
                    Wrong{"table_garbage", exit_environment, "struct_size of attest_kernel_api: 4294967295 is outside"},
                    Wrong{"record_small", exit_environment, "struct_size of attest_capability: 8 is outside"},
                    Wrong{"null_forward", exit_usage, "forward: nothing stands in the table"},
                    Wrong{"gradients", exit_usage, "backward: nothing stands in the table"},
                    Wrong{"null_name", exit_usage, "capability.name: nothing"},
                    Wrong{"long_name", exit_usage, "capability.name: 65 characters"},
                    Wrong{"no_dtypes", exit_usage, "capability.dtypes: 0"},
                    Wrong{"unknown_dtype", exit_usage, "capability.dtypes: 0x80 has bits beyond 0x1f"},
                    Wrong{"unknown_device", exit_usage, "capability.device: 9"},
                    Wrong{"no_channels", exit_usage, "capability.channels: 0x0 is without ATTEST_CHANNEL_O"},
                    Wrong{"lse_base", exit_usage, "capability.lse_base: 1 is no base"},
                    Wrong{"lse_of_empty_row", exit_usage, "capability.lse_of_empty_row: nan"},
                    Wrong{"arithmetic", exit_usage, "capability.arithmetic: 5"}),
    name_of);

TEST_P(WrongAtLoad, IsOneLine) {
  const AtLoad wrong(GetParam().word);
  const auto [exit_code, line] = refusal(liar);
  EXPECT_EQ(exit_code, GetParam().exit_code) << line;
  EXPECT_THAT(line, HasSubstr(GetParam().says));
  EXPECT_THAT(line, Not(HasSubstr("\n")));
}

TEST(Liar, AHangAtLoadEnds) {
  const AtLoad wrong("hang_at_symbol");
  const auto [exit_code, line] = refusal(liar, 0.5);
  EXPECT_EQ(exit_code, exit_kernel_crashed);
  EXPECT_EQ(line, "kernel '" + liar + "' is not loaded after 0.5 s, the limit");
}

TEST(Liar, ACudaPluginWithoutAGpuSaysSo) {
  const AtLoad wrong("cuda");
  const Inspection inspection = inspect_kernel(program, liar);
  if (inspection.exit_code == exit_environment)
    EXPECT_THAT(inspection.steps.at(0).detail,
                testing::AnyOf(HasSubstr("GPU"), HasSubstr("driver"), HasSubstr("CUDA")));
  else
    EXPECT_EQ(inspection.exit_code, exit_kernel_crashed) << "it runs on the host what lies on the device";
}

TEST(Liar, WhatIsNoPluginIsToldApart) {
  const auto scratch = std::filesystem::path(testing::TempDir()) / "attest_no_plugin.so";
  std::ofstream(scratch) << std::string(4096, 'x');
  for (const auto& [kernel, exit_code, says] :
       {std::tuple<std::string, ExitCode, std::string>{"/no/such/libmine.so", exit_usage,
                                                       "kernel: '/no/such/libmine.so' is no file"},
        {"/", exit_usage, "is no regular file"},
        {scratch.string(), exit_environment, "invalid ELF header"},
        {PLUGINS "/libno_symbol.so", exit_environment, "exports no function attest_kernel"}}) {
    const auto [code, line] = refusal(kernel);
    EXPECT_EQ(code, exit_code) << line;
    EXPECT_THAT(line, HasSubstr(says));
  }
  std::filesystem::remove(scratch);
}

TEST(Liar, LongerStructsAreALaterEditionAndWork) {
  const AtLoad later("longer");
  const Inspection inspection = inspect_kernel(program, liar);
  EXPECT_EQ(inspection.exit_code, exit_pass) << to_text(inspection);
}

TEST(Liar, WhatItPrintsAtLoadDisturbsNobody) {
  const AtLoad chatter("chatter_at_load");
  EXPECT_EQ(inspect_capability(program, liar).name, "plain-c");
}

TEST(Liar, RefusedOptionsAreTheUsers) {
  EXPECT_EQ(refusal(liar + ":invalid_option"), std::pair(exit_usage, std::string("tile: 7 is no power of two")));
  EXPECT_EQ(refusal(liar + ":no_environment"), std::pair(exit_environment, std::string("no such GPU here")));
  EXPECT_EQ(refusal(liar + ":create_crash").first, exit_kernel_crashed);
  EXPECT_EQ(refusal(thrower + ":option"), std::pair(exit_usage, std::string("kernel: 'option' is not to be had")));
  EXPECT_EQ(refusal(thrower + ":environment"), std::pair(exit_environment, std::string("no such library here")));
  EXPECT_EQ(refusal(thrower + ":create"), std::pair(exit_environment, std::string("created badly")));
  const std::string no_options = EXAMPLES "/libexample_c.so:tile=3";
  EXPECT_EQ(refusal(no_options).first, exit_usage);
}

CheckOptions check_of(const std::string& kernel) {
  CheckOptions options;
  options.kernel = kernel;
  options.the_case.problem.dtype = Dtype::fp32;
  options.the_case.problem.seqlen_q = 3;
  options.the_case.problem.seqlen_k = 21;
  options.hang_seconds = 0.5;
  return options;
}

class WrongAtWork : public testing::TestWithParam<Wrong> {};
INSTANTIATE_TEST_SUITE_P(
    Liar, WrongAtWork,
    testing::Values(
        Wrong{"supports_crash", exit_kernel_crashed, "SIGSEGV in the kernel's unsupported()"},
        Wrong{"supports_hang", exit_kernel_crashed, "no end after 0.5 s in the kernel's unsupported()"},
        Wrong{"supports_status", exit_kernel_crashed, "supports() gave status 17, which is none of 0 to 5"},
        Wrong{"supports_nothing", exit_unsupported, "batch: 1 is not to my liking"},
        Wrong{"no_reason", exit_unsupported, "the kernel gives no reason"},
        Wrong{"garbage_reason", exit_unsupported, "????"},
        Wrong{"numerics_negative", exit_kernel_crashed, "numerics.u_P: -1 is outside 0 to 0.25"},
        Wrong{"numerics_nan", exit_kernel_crashed, "numerics.eps_exp: nan is outside 0 to 0.25"},
        Wrong{"numerics_wide", exit_kernel_crashed, "numerics.u_acc: 1 is outside 0 to 0.25"},
        Wrong{"numerics_chain", exit_kernel_crashed, "numerics.chain: 0 is outside 1 to"},
        Wrong{"workspace_negative", exit_kernel_crashed, "workspace: -5 bytes is outside 0 to"},
        Wrong{"workspace_huge", exit_kernel_crashed, "workspace: 9223372036854775807 bytes is outside 0 to"},
        Wrong{"lies_about_support", exit_kernel_crashed, "forward() refuses what supports() takes: not with 21 keys"},
        Wrong{"fails", exit_kernel_crashed, "forward() gave ATTEST_FAILED and no message"},
        Wrong{"lost", exit_kernel_crashed, "the device is gone in the kernel"},
        Wrong{"run_crash", exit_kernel_crashed, "SIGSEGV in the kernel"},
        Wrong{"run_hang", exit_kernel_crashed, "no end after 0.5 s in the kernel"},
        Wrong{"run_exit", exit_kernel_crashed, "exit status 0 in the kernel"},
        Wrong{"run_close", exit_kernel_crashed, "exit status"},
        Wrong{"limits_memory", exit_kernel_crashed, "limits of its process, RLIMIT_AS: 1048576 is below"},
        Wrong{"limits_time", exit_kernel_crashed, "limits of its process, RLIMIT_CPU: 1048576 is below"},
        Wrong{"limits_files", exit_kernel_crashed, "limits of its process, RLIMIT_FSIZE: 0 is below"},
        Wrong{"limits_processes", exit_kernel_crashed, "limits of its process, RLIMIT_NPROC: 0 is below"},
        Wrong{"limits_descriptors", exit_kernel_crashed, "limits of its process, RLIMIT_NOFILE: 0 is below"},
        Wrong{"limits_stack", exit_kernel_crashed, "limits of its process, RLIMIT_STACK: 4096 is below"},
        Wrong{"changes_arguments", exit_kernel_crashed, "forward() changed the arguments that it was handed"},
        Wrong{"far_out_of_bounds", exit_kernel_crashed, "SIGSEGV in the kernel"},
        Wrong{"far_before", exit_kernel_crashed, "SIGSEGV in the kernel"},
        Wrong{"neighbour", exit_kernel_crashed, "crashed"},
        Wrong{"hazard", exit_kernel_wrong, "K read before its copy arrived"},
        Wrong{"past_workspace", exit_kernel_wrong, "4 bytes changed around the workspace"},
        Wrong{"out_of_bounds", exit_kernel_wrong, "out_of_bounds"},
        Wrong{"writes_input", exit_kernel_wrong, "out_of_bounds"}, Wrong{"unwritten", exit_kernel_wrong, "unwritten"},
        Wrong{"wrong_lse", exit_kernel_wrong, "lse"}),
    name_of);

TEST_P(WrongAtWork, IsAFinding) {
  const CommandResult command = check_command(check_of(liar + ":" + GetParam().word), program);
  EXPECT_EQ(command.exit_code, GetParam().exit_code) << command.text;
  EXPECT_THAT(command.text, HasSubstr(GetParam().says));
}

TEST(Liar, EveryFunctionMayThrow) {
  for (const auto& [word, says] : {std::pair<std::string, std::string>{"supports", "asked badly"},
                                   {"numerics", "rounded badly"},
                                   {"lost", "the device is gone"},
                                   {"seven", "an exception that is no std::exception"},
                                   {"forward", "xxxx"}}) {
    const CommandResult command = check_command(check_of(thrower + ":" + word), program);
    EXPECT_EQ(command.exit_code, exit_kernel_crashed) << command.text;
    EXPECT_THAT(command.text, HasSubstr(says));
  }
}

TEST(Liar, HonestItPasses) {
  const CommandResult command = check_command(check_of(liar), program);
  EXPECT_EQ(command.exit_code, exit_pass) << command.text;
}

// It returns in two processes, of which one is the worker.
TEST(Liar, OneThatForksIsHeardOnce) {
  CampaignOptions options;
  options.cases = 60;
  options.threads = 1;
  options.kernel = liar;
  const CampaignResult honest = run_campaign(program, options);
  options.kernel = liar + ":run_fork";
  const CampaignResult forking = run_campaign(program, options);
  EXPECT_GT(forking.passed, 0u);
  EXPECT_EQ(forking.outcomes, honest.outcomes);
}

TEST(Liar, ACampaignGoesOnAndItsLinesRepeatTheFinding) {
  CampaignOptions options;
  options.kernel = liar + ":run_crash";
  options.cases = 40;
  options.threads = 1;
  options.shrink.max_runs = 20;
  const CommandResult command = fuzz_command(options, program);
  EXPECT_EQ(command.exit_code, exit_kernel_crashed);
  EXPECT_EQ(command.json->at("cases"), 40);
  EXPECT_THAT(command.json->at("failures").at(0).at("repro").get<std::string>(),
              HasSubstr("--kernel " + liar + ":run_crash"));
  options.kernel = liar + ":supports_nothing";
  EXPECT_EQ(fuzz_command(options, program).exit_code, exit_unsupported);
}

}  // namespace
}  // namespace attest
