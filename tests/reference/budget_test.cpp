// The error budget against a kernel that is right, in many makes: it must never be exceeded.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <random>

#include "attest/reference/compare.h"
#include "attest/reference/rounding.h"
#include "problems.h"
#include "random_kernel.h"

namespace attest {
namespace {

class RightKernelTest : public testing::TestWithParam<std::tuple<Distribution, Dtype>> {};
INSTANTIATE_TEST_SUITE_P(All, RightKernelTest,
                         testing::Combine(testing::ValuesIn(all_distributions), testing::ValuesIn(all_dtypes)),
                         [](const auto& tested) {
                           return std::string(to_string(std::get<0>(tested.param))) + "_" +
                                  std::string(to_string(std::get<1>(tested.param)));
                         });

void stays_inside(Distribution distribution, Dtype dtype, bool normalises_first) {
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
    // Like others, this kernel takes a raw score of -Inf for a masked key, which at a scale of 0 or less it is not.
    if (distribution == Distribution::non_finite && p.softmax_scale) p.softmax_scale = 2.5;
    if (n % 2) {  // half of the cases with what a score may have beside its product
      if (random() % 3 == 0) p.softcap = pick(random, {0.5, 20.0, 50.0});
      p.alibi = random() % 3 == 0;
      p.sink = random() % 3 == 0 && !normalises_first;
      if (random() % 3 == 0) p.bias = Bias::qk;
      if (random() % 4 == 0) p.prefix = static_cast<std::int64_t>(random() % 50);
      if (random() % 4 == 0) p.seqused_k = {static_cast<std::int64_t>(random() % (p.seqlen_k + 1))};
      if (random() % 6 == 0)
        p.documents = {std::max(p.seqlen_q, p.seqlen_k) / 3, 0,
                       std::max(p.seqlen_q, p.seqlen_k) - std::max(p.seqlen_q, p.seqlen_k) / 3};
    }
    EmulatedKernel kernel = any_kernel(random, dtype);
    if (random() % 4 == 0) kernel.num_splits = pick(random, {2, 3, 8});
    if (random() % 2 == 0) kernel.tanh_error = 0x1p-21;
    kernel.normalises_first = normalises_first;

    const Inputs inputs = make_inputs(c);
    const Truth truth = forward_with_budget(p, inputs, kernel.numerics(), distribution == Distribution::normal);
    const Verdict verdict = compare(p, truth, kernel.run(p, inputs));
    ASSERT_EQ(verdict.status, Status::passed) << command_line(c) << "\n"
                                              << verdict.detail << "\n"
                                              << kernel.num_splits << " splits";
    rows += p.seqlen_q;
    nearest = std::max(nearest, verdict.error_over_budget);
  }
  testing::Test::RecordProperty("rows", static_cast<int>(rows));
  std::cout << "  " << rows << " rows, nearest to a budget " << nearest << "\n";
}

TEST_P(RightKernelTest, StaysInside) { std::apply(stays_inside, std::tuple_cat(GetParam(), std::tuple(false))); }
TEST_P(RightKernelTest, StaysInsideWhereItNormalisesFirst) {
  std::apply(stays_inside, std::tuple_cat(GetParam(), std::tuple(true)));
}

// One key at a score of 0 and 1023 at -17.4: P is subnormal in fp16 there, and its rounding absolute, not relative. A
// right kernel is far outside a budget that forgets it.
TEST(BudgetTest, SubnormalProbabilities) {
  Case c;
  c.problem = small_problem(1, 1024, 1, 8, Dtype::fp16);
  c.problem.softmax_scale = 1;
  Inputs in = make_inputs(c);
  in.q.values = {1};
  for (double& x : in.k.values) x = round_to(Dtype::fp16, -17.4);
  in.k.values[100] = 0;
  for (std::int64_t d = 0; d < 8; ++d) in.v.at(0, 100, 0, d) = 0x1p-20;
  for (double& x : in.v.values) x = std::abs(x);
  EmulatedKernel kernel;
  kernel.dtype = Dtype::fp16;
  const Outputs outputs = kernel.run(c.problem, in);
  const Verdict right = compare(c.problem, forward_with_budget(c.problem, in, kernel.numerics(), false), outputs);
  EXPECT_EQ(right.status, Status::passed) << right.detail;
  Numerics forgetful = kernel.numerics();
  forgetful.a_P = 0;
  const Verdict wrong = compare(c.problem, forward_with_budget(c.problem, in, forgetful, false), outputs);
  EXPECT_GT(wrong.error_over_budget, 5) << wrong.detail;
}

// Budgets for kernels that round in more places are wider, and only then.
TEST(BudgetTest, EveryRoundingCounts) {
  Case c;
  c.problem = small_problem(8, 100, 64, 16, Dtype::fp16);
  const Inputs in = make_inputs(c);
  const auto bounds = [&](const std::function<void(Numerics&)>& change) {
    Numerics n = flash_numerics(Dtype::fp16);
    change(n);
    const Truth truth = forward_with_budget(c.problem, in, n, false);
    return std::pair{truth.o_bound.values[5], truth.lse_bound.values[5]};
  };
  const auto [o, lse] = bounds([](Numerics&) {});
  const auto expect_wider = [&](bool in_o, bool in_lse, const std::function<void(Numerics&)>& change) {
    const auto [other_o, other_lse] = bounds(change);
    EXPECT_EQ(other_o > o, in_o);
    EXPECT_EQ(other_lse > lse, in_lse);
  };
  expect_wider(true, true, [](Numerics& n) { n.u_S = 0x1p-11; });
  expect_wider(true, false, [](Numerics& n) { n.u_P = 0x1p-8; });
  expect_wider(true, true, [](Numerics& n) { n.u_acc = 0x1p-21; });
  expect_wider(true, true, [](Numerics& n) { n.eps_exp = 0x1p-20; });
  expect_wider(true, true, [](Numerics& n) { n.chain = 1; });
  expect_wider(true, true, [](Numerics& n) { n.smallest_tile = 8; });
  expect_wider(true, false, [](Numerics& n) { n.u_out = 0x1p-8; });
  expect_wider(true, false, [](Numerics& n) { n.floor_out = 0x1p-20; });
  expect_wider(true, true, [](Numerics& n) { n.max_P = 256; });
  expect_wider(false, true, [](Numerics& n) { n.lse_max_roundings = 5; });
  // Of 100 keys with P near 1/100, half of fp16's subnormal spacing is no longer divided by l.
  expect_wider(true, false, [](Numerics& n) { n.normalises_first = true; });
}

// Scores so large that nothing is known of a weight: O is still an average of V, and the bound says that much, not Inf.
// Keys 0 to 31 and 41: a strip of this row alone has them side by side, and yet a kernel's tiles meet one maximum more
// than over 33 keys in a row.
TEST(BudgetTest, KeysApartMayMeetOneMaximumMore) {
  const auto lse_bound = [](const Problem& p) {
    Case c;
    c.problem = p;
    c.inputs = Distribution::zero_q;
    return forward_with_budget(p, make_inputs(c), flash_numerics(p.dtype), false).lse_bound.at(0, 0, 0, 0);
  };
  Problem apart = small_problem(1, 42, 8, 8);
  apart.causal = Causal::bottom_right;
  apart.window_left = 0;
  apart.prefix = 32;
  EXPECT_GT(lse_bound(apart), lse_bound(small_problem(1, 33, 8, 8)));
}

TEST(BudgetTest, HopelessScoresStillBoundAnAverage) {
  Case c;
  c.problem = small_problem(3, 40, 64, 4);
  c.problem.softmax_scale = 0x1p20;
  c.inputs = Distribution::normal;
  const Inputs in = make_inputs(c);
  const Truth truth = forward_with_budget(c.problem, in, flash_numerics(Dtype::bf16), true);
  for (std::size_t n = 0; n < truth.o_bound.values.size(); ++n) {
    EXPECT_TRUE(std::isfinite(truth.forward.o.values[n]));
    EXPECT_LT(truth.o_bound.values[n], 12);
  }
  for (const double bound : truth.lse_bound.values) EXPECT_GT(bound, 0);
  EmulatedKernel kernel;
  const Verdict verdict = compare(c.problem, truth, kernel.run(c.problem, in));
  EXPECT_EQ(verdict.status, Status::passed) << verdict.detail;
}

// Peaked rows beside 8-bit inputs: the roundings of one or two large weights are all there is in a row's errors,
// however many keys and columns it has. Counted by its keys, a right kernel would be accused.
TEST(BudgetTest, FewRoundingsAmongManyKeys) {
  double nearest = 0, nearest_by_keys = 0, fewest = 1e9;
  for (int n = 0; n < 120; ++n) {
    Case c;
    c.problem = small_problem(16, 441, 16, 256, n % 2 ? Dtype::fp8_e4m3 : Dtype::fp8_e5m2);
    c.problem.softmax_scale = 0.25 + 0.25 * (n % 4);
    c.seed = static_cast<std::uint64_t>(n);
    const Inputs in = make_inputs(c);
    EmulatedKernel kernel;
    kernel.dtype = c.problem.dtype;
    kernel.lazy_rescale = n % 4 > 0;
    Truth truth = forward_with_budget(c.problem, in, kernel.numerics(), true);
    const Outputs outputs = kernel.run(c.problem, in);
    const auto largest = [&] {
      std::vector<RuleFinding> findings;
      compare(c.problem, truth, outputs, &findings);
      double over = 0;
      for (const RuleFinding& finding : findings) over = std::max(over, finding.error_over_budget);
      return over;
    };
    nearest = std::max(nearest, largest());
    for (const double roundings : truth.roundings.values)
      if (roundings > 0) fewest = std::min(fewest, roundings);
    std::fill(truth.roundings.values.begin(), truth.roundings.values.end(), 441);
    nearest_by_keys = std::max(nearest_by_keys, largest());
  }
  std::cout << "  nearest " << nearest << ", counted by keys " << nearest_by_keys << "; fewest in effect " << fewest
            << "\n";
  EXPECT_LE(nearest, 1);
  EXPECT_GT(nearest_by_keys, 1);
  EXPECT_GE(fewest, 1);
  EXPECT_LT(fewest, 1.5);
}

// softmax_scale 0, and one so small that scores differ by less than P resolves: rows and roundings are all alike, and
// the rules for independent errors must not judge them.
TEST(BudgetTest, AlikeScoresHaveNoVariance) {
  for (const double scale : {0.0, 1e-4}) {
    Case c;
    c.problem = small_problem(128, 1025, 32, 256, Dtype::fp16);
    c.problem.softmax_scale = scale;
    const Inputs in = make_inputs(c);
    const Truth truth = forward_with_budget(c.problem, in, flash_numerics(Dtype::fp16), true);
    for (const double variance : truth.o_variance.values) ASSERT_EQ(variance, 0);
    for (const double variance : truth.lse_variance.values) ASSERT_EQ(variance, 0);
  }
}

// A softcap that nearly all scores reach leaves two values of P; a product of two numbers, one of them the row's,
// rounds as the other's mantissa has it. One step away from either the rules for independent errors judge.
TEST(BudgetTest, RepeatedRoundingsHaveNoVariance) {
  const auto judged = [](std::int64_t headdim, double softcap, const Numerics& numerics) {
    Problem p = small_problem(4, 65, 16, 16, Dtype::fp16);
    p.headdim = headdim;
    p.softcap = softcap;
    Case c;
    c.problem = p;
    return !empty_truth(p, make_inputs(c), numerics, true).lse_variance.values.empty();
  };
  const Numerics flash = flash_numerics(Dtype::fp16);
  Numerics rounds_scores = flash;
  rounds_scores.u_S = 0x1p-11;
  EXPECT_FALSE(judged(78, 0.1, flash));
  EXPECT_TRUE(judged(78, 1, flash));
  EXPECT_TRUE(judged(78, 0, flash));
  EXPECT_FALSE(judged(1, 0, rounds_scores));
  EXPECT_TRUE(judged(2, 0, rounds_scores));
  EXPECT_TRUE(judged(1, 0, flash));
}

// Scores are at +-1 of a softcap and the sink at 86.6. A lazy kernel's first tile, of key 64 alone, leaves its
// reference at -1, 126.4 binades below the sink: the factor that brings O to the sink is flushed, and with it the keys
// at +1, though each of these is 5.6 times fp32's smallest normal number.
TEST(BudgetTest, AFlushedFactorTakesLargerWeightsWithIt) {
  Case c;
  c.problem = small_problem(1, 65, 9, 13);
  c.problem.softcap = 1;
  c.problem.sink = true;
  c.inputs = Distribution::large;
  c.seed = 336723;
  const Inputs in = make_inputs(c);
  EmulatedKernel kernel;
  kernel.last_tile_first = true;
  kernel.lazy_rescale = true;
  const Outputs outputs = kernel.run(c.problem, in);
  EXPECT_EQ(outputs.o.at(0, 0, 0, 12), 0);
  const Verdict right = compare(c.problem, forward_with_budget(c.problem, in, kernel.numerics(), false), outputs);
  EXPECT_EQ(right.status, Status::passed) << right.detail;
  Numerics eager = kernel.numerics();
  eager.max_P = 1;
  const Truth truth = forward_with_budget(c.problem, in, eager, false);
  EXPECT_GT(compare(c.problem, truth, outputs).error_over_budget, 1);
  kernel.lazy_rescale = false;
  const Verdict kept = compare(c.problem, truth, kernel.run(c.problem, in));
  EXPECT_EQ(kept.status, Status::passed) << kept.detail;
}

}  // namespace
}  // namespace attest
