// The error budget against a kernel that is right, in many makes: it must never be exceeded.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "attest/reference/compare.h"
#include "emulated_kernel.h"
#include "problems.h"

namespace attest {
namespace {

template <class T, std::size_t n>
T pick(std::mt19937& random, const T (&choices)[n]) {
  return choices[random() % n];
}

class BudgetTest : public testing::TestWithParam<std::tuple<Distribution, Dtype>> {};
INSTANTIATE_TEST_SUITE_P(All, BudgetTest,
                         testing::Combine(testing::ValuesIn(all_distributions), testing::ValuesIn(all_dtypes)),
                         [](const auto& tested) {
                           return std::string(to_string(std::get<0>(tested.param))) + "_" +
                                  std::string(to_string(std::get<1>(tested.param)));
                         });

TEST_P(BudgetTest, RightKernelsStayInside) {
  const auto [distribution, dtype] = GetParam();
  std::mt19937 random(20240607 + static_cast<unsigned>(distribution) * 8 + static_cast<unsigned>(dtype));
  std::int64_t rows = 0;
  double nearest = 0;
  for (int n = 0; n < 60; ++n) {
    Case c;
    Problem& p = c.problem;
    p = small_problem(1 + static_cast<std::int64_t>(random() % 40),
                      pick(random, {1, 2, 3, 7, 16, 17, 40, 64, 65, 128, 200, 513, 1025}),
                      pick(random, {1, 2, 8, 16, 40, 64, 128, 256}), pick(random, {1, 2, 8, 16, 40, 64, 128}), dtype);
    c.inputs = distribution;
    c.seed = random();
    p.causal = pick(random, {Causal::none, Causal::bottom_right, Causal::top_left});
    if (random() % 3 == 0) p.window_left = random() % 70;
    if (random() % 3 == 0) p.window_right = random() % 70;
    if (random() % 6 == 0) p.softmax_scale = pick(random, {-0.3, 2.5, 0.0, 1e-30});
    EmulatedKernel kernel;
    kernel.dtype = dtype;
    kernel.tile = pick(random, {16, 32, 64, 128});
    kernel.last_tile_first = random() % 2;
    kernel.accumulator = pick(random, {Accumulator::fused, Accumulator::rounded, Accumulator::tensor_core});
    kernel.denominator_sums = pick(random, {1, 4});
    kernel.lazy_rescale = random() % 3 == 0;
    kernel.lse_through_base_2 = random() % 3 == 0;
    kernel.noise = random();

    const Inputs inputs = make_inputs(c);
    const Truth truth = forward_with_budget(p, inputs, kernel.numerics(), distribution == Distribution::normal);
    const Verdict verdict = compare(p, truth, kernel.run(p, inputs));
    ASSERT_EQ(verdict.status, Status::passed) << command_line(c) << "\n" << verdict.detail;
    rows += p.seqlen_q;
    nearest = std::max(nearest, verdict.error_over_budget);
  }
  RecordProperty("rows", static_cast<int>(rows));
  std::cout << "  " << rows << " rows, nearest to a budget " << nearest << "\n";
}

}  // namespace
}  // namespace attest
