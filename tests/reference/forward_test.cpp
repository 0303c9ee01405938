#include "attest/reference/forward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "attest/reference/attends.h"
#include "naive.h"
#include "problems.h"

namespace attest {
namespace {

void expect_equal(const Tensor& got, const Tensor& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.extents, want.extents);
  for (std::size_t n = 0; n < got.values.size(); ++n) {
    if (std::isnan(want.values[n])) {
      ASSERT_TRUE(std::isnan(got.values[n])) << what << " at " << n;
    } else if (std::isinf(want.values[n])) {
      ASSERT_EQ(got.values[n], want.values[n]) << what << " at " << n;
    } else {
      ASSERT_NEAR(got.values[n], want.values[n], tolerance * (1 + std::abs(want.values[n]))) << what << " at " << n;
    }
  }
}

// forward(), and the truth of forward_with_budget(), against the definition.
void expect_naive(const Case& c, const Inputs& inputs) {
  validate(c);
  const Forward want = naive_forward(c.problem, inputs);
  const Forward got = forward(c.problem, inputs);
  expect_equal(got.o, want.o, 1e-12, "o of " + command_line(c));
  expect_equal(got.lse, want.lse, 1e-12, "lse of " + command_line(c));
  const Truth truth = forward_with_budget(c.problem, inputs, flash_numerics(c.problem.dtype), true);
  expect_equal(truth.forward.o, want.o, 1e-12, "o with budget of " + command_line(c));
  expect_equal(truth.forward.lse, want.lse, 1e-12, "lse with budget of " + command_line(c));
}

TEST(ForwardTest, TwoKeysByHand) {
  Problem p = small_problem(1, 2, 1, 2);
  p.softmax_scale = 1;
  Inputs in{Tensor({1, 1, 1, 1}), Tensor({1, 2, 1, 1}), Tensor({1, 2, 1, 2})};
  in.q.values = {1};
  in.k.values = {0, 2};
  in.v.values = {1, 10, 3, -10};
  const double e2 = std::exp(2.0);
  const Forward out = forward(p, in);
  EXPECT_NEAR(out.o.values[0], (1 + 3 * e2) / (1 + e2), 1e-15);
  EXPECT_NEAR(out.o.values[1], (10 - 10 * e2) / (1 + e2), 1e-14);
  EXPECT_NEAR(out.lse.values[0], std::log(1 + e2), 1e-15);
}

TEST(ForwardTest, EdgeLengthsMasksAndGroups) {
  for (const std::int64_t sq : {0, 1, 63, 64, 65})
    for (const std::int64_t sk : {0, 1, 63, 64, 65})
      for (const Causal causal : {Causal::none, Causal::bottom_right, Causal::top_left})
        for (const auto& [left, right] : {std::pair{-1, -1}, {0, 0}, {5, -1}, {-1, 3}, {64, 1}}) {
          Case c;
          c.problem = small_problem(sq, sk, 5, 3);
          c.problem.batch = 2;
          c.problem.nheads = 6;
          c.problem.nheads_k = 2;
          c.problem.causal = causal;
          c.problem.window_left = left;
          c.problem.window_right = right;
          expect_naive(c, make_inputs(c));
        }
}

TEST(ForwardTest, EveryDistributionAndDtype) {
  for (const Distribution inputs : all_distributions)
    for (const Dtype dtype : all_dtypes)
      for (const std::int64_t headdim : {1, 16, 72}) {
        Case c;
        c.problem = small_problem(70, 130, headdim, 40, dtype);
        c.problem.nheads = 2;
        c.problem.causal = Causal::bottom_right;
        c.inputs = inputs;
        expect_naive(c, make_inputs(c));
      }
}

}  // namespace
}  // namespace attest
