// The CPU kernel's gradients on every feature of a Problem, against the reference's within its budget.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "attest/cpu/cpu_kernel.h"
#include "attest/gpu/forward_buffers.h"
#include "attest/reference/backward.h"
#include "backward_case.h"

namespace attest {
namespace {

using testing::IsEmpty;

class CpuGradients : public testing::TestWithParam<Dtype> {};

TEST_P(CpuGradients, LieWithinTheBudget) {
  CpuKernel kernel;
  ForwardBuffers buffers;
  for (std::uint64_t k = 0; k < 150; ++k) {
    const Case c = test::backward_case(k, GetParam());
    const Inputs inputs = make_inputs(c);
    const ForwardRun run = buffers.run_backward(kernel, c, inputs);
    ASSERT_THAT(run.report.hazards, IsEmpty()) << command_line(c);
    Truth truth = forward_with_budget(c.problem, inputs, kernel.numerics(c), false);
    const Forward handed{run.outputs.o, *run.outputs.lse};
    add_gradients(c.problem, inputs, truth, &handed);
    const Verdict verdict = compare(c.problem, truth, run.outputs);
    ASSERT_EQ(verdict.status, Status::passed) << k << ": " << command_line(c) << "\n" << to_json(verdict).dump(1);
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CpuGradients, testing::Values(Dtype::fp32, Dtype::fp16, Dtype::bf16),
                         [](const auto& test) { return std::string(to_string(test.param)); });

}  // namespace
}  // namespace attest
