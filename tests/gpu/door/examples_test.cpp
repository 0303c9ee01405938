// The plug-ins of docs/examples hold what they declare, and are told what they are.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "attest/fuzz/commands.h"
#include "attest/fuzz/inspect.h"
#include "attest/gpu/kernel_api.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

using testing::HasSubstr;

const WorkerProgram program{ATTEST_PROGRAM, {"__worker"}};

class Example : public testing::TestWithParam<std::string> {
 protected:
  static std::string kernel() { return EXAMPLES "/libexample_" + GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Door, Example, testing::Values("c.so", "cpp.so", "cpp.so:tile=16"),
                         [](const auto& p) { return "example" + std::to_string(p.index); });

TEST_P(Example, PassesACampaign) {
  CampaignOptions options;
  options.kernel = kernel();
  options.cases = 3000;
  options.threads = 1;
  options.budget = {64, 1 << 14, 512};
  const CommandResult command = fuzz_command(options, program);
  EXPECT_EQ(command.exit_code, exit_pass) << command.text;
  EXPECT_EQ(command.json->at("cases"), 3000);
  EXPECT_GT(command.json->at("passed").get<int>(), 20) << "plain attention is generated often enough";
}

TEST_P(Example, PassesTheDoctor) {
  const Inspection inspection = inspect_kernel(program, kernel());
  EXPECT_EQ(inspection.exit_code, exit_pass) << to_text(inspection);
  EXPECT_THAT(to_text(inspection), HasSubstr("properties hold"));
}

TEST(Examples, ThePlanIsWhatTheKernelTells) {
  Case c;
  EXPECT_THAT(inspect_plan(program, EXAMPLES "/libexample_cpp.so", c), HasSubstr("attest/plan/1"));
  c.problem.dtype = Dtype::fp32;
  EXPECT_THROW(inspect_plan(program, EXAMPLES "/libexample_c.so", c), InvalidInput) << "it tells none";
  EXPECT_THROW(inspect_plan(program, EXAMPLES "/libexample_cpp.so", c), InvalidInput) << "it refuses fp32";
}

// The C++ example declares bottom-right only.
TEST(Examples, WhereAllLengthsAreEqualBothAlignmentsAreOne) {
  CheckOptions options;
  options.kernel = EXAMPLES "/libexample_cpp.so";
  options.the_case.problem.causal = Causal::top_left;
  options.the_case.problem.seqlen_q = options.the_case.problem.seqlen_k = 9;
  EXPECT_EQ(check_command(options, program).exit_code, exit_pass);
  options.the_case.problem.seqlen_k = 10;
  EXPECT_EQ(check_command(options, program).exit_code, exit_unsupported);
}

TEST(Examples, ALineToPasteTakesAnyPath) {
  EXPECT_THAT(repro_line("./lib.so:tile=8", "mask", {}), HasSubstr("--kernel ./lib.so:tile=8 --property mask"));
  EXPECT_THAT(repro_line("./it's mine.so", "mask", {}), HasSubstr(R"(--kernel './it'\''s mine.so' --property)"));
}

TEST(Examples, TheRecordIsWhatTheSourceSays) {
  const Capability c = inspect_capability(program, EXAMPLES "/libexample_c.so");
  EXPECT_EQ(c.name, "plain-c");
  EXPECT_EQ(c.device, "cpu");
  EXPECT_EQ(c.dtypes, std::vector<Dtype>{Dtype::fp32});
  EXPECT_EQ(c.features,
            (std::vector<std::string>{"gqa", "headdim_v", "window", "causal=bottom-right", "causal=top-left"}));
  EXPECT_TRUE(c.offers_lse && c.bitwise_batch && c.bitwise_gqa && c.bitwise_layout && c.bitwise_repeat);
  EXPECT_FALSE(c.offers_gradients);
}

#ifdef WITH_CUDA_EXAMPLE
// Its record can be read anywhere, as its table; what it computes only where a GPU is.
TEST(Examples, TheCudaPlugInLoadsAndSaysWhatItIs) {
  const std::string path = EXAMPLES "/libexample_cuda.so";
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto get = reinterpret_cast<decltype(&attest_kernel)>(::dlsym(library, ATTEST_KERNEL_SYMBOL));
  ASSERT_NE(get, nullptr);
  const attest_kernel_api* const table = get(ATTEST_KERNEL_ABI);
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->abi_version, ATTEST_KERNEL_ABI);
  EXPECT_EQ(table->capability->device, ATTEST_DEVICE_CUDA);
  EXPECT_EQ(table->capability->dtypes, 1U << ATTEST_FP16);
  EXPECT_EQ(table->capability->channels, std::uint32_t{ATTEST_CHANNEL_O | ATTEST_CHANNEL_LSE});
  ::dlclose(library);

  const Inspection inspection = inspect_kernel(program, path);
  if (inspection.exit_code != exit_environment) {
    EXPECT_EQ(inspection.exit_code, exit_pass) << to_text(inspection);
  } else {
    EXPECT_EQ(inspection.steps.size(), 1U);
    EXPECT_THAT(inspection.steps.at(0).detail, testing::AnyOf(HasSubstr("driver"), HasSubstr("GPU")));
  }
}
#endif

}  // namespace
}  // namespace attest
