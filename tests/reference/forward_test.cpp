#include "attest/reference/forward.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <sys/resource.h>

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

// A NaN or Inf reaches the rows that see it and no other: put at one key at a time, in K and V apart.
TEST(ForwardTest, NanReachesWhoSeesIt) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  Case c;
  c.problem = small_problem(70, 80, 8, 6);
  c.problem.nheads = 2;
  c.problem.causal = Causal::bottom_right;
  c.problem.window_left = 20;
  for (const double poison : {nan, inf, -inf})
    for (const std::int64_t j : {0, 9, 10, 40, 63, 64, 79}) {
      Inputs in = make_inputs(c);
      in.v.at(0, j, 0, 3) = poison;
      const Forward o = forward(c.problem, in);
      const Truth truth = forward_with_budget(c.problem, in, flash_numerics(c.problem.dtype), true);
      Inputs poisoned_k = make_inputs(c);
      poisoned_k.k.at(0, j, 0, 2) = nan;
      const Forward k = forward(c.problem, poisoned_k);
      for (std::int64_t i = 0; i < 70; ++i) {
        const bool sees = attends(c.problem, 0, i, j);
        for (std::int64_t d = 0; d < 6; ++d) {
          ASSERT_EQ(std::isfinite(o.o.at(0, i, 0, d)), !(sees && d == 3)) << i << " " << j << " " << poison;
          ASSERT_EQ(std::isfinite(truth.forward.o.at(0, i, 0, d)), !(sees && d == 3));
          if (!sees || d != 3) {
            ASSERT_TRUE(std::isfinite(truth.o_bound.at(0, i, 0, d)));
            ASSERT_TRUE(std::isfinite(truth.o_variance.at(0, i, 0, d)));
          }
          ASSERT_EQ(std::isnan(k.o.at(0, i, 0, d)), sees);
        }
        ASSERT_TRUE(std::isfinite(o.lse.at(0, 0, i, 0)));
        ASSERT_EQ(std::isnan(k.lse.at(0, 0, i, 0)), sees);
      }
      expect_equal(o.o, naive_forward(c.problem, in).o, 1e-12, "o");
    }
}

TEST(ForwardTest, NanInQStaysInItsRow) {
  Case c;
  c.problem = small_problem(66, 5, 8, 6);
  Inputs in = make_inputs(c);
  in.q.at(0, 64, 0, 0) = std::numeric_limits<double>::quiet_NaN();
  expect_naive(c, in);
}

TEST(ForwardTest, AnyThreadsGiveTheSameBits) {
  Case c;
  c.problem = small_problem(300, 500, 64, 64);  // large enough for a team
  const Inputs in = make_inputs(c);
  omp_set_num_threads(1);
  const Forward one = forward(c.problem, in);
  omp_set_num_threads(3);
  const Forward three = forward(c.problem, in);
  omp_set_num_threads(omp_get_num_procs());
  EXPECT_EQ(one.o.values, three.o.values);
  EXPECT_EQ(one.lse.values, three.lse.values);
}

// 32K keys: two threads' strips of 64 x 32768 are 16 MiB each (48 with the budget); S would be 8 GiB.
TEST(ForwardTest, ManyKeysInBoundedMemory) {
  Case c;
  c.problem = small_problem(130, 32768, 16, 16);
  const Inputs in = make_inputs(c);
  const auto resident_mib = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
  };
  omp_set_num_threads(2);
  const long before = resident_mib();
  const Forward got = forward(c.problem, in);
  const long after_forward = resident_mib();
  const Truth truth = forward_with_budget(c.problem, in, flash_numerics(c.problem.dtype), true);
  const long after_budget = resident_mib();
  omp_set_num_threads(omp_get_num_procs());
  std::cout << "  resident: " << before << " MiB before, " << after_forward << " after forward, " << after_budget
            << " after the budget\n";
  EXPECT_LT(after_forward - before, 64);
  EXPECT_LT(after_budget - before, 192);
  c.problem.seqlen_q = 1;
  Inputs first = in;
  first.q = Tensor({1, 1, 1, 16});
  for (std::int64_t row : {0, 63, 64, 129}) {
    c.problem.causal = Causal::none;
    for (std::int64_t d = 0; d < 16; ++d) first.q.at(0, 0, 0, d) = in.q.at(0, row, 0, d);
    const Forward want = naive_forward(c.problem, first);
    EXPECT_NEAR(got.lse.at(0, 0, row, 0), want.lse.values[0], 1e-11);
    for (std::int64_t d = 0; d < 16; ++d) EXPECT_NEAR(truth.forward.o.at(0, row, 0, d), want.o.values[d], 1e-12);
  }
}

}  // namespace
}  // namespace attest
