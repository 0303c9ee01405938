// Rows of a block whose roundings of P are the same: ALiBi where products hardly move the scores.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "attest/reference/compare.h"
#include "emulated_kernel.h"
#include "problems.h"

namespace attest {
namespace {

// ALiBi at softmax_scale 0: 25 of these 28 rows are the same bit for bit, and counted as 28 a right kernel is accused.
TEST(AlikeRowsTest, CountOnce) {
  Case c;
  Problem& p = c.problem;
  p = small_problem(28, 4, 1, 18);
  p.batch = 4;
  p.nheads = 2;
  p.softmax_scale = 0;
  p.alibi = true;
  const Inputs in = make_inputs(c);
  EmulatedKernel kernel;
  kernel.tile = 128;
  const Outputs outputs = kernel.run(p, in);
  for (std::int64_t i = 0; i < 24; ++i)
    for (std::int64_t d = 0; d < 18; ++d) ASSERT_EQ(outputs.o.at(3, i, 0, d), outputs.o.at(3, i + 1, 0, d));
  Truth truth = forward_with_budget(p, in, kernel.numerics(), true);
  for (const double alike : truth.alike.values) ASSERT_EQ(alike, 1);
  const Verdict right = compare(p, truth, outputs);
  EXPECT_EQ(right.status, Status::passed) << right.detail;
  truth.alike = {};
  const Verdict wrong = compare(p, truth, outputs);
  EXPECT_EQ(wrong.rule, "statistical block");
  EXPECT_GT(wrong.error_over_budget, 1);
}

// Windows of ALiBi alone: every row has its own V, and all rows the same few roundings of P. Right kernels over many
// slopes stay inside; most of what an independent kernel's block may do is 1.27, and these go to 1.7.
TEST(AlikeRowsTest, WindowsShareRoundings) {
  double nearest = 0, nearest_apart = 0;
  for (int n = 0; n < 6; ++n) {
    Case c;
    Problem& p = c.problem;
    p = small_problem(128, 128, 8, 64, n % 2 ? Dtype::fp16 : Dtype::bf16);
    p.nheads = p.nheads_k = 8;
    p.softmax_scale = 0;
    p.alibi = true;
    p.causal = Causal::bottom_right;
    p.window_left = 3;
    c.seed = static_cast<std::uint64_t>(n);
    Inputs in = make_inputs(c);
    for (std::size_t h = 0; h < 8; ++h)
      in.alibi_slopes.values[h] = static_cast<float>(std::exp2(-6 * std::fmod(0.618 * (8 * n + h), 1.0)));
    EmulatedKernel kernel;
    kernel.dtype = p.dtype;
    kernel.noise = c.seed;
    const Outputs outputs = kernel.run(p, in);
    Truth truth = forward_with_budget(p, in, kernel.numerics(), true);
    nearest = std::max(nearest, compare(p, truth, outputs).error_over_budget);
    truth.alike = {};
    nearest_apart = std::max(nearest_apart, compare(p, truth, outputs).error_over_budget);
  }
  std::cout << "  nearest " << nearest << ", counted apart " << nearest_apart << "\n";
  EXPECT_LE(nearest, 1);
  EXPECT_GT(nearest_apart, 1);
}

// Ordinary scores scatter over many spacings of P: rows of one head are then independent with ALiBi as without.
TEST(AlikeRowsTest, ScatteredScoresAreIndependent) {
  Case c;
  c.problem = small_problem(128, 64, 64, 16);
  c.problem.alibi = true;
  const Inputs in = make_inputs(c);
  for (const double alike : empty_truth(c.problem, in, flash_numerics(Dtype::bf16), true).alike.values)
    ASSERT_LT(alike, 1e-9);
  c.problem.softmax_scale = 1e-4;  // a deviation of 0.1 spacings
  for (const double alike : empty_truth(c.problem, in, flash_numerics(Dtype::bf16), true).alike.values) {
    EXPECT_GT(alike, 0.4);
    EXPECT_LT(alike, 0.95);
  }
}

}  // namespace
}  // namespace attest
