// The CPU kernel on every feature of a Problem, against a truth written out in the test.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attest/cpu/cpu_kernel.h"
#include "attest/gpu/forward_buffers.h"
#include "whole_problem.h"

namespace attest {
namespace {

// Infinities and NaN count as equal to themselves alone.
double worst_difference(const Tensor& is, const Tensor& should) {
  double worst = 0;
  for (std::size_t i = 0; i < is.values.size(); ++i) {
    const double a = is.values[i], b = should.values[i];
    if (a == b) continue;
    worst = std::max(worst, std::isfinite(a) && std::isfinite(b) ? std::abs(a - b) : 1e300);
  }
  return worst;
}

class CpuFeatures : public testing::TestWithParam<std::tuple<Dtype, double, double>> {};

TEST_P(CpuFeatures, GiveTheTruth) {
  const auto [dtype, o_tolerance, lse_tolerance] = GetParam();
  CpuKernel kernel;
  ForwardBuffers buffers;
  int ran = 0;
  for (std::uint64_t k = 0; k < 400; ++k) {
    const Case c = test::whole_case(k, dtype);
    if (kernel.unsupported(c)) continue;
    ++ran;
    const Inputs inputs = test::whole_inputs(c);
    const Outputs truth = test::whole_truth(c, inputs);
    const ForwardRun run = buffers.run(kernel, c, inputs);
    ASSERT_THAT(run.report.hazards, testing::IsEmpty()) << command_line(c);
    ASSERT_EQ(run.outputs.unwritten_o + run.outputs.unwritten_lse + run.outputs.out_of_bounds, 0) << command_line(c);
    ASSERT_LE(worst_difference(run.outputs.o, truth.o), o_tolerance) << k << ": " << command_line(c);
    ASSERT_LE(worst_difference(*run.outputs.lse, *truth.lse), lse_tolerance) << k << ": " << command_line(c);
  }
  EXPECT_GT(ran, 300);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CpuFeatures,
                         testing::Values(std::tuple(Dtype::fp32, 3e-5, 3e-5), std::tuple(Dtype::fp16, 1e-2, 1e-4),
                                         std::tuple(Dtype::bf16, 6e-2, 1e-4)),
                         [](const auto& test) { return std::string(to_string(std::get<0>(test.param))); });

}  // namespace
}  // namespace attest
