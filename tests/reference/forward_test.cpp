#include "attest/reference/forward.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <sys/resource.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

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
  // Scores of -65504, which a bias of fp16 can come to, have a last place of 1e-11.
  const double tolerance = c.problem.bias != Bias::none && c.inputs == Distribution::large ? 1e-10 : 1e-12;
  expect_equal(got.o, want.o, tolerance, "o of " + command_line(c));
  expect_equal(got.lse, want.lse, tolerance, "lse of " + command_line(c));
  const Truth truth = forward_with_budget(c.problem, inputs, flash_numerics(c.problem.dtype), true);
  expect_equal(truth.forward.o, want.o, tolerance, "o with budget of " + command_line(c));
  expect_equal(truth.forward.lse, want.lse, tolerance, "lse with budget of " + command_line(c));
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

// Every feature alone, and random sums of them, against the definition.
Problem with_features(unsigned features, std::mt19937& random) {
  Problem p = small_problem(70, 140, 8, 6, all_dtypes[random() % std::size(all_dtypes)]);
  p.batch = 3;
  p.nheads = 4;
  p.nheads_k = 2;
  const auto has = [features](unsigned bit) { return (features >> bit & 1) != 0; };
  if (has(0)) p.softcap = random() % 2 ? 30 : 0.7;
  p.alibi = has(1);
  p.sink = has(2);
  if (has(3)) p.bias = std::array{Bias::bhqk, Bias::hqk, Bias::bqk, Bias::qk}[random() % 4];
  if (has(4)) p.prefix = static_cast<std::int64_t>(random() % 50);
  if (has(5)) p.varlen_q = {static_cast<std::int64_t>(random() % 71), 70, 0};
  if (has(6)) p.varlen_k = {140, 0, static_cast<std::int64_t>(random() % 141)};
  if (has(7)) p.seqused_k = {static_cast<std::int64_t>(random() % 141), 0, has(6) ? p.varlen_k[2] / 2 : 139};
  if (has(8)) p.documents = {30, 0, 1, 69, 40};
  if (has(9)) p.causal = random() % 2 ? Causal::bottom_right : Causal::top_left;
  if (has(10)) p.window_left = static_cast<std::int64_t>(random() % 40);
  return p;
}

TEST(ForwardTest, EveryFeatureAloneAndTogether) {
  std::mt19937 random(7);
  for (unsigned n = 0; n < 400; ++n) {
    Case c;
    const unsigned features = n < 22 ? 1u << n % 11 : static_cast<unsigned>(random());
    c.problem = with_features(features, random);
    c.inputs = all_distributions[random() % std::size(all_distributions)];
    c.seed = n;
    expect_naive(c, make_inputs(c));
    ASSERT_FALSE(HasFatalFailure()) << command_line(c);
  }
}

TEST(ForwardTest, PrefixSkipsTheKeysBetween) {
  Case c;  // key 0, and far from it a window: no strip may touch the keys between, or this takes minutes
  c.problem = small_problem(256, 1 << 19, 8, 8);
  c.problem.prefix = 1;
  c.problem.causal = Causal::bottom_right;
  c.problem.window_left = 3;
  const Inputs in = make_inputs(c);
  const Forward out = forward(c.problem, in);
  Case few = c;  // the same keys side by side
  few.problem.seqlen_k = 1 + 256 + 3;
  Inputs side_by_side = in;
  side_by_side.k = Tensor({1, 260, 1, 8});
  side_by_side.v = Tensor({1, 260, 1, 8});
  for (std::int64_t j = 0; j < 260; ++j)
    for (std::int64_t d = 0; d < 8; ++d) {
      const std::int64_t from = j == 0 ? 0 : (1 << 19) - 260 + j;
      side_by_side.k.at(0, j, 0, d) = in.k.at(0, from, 0, d);
      side_by_side.v.at(0, j, 0, d) = in.v.at(0, from, 0, d);
    }
  expect_equal(out.o, naive_forward(few.problem, side_by_side).o, 1e-12, "o");
}

// What lies past a batch entry's lengths is never read, and its rows of O and LSE stay 0.
TEST(ForwardTest, GarbagePastTheLengths) {
  Case c;
  c.problem = small_problem(70, 80, 8, 6);
  c.problem.batch = 2;
  c.problem.varlen_q = {70, 20};
  c.problem.varlen_k = {80, 50};
  c.problem.seqused_k = {60, 50};
  c.problem.bias = Bias::bhqk;
  const Inputs clean = make_inputs(c);
  Inputs in = clean;
  const auto poison = [](Tensor& t, std::int64_t b, std::int64_t first) {
    for (std::int64_t s = first; s < t.extents[1]; ++s)
      for (std::int64_t d = 0; d < t.extents[3]; ++d) t.at(b, s, 0, d) = std::numeric_limits<double>::quiet_NaN();
  };
  poison(in.q, 1, 20);
  for (Tensor* tensor : {&in.k, &in.v}) poison(*tensor, 0, 60), poison(*tensor, 1, 50);
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t i = 0; i < 70; ++i)
      for (std::int64_t j = 0; j < 80; ++j)
        if (i >= c.problem.varlen_q[b] || j >= c.problem.seqused_k[b]) in.bias.at(b, 0, i, j) = NAN;
  const Truth want = forward_with_budget(c.problem, clean, flash_numerics(Dtype::bf16), true);
  const Truth got = forward_with_budget(c.problem, in, flash_numerics(Dtype::bf16), true);
  EXPECT_EQ(got.forward.o.values, want.forward.o.values);
  EXPECT_EQ(got.forward.lse.values, want.forward.lse.values);
  EXPECT_EQ(got.o_bound.values, want.o_bound.values);
  EXPECT_EQ(got.lse_variance.values, want.lse_variance.values);
  for (std::int64_t i = 20; i < 70; ++i) {
    EXPECT_EQ(got.forward.lse.at(1, 0, i, 0), 0);
    for (std::int64_t d = 0; d < 6; ++d) EXPECT_EQ(got.forward.o.at(1, i, 0, d), 0);
  }
}

TEST(ForwardTest, SinkAloneIsTheLseOfAnEmptyRow) {
  Problem p = small_problem(2, 0, 4, 4);
  p.sink = true;
  Case c;
  c.problem = p;
  const Inputs in = make_inputs(c);
  const Forward out = forward(p, in);
  EXPECT_EQ(out.lse.values, std::vector<double>(2, in.sink.values[0]));
  EXPECT_EQ(out.o.values, std::vector<double>(8, 0.0));
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

// In one row: Inf in the V of a key whose weight underflowed keeps its sign; in that of a key whose score is -Inf, and
// whose weight is 0 by definition, it makes NaN.
TEST(ForwardTest, UnderflowedIsNotZero) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  Case c;
  c.problem = small_problem(1, 4, 8, 3);
  c.problem.bias = Bias::qk;
  Inputs in = make_inputs(c);
  in.bias.values = {0, -inf, -2000, 0};
  in.v.at(0, 1, 0, 1) = -inf;
  in.v.at(0, 2, 0, 2) = -inf;
  const Truth truth = forward_with_budget(c.problem, in, flash_numerics(c.problem.dtype), true);
  for (const Tensor& o : {forward(c.problem, in).o, truth.forward.o}) {
    EXPECT_TRUE(std::isfinite(o.at(0, 0, 0, 0)));
    EXPECT_TRUE(std::isnan(o.at(0, 0, 0, 1)));
    EXPECT_EQ(o.at(0, 0, 0, 2), -inf);
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
