// Cases, arguments and numerics in the words of the C header, and back.
#include "attest/gpu/api_problem.h"

#include <gtest/gtest.h>

#include "api_numerics.h"
#include "attest/cpu/cpu_kernel.h"
#include "attest/fuzz/generators.h"
#include "attest/fuzz/kernels.h"
#include "attest/gpu/forward_buffers.h"

namespace attest {
namespace {

TEST(ApiProblem, GivesBackWhatAKernelMayKnow) {
  std::uint64_t seen = 0;
  for (std::uint64_t k = 0; k < 2000; ++k) {
    Case c = generate_case(7, k, Budget{});
    const attest_problem api = to_api(c);
    seen |= api.features;
    EXPECT_EQ(api.softmax_scale, effective_softmax_scale(c.problem));
    Case back = case_of(api);
    c.problem.softmax_scale = effective_softmax_scale(c.problem);
    c.inputs = back.inputs;
    c.layout.page_table.clear();
    c.layout.num_pages = 0;
    EXPECT_EQ(back, c) << command_line(c);
  }
  EXPECT_EQ(seen, (std::uint64_t{ATTEST_FEATURE_SPLITS} << 1) - 1) << "every feature is generated";
}

TEST(ApiProblem, EveryFeatureHasItsWord) {
  for (std::uint64_t bit = 1; bit <= ATTEST_FEATURE_SPLITS; bit *= 2) EXPECT_STRNE(feature_word(bit), "?");
  EXPECT_STREQ(feature_word(ATTEST_FEATURE_SPLITS), "num_splits");
  EXPECT_STREQ(feature_word(ATTEST_FEATURE_SPLITS * 2), "?");
}

TEST(ApiNumerics, GoThroughTheTableUnchanged) {
  for (const Dtype dtype : all_dtypes) {
    Numerics n = flash_numerics(dtype, 48);
    n.chain = 3;
    n.num_splits = 5;
    n.max_P = 256;
    n.u_share = 0x1p-8;
    n.normalises_first = true;
    EXPECT_EQ(numerics_of(to_api(n), n.name), n);
  }
}

// The same kernel with and without the door: bit for bit.
TEST(BuiltIn, BehindTheTableItIsTheSameKernel) {
  const std::unique_ptr<Kernel> behind = make_kernel("cpu:stages=2");
  CpuKernel direct(parse_cpu_plan_spec("stages=2"));
  ForwardBuffers buffers;
  int judged = 0;
  for (std::uint64_t k = 0; k < 60; ++k) {
    const Case c = generate_case(3, k, Budget{64, 1 << 13, 256});
    const auto refusal = direct.unsupported(c);
    EXPECT_EQ(behind->unsupported(c), refusal);
    if (refusal) continue;
    EXPECT_EQ(behind->numerics(c), direct.numerics(c));
    const Inputs inputs = make_inputs(c);
    const ForwardRun a = buffers.run(*behind, c, inputs), b = buffers.run(direct, c, inputs);
    const auto same = [](double x, double y) { return x == y || (x != x && y != y); };
    EXPECT_TRUE(std::equal(a.outputs.o.values.begin(), a.outputs.o.values.end(), b.outputs.o.values.begin(), same));
    EXPECT_TRUE(
        std::equal(a.outputs.lse->values.begin(), a.outputs.lse->values.end(), b.outputs.lse->values.begin(), same));
    EXPECT_EQ(a.report.hazards, b.report.hazards);
    ++judged;
  }
  EXPECT_GT(judged, 40);
}

}  // namespace
}  // namespace attest
