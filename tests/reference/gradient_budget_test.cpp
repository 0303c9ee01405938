// The gradients' budget against a backward kernel that is right, in many makes: it must never be exceeded. With faults
// planted it must.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>

#include "attest/reference/compare.h"
#include "attest/reference/rounding.h"
#include "emulated_backward.h"
#include "feature_cases.h"
#include "problems.h"
#include "random_kernel.h"

namespace attest {
namespace {

// What a right forward may write: the truth rounded, or anything within its bounds, or the truth where they leave no
// room for a rounding.
Forward written(const Problem& p, const Truth& truth, bool roughly, std::uint64_t seed) {
  Forward out = truth.forward;
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> off(-1, 1);
  const auto write = [&](double& x, double bound, Dtype dtype) {
    const double moved = round_to(dtype, x + (roughly ? off(random) * bound : 0));
    const double nearest = round_to(dtype, x);
    if (std::abs(moved - x) <= bound)
      x = moved;
    else if (std::abs(nearest - x) <= bound)
      x = nearest;
  };
  for (std::size_t n = 0; n < out.o.values.size(); ++n)
    write(out.o.values[n], truth.o_bound.values[n], output_dtype(p.dtype));
  for (std::size_t n = 0; n < out.lse.values.size(); ++n)
    write(out.lse.values[n], truth.lse_bound.values[n], Dtype::fp32);
  return out;
}

EmulatedBackward draw_kernel(std::mt19937_64& random, Dtype dtype) {
  EmulatedBackward kernel;
  kernel.dtype = dtype;
  kernel.tile_m = pick(random, {16, 32, 64, 128});
  kernel.tile_n = pick(random, {16, 32, 64, 128});
  kernel.last_tile_first = random() % 2 == 1;
  kernel.accumulator = pick(random, {Accumulator::fused, Accumulator::rounded, Accumulator::tensor_core});
  kernel.rounds_shares = random() % 2 == 1;
  kernel.exp2_of_fma = random() % 4 > 0;
  kernel.noise = random();
  return kernel;
}

struct Margins {
  std::map<std::string, double> nearest;  // channel, and " given O, LSE": the largest error over its bound
  void see(const std::vector<RuleFinding>& findings, bool handed) {
    for (const RuleFinding& f : findings)
      if (f.channel[0] == 'd') {
        double& largest = nearest[std::string(f.channel) + (handed ? " handed" : "")];
        largest = std::max(largest, f.error_over_budget);
      }
  }
  void print() const {
    for (const auto& [channel, largest] : nearest) std::cout << "  " << channel << " " << largest;
    std::cout << "\n";
  }
};

// The truth of a case, the forward that a kernel wrote and the gradients that it made of it, judged both ways.
void expect_right(const Problem& p, const Inputs& in, const EmulatedBackward& kernel, std::mt19937_64& random,
                  Margins& margins, const std::string& what) {
  Truth truth = forward_with_budget(p, in, kernel.numerics(), false);
  const Forward handed = written(p, truth, random() % 2 == 0, random());
  Outputs outputs{truth.forward.o, truth.forward.lse};  // not what is judged here
  outputs.gradients = kernel.run(p, in, handed);
  for (const bool conditional : {false, true}) {
    add_gradients(p, in, truth, conditional ? &handed : nullptr);
    std::vector<RuleFinding> findings;
    const Verdict verdict = compare(p, truth, outputs, &findings);
    ASSERT_EQ(verdict.status, Status::passed) << what << (conditional ? " (handed)" : "") << "\n" << verdict.detail;
    margins.see(findings, conditional);
  }
}

class RightBackwardTest : public testing::TestWithParam<std::tuple<Distribution, Dtype>> {};
INSTANTIATE_TEST_SUITE_P(All, RightBackwardTest,
                         testing::Combine(testing::Values(Distribution::normal, Distribution::large,
                                                          Distribution::shift, Distribution::zero_q,
                                                          Distribution::one_v, Distribution::one_hot_v),
                                          testing::Values(Dtype::fp16, Dtype::bf16, Dtype::fp32)),
                         [](const auto& tested) {
                           return std::string(to_string(std::get<0>(tested.param))) + "_" +
                                  std::string(to_string(std::get<1>(tested.param)));
                         });

TEST_P(RightBackwardTest, StaysInside) {
  const auto [distribution, dtype] = GetParam();
  std::mt19937_64 random(20241121 + static_cast<unsigned>(distribution) * 8 + static_cast<unsigned>(dtype));
  Margins margins;
  for (int n = 0; n < 25; ++n) {
    Case c;
    Problem& p = c.problem;
    p = small_problem(pick(random, {1, 2, 7, 17, 40, 65, 130}), pick(random, {1, 2, 3, 16, 40, 65, 128, 257}),
                      pick(random, {1, 2, 8, 16, 40, 64, 128}), pick(random, {1, 2, 8, 40, 64}), dtype);
    p.nheads_k = pick(random, {1, 2});
    p.nheads = p.nheads_k * pick(random, {1, 1, 3});
    p.causal = pick(random, {Causal::none, Causal::bottom_right, Causal::top_left});
    if (random() % 3 == 0) p.window_left = static_cast<std::int64_t>(random() % 70);
    if (random() % 3 == 0) p.window_right = static_cast<std::int64_t>(random() % 70);
    if (random() % 6 == 0) p.softmax_scale = pick(random, {-0.3, 2.5, 0.0, 1e-30});
    if (random() % 3 == 0) p.softcap = pick(random, {1.0, 30.0, 50.0});
    c.inputs = distribution;
    c.seed = random();
    Inputs in = make_inputs(c);
    in.dout = random_tensor({p.batch, p.seqlen_q, p.nheads, p.headdim_v}, random());
    const double size = pick(random, {1.0, 1.0, 1.0, 1e-4, 100.0});
    for (double& x : in.dout.values) x = round_to(dtype, x * size);
    expect_right(p, in, draw_kernel(random, dtype), random, margins, command_line(c));
  }
  margins.print();
}

TEST(GradientBudgetTest, RightKernelsOverEveryFeature) {
  std::mt19937_64 random(77);
  Margins margins;
  for (int n = 0; n < 400; ++n) {
    const FeatureCase f = draw_feature_case(random, 40);
    expect_right(f.problem, f.inputs, draw_kernel(random, f.problem.dtype), random, margins, f.description);
  }
  margins.print();
}

// In fp16 a dS of 2^-20 is subnormal, and its rounding absolute: a right kernel is far outside a budget without a_dS.
TEST(GradientBudgetTest, SubnormalDs) {
  Case c;
  c.problem = small_problem(64, 64, 16, 16, Dtype::fp16);
  Inputs in = make_inputs(c);
  in.dout = random_tensor({1, 64, 1, 16}, 9);
  for (double& x : in.dout.values) x = round_to(Dtype::fp16, x * 0x1p-15);
  for (double& x : in.k.values) x = round_to(Dtype::fp16, x * 100);
  for (double& x : in.q.values) x = round_to(Dtype::fp16, x / 100);
  EmulatedBackward kernel;
  kernel.dtype = Dtype::fp16;
  Numerics numerics = kernel.numerics();
  Truth truth = forward_with_budget(c.problem, in, numerics, false);
  const Forward handed = written(c.problem, truth, false, 1);
  Outputs outputs{handed.o, handed.lse};
  outputs.gradients = kernel.run(c.problem, in, handed);
  add_gradients(c.problem, in, truth, &handed);
  EXPECT_EQ(compare(c.problem, truth, outputs).status, Status::passed);
  truth.numerics.a_dS = 0;
  add_gradients(c.problem, in, truth, &handed);
  EXPECT_GT(compare(c.problem, truth, outputs).error_over_budget, 5);
}

// A score of +Inf, and an LSE of +Inf made of it: its row weighs finite scores with exactly 0, where NaN would weigh
// them with NaN, and the gradients follow what was handed.
TEST(GradientBudgetTest, LseOfPlusInfinity) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const bool plus_infinity : {false, true})
    for (const bool exp2_of_fma : {false, true}) {
      Case c;
      c.problem = small_problem(3, 4, 16, 16, Dtype::fp16);
      c.problem.bias = Bias::qk;
      Inputs in = make_inputs(c);
      in.bias.at(0, 0, 1, 2) = infinity;
      in.dout = random_tensor({1, 3, 1, 16}, 9);
      for (double& x : in.dout.values) x = round_to(Dtype::fp16, x);
      EmulatedBackward kernel;
      kernel.dtype = Dtype::fp16;
      kernel.exp2_of_fma = exp2_of_fma;
      Truth truth = forward_with_budget(c.problem, in, kernel.numerics(), false);
      Forward handed = written(c.problem, truth, false, 1);
      ASSERT_TRUE(std::isnan(handed.lse.values[1]));
      if (plus_infinity) handed.lse.values[1] = infinity;
      Outputs outputs{handed.o, handed.lse};
      outputs.gradients = kernel.run(c.problem, in, handed);
      add_gradients(c.problem, in, truth, &handed);
      const Verdict verdict = compare(c.problem, truth, outputs);
      EXPECT_EQ(verdict.status, Status::passed) << verdict.detail;
      const double dv = truth.gradients.dv.at(0, 1, 0, 5);
      EXPECT_EQ(std::isfinite(dv), plus_infinity);
      EXPECT_TRUE(std::isnan(truth.gradients.dv.at(0, 2, 0, 5)));
      EXPECT_TRUE(std::isnan(truth.gradients.dk.at(0, 1, 0, 5)));
      if (!plus_infinity) continue;
      EXPECT_LT(truth.gradient_bounds.dv.at(0, 1, 0, 5), 0.01);
      outputs.gradients->dv.at(0, 1, 0, 5) = dv + 0.02;
      EXPECT_EQ(compare(c.problem, truth, outputs).rule, "worst case");
    }
}

struct Planted {
  BackwardFault fault;
  const char* name;
  Dtype dtype;
  bool only_handed = false;  // within what an O and an LSE of the kernel's own may be off by
};

class PlantedBackwardFaultTest : public testing::TestWithParam<Planted> {};
INSTANTIATE_TEST_SUITE_P(
    All, PlantedBackwardFaultTest,
    testing::Values(Planted{BackwardFault::no_tail_mask, "no_tail_mask", Dtype::bf16},
                    Planted{BackwardFault::causal_offset, "causal_offset", Dtype::bf16},
                    Planted{BackwardFault::lse_of_next_row, "lse_of_next_row", Dtype::bf16},
                    Planted{BackwardFault::D_without_a_column, "D_without_a_column", Dtype::bf16},
                    Planted{BackwardFault::no_scale, "no_scale", Dtype::fp16},
                    Planted{BackwardFault::one_head_of_group, "one_head_of_group", Dtype::bf16},
                    Planted{BackwardFault::no_cap_derivative, "no_cap_derivative", Dtype::bf16},
                    Planted{BackwardFault::no_D, "no_D", Dtype::fp32},
                    Planted{BackwardFault::dropped_key, "dropped_key", Dtype::bf16},
                    Planted{BackwardFault::lse_in_base_2, "lse_in_base_2", Dtype::fp16},
                    Planted{BackwardFault::short_ds, "short_ds", Dtype::fp16, true},
                    Planted{BackwardFault::last_tile_lost, "last_tile_lost", Dtype::bf16},
                    Planted{BackwardFault::first_batch_sink, "first_batch_sink", Dtype::bf16, true},
                    Planted{BackwardFault::bias_of_first_head, "bias_of_first_head", Dtype::bf16},
                    Planted{BackwardFault::descale_dropped, "descale_dropped", Dtype::fp8_e4m3, true}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST_P(PlantedBackwardFaultTest, IsAccused) {
  const Planted planted = GetParam();
  Case c;
  Problem& p = c.problem;
  p = small_problem(66, 100, 64, 64, planted.dtype);
  p.batch = 2;
  p.nheads = 4;
  p.nheads_k = 2;
  p.causal = Causal::bottom_right;
  if (planted.fault == BackwardFault::no_tail_mask) {
    p.causal = Causal::none;
    c.inputs = Distribution::shift;  // scores of -20 to -320 overflow where a zero-filled key's score is 0
  }
  p.softcap = planted.fault == BackwardFault::no_cap_derivative ? 3 : 0;
  p.sink = planted.fault == BackwardFault::first_batch_sink;
  if (planted.fault == BackwardFault::bias_of_first_head) p.bias = Bias::bqk;
  c.seed = 5;
  Inputs in = make_inputs(c);
  in.dout = random_tensor({2, 66, 4, 64}, 6);
  if (p.sink) in.sink = random_tensor({1, 4, 1, 1}, 7);
  if (p.bias != Bias::none) in.bias = random_tensor({2, 1, 66, 100}, 8);
  if (is_fp8(p.dtype)) in.q_descale = in.k_descale = in.v_descale = Tensor({2, 2, 1, 1}, 0.75);

  EmulatedBackward kernel;
  kernel.dtype = planted.dtype;
  Truth truth = forward_with_budget(p, in, kernel.numerics(), false);
  const Forward handed = written(p, truth, false, 1);
  for (const bool conditional : {false, true}) {
    add_gradients(p, in, truth, conditional ? &handed : nullptr);
    Outputs outputs{handed.o, handed.lse};
    kernel.fault = BackwardFault::none;
    outputs.gradients = kernel.run(p, in, handed);
    const Verdict right = compare(p, truth, outputs);
    EXPECT_EQ(right.status, Status::passed) << right.detail;
    kernel.fault = planted.fault;
    outputs.gradients = kernel.run(p, in, handed);
    const Verdict wrong = compare(p, truth, outputs);
    std::cout << "  " << (conditional ? "handed " : "") << wrong.rule << " " << wrong.channel << " "
              << wrong.error_over_budget << "\n";
    if (planted.only_handed && !conditional) continue;
    EXPECT_EQ(wrong.status, Status::wrong_values) << wrong.detail;
    EXPECT_EQ(wrong.channel[0], 'd') << wrong.detail;
  }
}

// Each constant counts where it should: a larger one widens the bounds it enters, and no other.
TEST(GradientBudgetTest, EveryConstantCounts) {
  Case c;
  Problem& p = c.problem;
  p = small_problem(20, 40, 16, 16);
  p.nheads = 2;
  p.nheads_k = 1;
  p.softcap = 20;
  Inputs in = make_inputs(c);
  in.dout = random_tensor({1, 20, 2, 16}, 2);
  const auto bounds = [&](const Numerics& n) {
    Truth truth = forward_with_budget(p, in, n, false);
    const Forward handed = truth.forward;
    add_gradients(p, in, truth, &handed);
    const auto sum = [](const Tensor& t) {
      double total = 0;
      for (const double x : t.values) total += x;
      return total;
    };
    return std::array{sum(truth.gradient_bounds.dq), sum(truth.gradient_bounds.dk), sum(truth.gradient_bounds.dv)};
  };
  const auto before = bounds(flash_numerics(p.dtype));
  const auto expect_wider = [&](bool dq, bool dk, bool dv, const std::function<void(Numerics&)>& change,
                                const char* what) {
    Numerics n = flash_numerics(p.dtype);
    change(n);
    const auto after = bounds(n);
    EXPECT_EQ(after[0] > before[0], dq) << what;
    EXPECT_EQ(after[1] > before[1], dk) << what;
    EXPECT_EQ(after[2] > before[2], dv) << what;
  };
  expect_wider(
      false, false, true, [](Numerics& n) { n.u_P_backward = 0x1p-6; }, "u_P_backward");
  expect_wider(
      false, false, true, [](Numerics& n) { n.a_P_backward = 0x1p-20; }, "a_P_backward");
  expect_wider(
      true, true, false, [](Numerics& n) { n.u_dS = 0x1p-6; }, "u_dS");
  expect_wider(
      true, true, false, [](Numerics& n) { n.a_dS = 0x1p-20; }, "a_dS");
  expect_wider(
      false, true, true, [](Numerics& n) { n.u_share = 0x1p-8; }, "u_share");
  expect_wider(
      true, true, true, [](Numerics& n) { n.u_acc = 0x1p-20; }, "u_acc");
  expect_wider(
      true, true, true, [](Numerics& n) { n.eps_exp = 0x1p-18; }, "eps_exp");
  expect_wider(
      true, true, true, [](Numerics& n) { n.eps_tanh = 0x1p-8; }, "eps_tanh");
  expect_wider(
      true, true, true, [](Numerics& n) { n.u_S = 0x1p-11; }, "u_S");
  expect_wider(
      true, true, true, [](Numerics& n) { n.u_out = 0x1p-7; }, "u_out");
}

// Scores so large that a weight may be anything: the bounds are large, but numbers.
TEST(GradientBudgetTest, HopelessScoresHaveNoNan) {
  Case c;
  c.problem = small_problem(5, 40, 64, 4);
  c.problem.softmax_scale = 0x1p20;
  Inputs in = make_inputs(c);
  in.dout = random_tensor({1, 5, 1, 4}, 2);
  in.dout.values[3] = 0;
  Truth truth = forward_with_budget(c.problem, in, flash_numerics(Dtype::bf16), false);
  add_gradients(c.problem, in, truth);
  for (const Tensor* bound : {&truth.gradient_bounds.dq, &truth.gradient_bounds.dk, &truth.gradient_bounds.dv})
    for (const double x : bound->values) EXPECT_FALSE(std::isnan(x));
}

}  // namespace
}  // namespace attest
