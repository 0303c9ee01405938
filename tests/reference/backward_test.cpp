#include "attest/reference/backward.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <sys/resource.h>

#include <cmath>
#include <limits>
#include <random>

#include "attest/problem/error.h"
#include "attest/reference/attends.h"
#include "feature_cases.h"
#include "naive.h"
#include "problems.h"

namespace attest {
namespace {

void expect_equal(const Tensor& got, const Tensor& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.extents, want.extents) << what;
  double largest = 0;
  for (const double x : want.values)
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  for (std::size_t n = 0; n < got.values.size(); ++n) {
    if (std::isfinite(want.values[n])) {
      ASSERT_NEAR(got.values[n], want.values[n], tolerance * (1 + largest)) << what << " at " << n;
    } else {
      ASSERT_TRUE(std::isnan(want.values[n]) ? std::isnan(got.values[n]) : got.values[n] == want.values[n])
          << what << " at " << n << ": " << got.values[n] << " for " << want.values[n];
    }
  }
}

void expect_equal(const Gradients& got, const Gradients& want, double tolerance, const std::string& what) {
  expect_equal(got.dq, want.dq, tolerance, "dq of " + what);
  expect_equal(got.dk, want.dk, tolerance, "dk of " + what);
  expect_equal(got.dv, want.dv, tolerance, "dv of " + what);
  expect_equal(got.dsink, want.dsink, tolerance, "dsink of " + what);
  expect_equal(got.dbias, want.dbias, tolerance, "dbias of " + what);
}

TEST(BackwardTest, TwoKeysByHand) {
  Problem p = small_problem(1, 2, 1, 1);
  p.softmax_scale = 1;
  Inputs in{Tensor({1, 1, 1, 1}), Tensor({1, 2, 1, 1}), Tensor({1, 2, 1, 1})};
  in.q.values = {1};
  in.k.values = {0, 2};
  in.v.values = {1, 3};
  in.dout = Tensor({1, 1, 1, 1}, 1);
  const double e2 = std::exp(2.0), p0 = 1 / (1 + e2), p1 = e2 / (1 + e2);
  const Gradients g = backward(p, in);
  const double ds = p0 * p1 * 2;  // of the second key; the first has its negative
  EXPECT_NEAR(g.dv.values[0], p0, 1e-15);
  EXPECT_NEAR(g.dv.values[1], p1, 1e-15);
  EXPECT_NEAR(g.dq.values[0], 2 * ds, 1e-15);
  EXPECT_NEAR(g.dk.values[0], -ds, 1e-15);
  EXPECT_NEAR(g.dk.values[1], ds, 1e-15);
  in.dout = {};
  EXPECT_THROW(backward(p, in), InvalidInput);
}

TEST(BackwardTest, EdgeLengthsMasksAndGroups) {
  for (const std::int64_t sq : {0, 1, 63, 64, 65})
    for (const std::int64_t sk : {0, 1, 127, 128, 129})
      for (const Causal causal : {Causal::none, Causal::bottom_right, Causal::top_left}) {
        Case c;
        c.problem = small_problem(sq, sk, 5, 3);
        c.problem.batch = 2;
        c.problem.nheads = 6;
        c.problem.nheads_k = 2;
        c.problem.causal = causal;
        if (sq == 65) c.problem.window_left = 20, c.problem.window_right = 3;
        c.seed = static_cast<std::uint64_t>(sq + sk);
        Inputs in = make_inputs(c);
        in.dout = random_tensor({2, sq, 6, 3}, 7);
        expect_equal(backward(c.problem, in), naive_backward(c.problem, in), 1e-13, command_line(c));
      }
}

TEST(BackwardTest, EveryFeature) {
  std::mt19937_64 random(20261121);
  for (int n = 0; n < 150; ++n) {
    const FeatureCase f = draw_feature_case(random, 40);
    expect_equal(backward(f.problem, f.inputs), naive_backward(f.problem, f.inputs), 1e-12, f.description);
  }
}

// The derivative by its definition: every input moved a little.
TEST(BackwardTest, FiniteDifferences) {
  std::mt19937_64 random(5);
  for (int n = 0; n < 12; ++n) {
    FeatureCase f = draw_feature_case(random, 6);
    if (f.problem.softmax_scale && std::abs(*f.problem.softmax_scale) > 1) f.problem.softmax_scale = 0.5;
    const Gradients g = backward(f.problem, f.inputs);
    const auto loss = [&] {
      const Forward out = forward(f.problem, f.inputs);
      double sum = 0;
      for (std::size_t k = 0; k < out.o.values.size(); ++k)
        if (out.o.values[k] != 0) sum += out.o.values[k] * f.inputs.dout.values[k];  // dO may be NaN past the end
      return sum;
    };
    const auto check = [&](Tensor& input, const Tensor& gradient, const Tensor* descale, const char* name) {
      for (std::size_t k = 0; k < input.values.size(); k += 1 + input.values.size() / 12) {
        // The gradient is that of the product with the descale.
        const auto [a, b, heads, dim] = input.extents;
        const std::size_t head = k / static_cast<std::size_t>(dim) % static_cast<std::size_t>(heads);
        const std::size_t batch = k / static_cast<std::size_t>(dim * heads * b);
        const std::size_t group = static_cast<std::size_t>(heads / f.problem.nheads_k);
        const double factor =
            descale && !descale->values.empty() ? descale->values[batch * f.problem.nheads_k + head / group] : 1;
        const double step = 1e-5, value = input.values[k];
        input.values[k] = value + step / factor;
        const double above = loss();
        input.values[k] = value - step / factor;
        const double below = loss();
        input.values[k] = value;
        ASSERT_NEAR((above - below) / (2 * step), gradient.values[k], 2e-6 * (1 + std::abs(gradient.values[k])))
            << name << " " << k << " of " << f.description;
      }
    };
    Inputs& in = f.inputs;
    check(in.q, g.dq, &in.q_descale, "dq");
    check(in.k, g.dk, &in.k_descale, "dk");
    check(in.v, g.dv, &in.v_descale, "dv");
    if (f.problem.sink) check(in.sink, g.dsink, nullptr, "dsink");
    if (f.problem.bias != Bias::none) check(in.bias, g.dbias, nullptr, "dbias");
  }
}

// NaN and Inf, one at a time in each input: they reach what the definition says, and nothing else.
TEST(BackwardTest, NanReachesWhatItMust) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  Case c;
  c.problem = small_problem(70, 140, 4, 3);
  c.problem.nheads = 4;
  c.problem.nheads_k = 2;
  c.problem.causal = Causal::bottom_right;
  c.problem.window_left = 20;
  Inputs clean = make_inputs(c);
  clean.dout = random_tensor({1, 70, 4, 3}, 3);
  for (const double poison : {nan, inf, -inf})
    for (const std::int64_t at : {0, 40, 63, 64, 69}) {
      for (Tensor Inputs::*tensor : {&Inputs::q, &Inputs::k, &Inputs::v, &Inputs::dout}) {
        Inputs in = clean;
        (in.*tensor).at(0, at, 1, 2) = poison;
        const Gradients got = backward(c.problem, in), want = naive_backward(c.problem, in);
        // Inf - Inf and 0 * Inf depend on the order of the sums; whether a number is finite does not.
        for (const auto& [g, w] : {std::pair{&got.dq, &want.dq}, {&got.dk, &want.dk}, {&got.dv, &want.dv}})
          for (std::size_t n = 0; n < g->values.size(); ++n)
            ASSERT_EQ(std::isfinite(g->values[n]), std::isfinite(w->values[n]))
                << n << ": " << g->values[n] << " for " << w->values[n];
      }
    }
}

TEST(BackwardTest, AnyThreadsGiveTheSameBits) {
  Case c;
  c.problem = small_problem(200, 300, 32, 32);
  c.problem.nheads = 2;
  c.problem.nheads_k = 1;
  Inputs in = make_inputs(c);
  in.dout = random_tensor({1, 200, 2, 32}, 1);
  omp_set_num_threads(1);
  const Gradients one = backward(c.problem, in);
  omp_set_num_threads(3);
  const Gradients three = backward(c.problem, in);
  omp_set_num_threads(omp_get_num_procs());
  EXPECT_EQ(one.dq.values, three.dq.values);
  EXPECT_EQ(one.dk.values, three.dk.values);
  EXPECT_EQ(one.dv.values, three.dv.values);
}

// Handed its own O and LSE the backward is the same; handed others it follows them.
TEST(BackwardTest, FollowsTheForwardItIsHanded) {
  Case c;
  c.problem = small_problem(20, 30, 8, 8);
  Inputs in = make_inputs(c);
  in.dout = random_tensor({1, 20, 1, 8}, 1);
  Forward handed = forward(c.problem, in);
  const Gradients own = backward(c.problem, in);
  EXPECT_EQ(backward(c.problem, in, handed).dq.values, own.dq.values);
  for (double& x : handed.lse.values) x -= std::log(2.0);  // every P doubles
  const Gradients doubled = backward(c.problem, in, handed);
  for (std::size_t n = 0; n < own.dv.values.size(); ++n) EXPECT_NEAR(doubled.dv.values[n], 2 * own.dv.values[n], 1e-13);
}

// A bias of -Inf takes a key out of a row, and all keys: such a row gives no gradient and gets none.
TEST(BackwardTest, MinusInfinityInTheBias) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  Case c;
  Problem& p = c.problem;
  p = small_problem(5, 6, 4, 3);
  p.bias = Bias::qk;
  p.sink = true;
  Inputs in = make_inputs(c);
  in.dout = random_tensor({1, 5, 1, 3}, 3);
  in.sink = Tensor({1, 1, 1, 1}, 0.5);
  in.bias = random_tensor({1, 1, 5, 6}, 4);
  for (std::int64_t j = 0; j < 6; ++j) in.bias.at(0, 0, 2, j) = -inf;
  in.bias.at(0, 0, 3, 1) = -inf;
  for (const bool sink : {false, true}) {
    p.sink = sink;
    const Gradients with = backward(p, in);
    Truth truth = forward_with_budget(p, in, flash_numerics(p.dtype), false);
    add_gradients(p, in, truth);
    expect_equal(truth.gradients, with, 0, "the truth with its budget");
    for (std::int64_t d = 0; d < 4; ++d) EXPECT_EQ(with.dq.at(0, 2, 0, d), 0);
    for (std::int64_t j = 0; j < 6; ++j) EXPECT_EQ(with.dbias.at(0, 0, 2, j), 0);
    EXPECT_EQ(with.dbias.at(0, 0, 3, 1), 0);
    for (const Tensor* bound : {&truth.gradient_bounds.dq, &truth.gradient_bounds.dk, &truth.gradient_bounds.dv,
                                &truth.gradient_bounds.dbias})
      for (const double x : bound->values) EXPECT_TRUE(std::isfinite(x));
    // The same with the lowest float in place of -Inf, but for the row that has nothing else.
    Inputs finite = in;
    for (double& x : finite.bias.values) x = std::max(x, -1e30);
    for (std::int64_t c3 = 0; c3 < 3; ++c3) finite.dout.at(0, 2, 0, c3) = 0;
    expect_equal(backward(p, finite), with, 1e-14, "-1e30 for -Inf");
  }
}

// 32K keys with few rows, and 16K rows with few keys: blocks of 64 x 128, where P would be 33 and 17 MiB.
TEST(BackwardTest, LongSequencesInBoundedMemory) {
  const auto resident_mib = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
  };
  for (const auto& [sq, sk] : {std::pair{128, 32768}, {16384, 128}}) {
    Case c;
    c.problem = small_problem(sq, sk, 8, 8);
    Inputs in = make_inputs(c);
    in.dout = random_tensor({1, sq, 1, 8}, 1);
    const Forward out = forward(c.problem, in);
    const long before = resident_mib();
    const Gradients g = backward(c.problem, in, out);
    EXPECT_LT(resident_mib() - before, 16);
    EXPECT_TRUE(std::isfinite(g.dk.values.back()));
  }
}

}  // namespace
}  // namespace attest
