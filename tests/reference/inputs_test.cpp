#include "attest/reference/inputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "attest/reference/rounding.h"
#include "problems.h"

namespace attest {
namespace {

Case case_of(Problem p, Distribution distribution, std::uint64_t seed = 1) {
  Case c;
  c.problem = p;
  c.inputs = distribution;
  c.seed = seed;
  return c;
}

double score(const Case& c, const Inputs& in, std::int64_t i, std::int64_t j) {
  double dot = 0;
  for (std::int64_t d = 0; d < c.problem.headdim; ++d) dot += in.q.at(0, i, 0, d) * in.k.at(0, j, 0, d);
  return dot * static_cast<float>(effective_softmax_scale(c.problem));
}

TEST(InputsTest, EveryValueIsRepresentable) {
  for (const Dtype dtype : all_dtypes)
    for (const Distribution distribution : all_distributions)
      for (const double scale : {1e-12, 1e-3, 0.125, -2.0, 1e6, 0.0}) {
        Case c = case_of(small_problem(9, 11, 7, 5, dtype), distribution);
        c.problem.softmax_scale = scale;
        const Inputs in = make_inputs(c);
        for (const Tensor* tensor : {&in.q, &in.k, &in.v})
          for (const double x : tensor->values) {
            ASSERT_TRUE(std::isfinite(x)) << command_line(c);
            ASSERT_EQ(round_to(dtype, x), x) << command_line(c);
          }
      }
}

// A member of a batch, and a shorter sequence, can be made again on their own.
TEST(InputsTest, AnElementDependsOnItsPlaceAlone) {
  for (const Distribution distribution : all_distributions) {
    Case large = case_of(small_problem(20, 30, 9, 6), distribution);
    large.problem.batch = 3;
    large.problem.nheads = 4;
    large.problem.nheads_k = 2;
    Case small = large;
    small.problem.batch = 2;
    small.problem.seqlen_q = 7;
    small.problem.seqlen_k = 13;
    const Inputs a = make_inputs(large), b = make_inputs(small);
    for (const auto& [from, to] : {std::pair{&a.q, &b.q}, {&a.k, &b.k}, {&a.v, &b.v}})
      for (std::int64_t n = 0; n < to->extents[0]; ++n)
        for (std::int64_t s = 0; s < to->extents[1]; ++s)
          for (std::int64_t h = 0; h < to->extents[2]; ++h)
            for (std::int64_t d = 0; d < to->extents[3]; ++d)
              ASSERT_EQ(from->at(n, s, h, d), to->at(n, s, h, d)) << to_string(distribution);
  }
}

TEST(InputsTest, SeedsTensorsAndPlacesDiffer) {
  const Problem p = small_problem(64, 64, 32, 32);
  const Inputs a = make_inputs(case_of(p, Distribution::normal, 1)),
               b = make_inputs(case_of(p, Distribution::normal, 2));
  const auto equal = [](const Tensor& x, const Tensor& y) {
    std::size_t count = 0;
    for (std::size_t n = 0; n < x.values.size(); ++n) count += x.values[n] == y.values[n];
    return static_cast<double>(count) / static_cast<double>(x.values.size());
  };
  EXPECT_LT(equal(a.q, b.q), 0.02);  // by chance, in bf16
  EXPECT_LT(equal(a.q, a.k), 0.02);
  EXPECT_LT(equal(a.k, a.v), 0.02);
}

TEST(InputsTest, NormalHasTheMomentsOfANormal) {
  Case c = case_of(small_problem(512, 512, 256, 256, Dtype::fp32), Distribution::normal, 3);
  const Inputs in = make_inputs(c);
  for (const Tensor* tensor : {&in.q, &in.k, &in.v}) {
    const auto n = static_cast<double>(tensor->values.size());  // 131072: deviations of 0.003, 0.004, 0.027
    double sum = 0, squares = 0, fourths = 0, neighbours = 0, previous = 0, largest = 0;
    for (const double x : tensor->values) {
      sum += x;
      squares += x * x;
      fourths += x * x * x * x;
      neighbours += x * previous;
      previous = x;
      largest = std::max(largest, std::abs(x));
    }
    EXPECT_NEAR(sum / n, 0, 0.015);
    EXPECT_NEAR(squares / n, 1, 0.02);
    EXPECT_NEAR(fourths / n, 3, 0.12);
    EXPECT_NEAR(neighbours / n, 0, 0.015);
    EXPECT_GT(largest, 3.9);
    EXPECT_LE(largest, 4.5);
  }
}

TEST(InputsTest, LargeReachesBothSigns) {
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16, Dtype::fp32})
    for (const std::int64_t headdim : {1, 8, 64, 256})
      for (const std::optional<double> scale : {std::optional<double>{}, {1.0}, {1e-4}, {-0.5}}) {
        Case c = case_of(small_problem(64, 64, headdim, 8, dtype), Distribution::large);
        c.problem.softmax_scale = scale;
        const Inputs in = make_inputs(c);
        std::vector<double> scores;
        for (std::int64_t i = 0; i < 64; ++i)
          for (std::int64_t j = 0; j < 64; ++j) scores.push_back(score(c, in, i, j));
        std::sort(scores.begin(), scores.end());
        EXPECT_LT(scores[205], -100) << command_line(c);  // the lowest twentieth
        EXPECT_GT(scores[4096 - 205], 100) << command_line(c);
        EXPECT_LT(scores.front(), -250) << command_line(c);
        EXPECT_GT(scores.back(), 250) << command_line(c);
      }
}

TEST(InputsTest, ShiftMovesARowAsOne) {
  for (const Dtype dtype : all_dtypes)
    for (const std::int64_t headdim : {1, 2, 64}) {
      const Case shifted = case_of(small_problem(64, 40, headdim, 8, dtype), Distribution::shift);
      const Inputs a = make_inputs(shifted);
      int up = 0, down = 0;
      for (std::int64_t i = 0; i < 64; ++i) {
        const double constant = a.q.at(0, i, 0, headdim - 1) * a.k.at(0, 0, 0, headdim - 1) *
                                static_cast<float>(effective_softmax_scale(shifted.problem));
        EXPECT_GT(std::abs(constant), 19);
        EXPECT_LT(std::abs(constant), 325);
        (constant > 0 ? up : down) += 1;
        for (std::int64_t j = 0; j < 40; ++j) {
          EXPECT_EQ(a.k.at(0, j, 0, headdim - 1), a.k.at(0, 0, 0, headdim - 1));
          EXPECT_LT(std::abs(score(shifted, a, i, j) - constant), headdim == 1 ? 1e-9 : 12);
        }
      }
      EXPECT_GT(up, 16);
      EXPECT_GT(down, 16);
    }
}

TEST(InputsTest, ZeroOneAndOneHotAreExact) {
  const Problem p = small_problem(9, 11, 8, 4);
  for (const double x : make_inputs(case_of(p, Distribution::zero_q)).q.values) EXPECT_EQ(x, 0);
  for (const double x : make_inputs(case_of(p, Distribution::one_v)).v.values) EXPECT_EQ(x, 1);
  const Inputs hot = make_inputs(case_of(p, Distribution::one_hot_v));
  for (std::int64_t j = 0; j < 11; ++j)
    for (std::int64_t d = 0; d < 4; ++d) EXPECT_EQ(hot.v.at(0, j, 0, d), d == j % 4 ? 1 : 0);
}

}  // namespace
}  // namespace attest
