#include "attest/reference/inputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "attest/reference/forward.h"
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
  if (is_fp8(c.problem.dtype)) dot *= in.q_descale.at(0, 0, 0, 0) * in.k_descale.at(0, 0, 0, 0);
  return dot * static_cast<float>(effective_softmax_scale(c.problem));
}

// A problem of every feature that has inputs of its own.
Problem whole_problem(Dtype dtype) {
  Problem p = small_problem(20, 30, 9, 6, dtype);
  p.batch = 3;
  p.nheads = 4;
  p.nheads_k = 2;
  p.alibi = p.sink = true;
  p.bias = Bias::bhqk;
  return p;
}

TEST(InputsTest, EveryValueIsRepresentable) {
  for (const Dtype dtype : all_dtypes)
    for (const Distribution distribution : all_distributions)
      for (const double scale : {1e-12, 1e-3, 0.125, -2.0, 1e6, 0.0}) {
        Case c = case_of(small_problem(9, 11, 7, 5, dtype), distribution);
        c.problem.softmax_scale = scale;
        c.backward = true;
        c.problem.alibi = c.problem.sink = true;
        c.problem.bias = Bias::qk;
        const Inputs in = make_inputs(c);
        const bool bad = distribution == Distribution::non_finite;
        const Dtype wide = output_dtype(dtype);
        for (const auto& [tensor, type] : {std::pair{&in.q, dtype}, {&in.k, dtype}, {&in.v, dtype}, {&in.dout, wide}})
          for (const double x : tensor->values) {
            ASSERT_TRUE(bad || std::isfinite(x)) << command_line(c);
            ASSERT_TRUE(std::isnan(x) || decode(type, encode(type, x)) == x) << command_line(c);
          }
        for (const double x : in.bias.values)
          ASSERT_TRUE(round_to(wide, x) == x && static_cast<float>(x) == x) << command_line(c);
        for (const Tensor* tensor : {&in.alibi_slopes, &in.sink, &in.q_descale, &in.k_descale, &in.v_descale})
          for (const double x : tensor->values)
            ASSERT_TRUE(std::isfinite(x) && static_cast<float>(x) == x) << command_line(c);
      }
}

// A member of a batch, and a shorter sequence, can be made again on their own.
TEST(InputsTest, AnElementDependsOnItsPlaceAlone) {
  for (const Distribution distribution : all_distributions) {
    Case large = case_of(whole_problem(Dtype::bf16), distribution);
    large.backward = distribution != Distribution::orthogonal_dout;
    Case small = large;
    small.problem.batch = 2;
    small.problem.seqlen_q = 7;
    small.problem.seqlen_k = 13;
    const Inputs a = make_inputs(large), b = make_inputs(small);
    ASSERT_EQ(b.bias.extents, (std::array<std::int64_t, 4>{2, 4, 7, 13}));
    for (const auto& [from, to] : {std::pair{&a.q, &b.q},
                                   {&a.k, &b.k},
                                   {&a.v, &b.v},
                                   {&a.dout, &b.dout},
                                   {&a.bias, &b.bias},
                                   {&a.alibi_slopes, &b.alibi_slopes}})
      for (std::int64_t n = 0; n < to->extents[0]; ++n)
        for (std::int64_t s = 0; s < to->extents[1]; ++s)
          for (std::int64_t h = 0; h < to->extents[2]; ++h)
            for (std::int64_t d = 0; d < to->extents[3]; ++d)
              ASSERT_TRUE(from->at(n, s, h, d) == to->at(n, s, h, d) || std::isnan(to->at(n, s, h, d)))
                  << to_string(distribution);
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
  for (const Dtype dtype : all_dtypes)
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
        double constant = a.q.at(0, i, 0, headdim - 1) * a.k.at(0, 0, 0, headdim - 1) *
                          static_cast<float>(effective_softmax_scale(shifted.problem));
        const bool fp8 = is_fp8(dtype);  // 3 or 2 bits after the point, and descales up to 4 together
        if (fp8) constant *= a.q_descale.at(0, 0, 0, 0) * a.k_descale.at(0, 0, 0, 0);
        EXPECT_GT(std::abs(constant), fp8 ? 17 : 19);
        EXPECT_LT(std::abs(constant), fp8 ? 365 : 325);
        (constant > 0 ? up : down) += 1;
        for (std::int64_t j = 0; j < 40; ++j) {
          EXPECT_EQ(a.k.at(0, j, 0, headdim - 1), a.k.at(0, 0, 0, headdim - 1));
          EXPECT_LT(std::abs(score(shifted, a, i, j) - constant), headdim == 1 ? 1e-9 : fp8 ? 40 : 12);
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

TEST(InputsTest, OnlyWhatTheProblemHas) {
  const Inputs in = make_inputs(case_of(small_problem(3, 4, 8, 4), Distribution::normal));
  for (const Tensor* tensor :
       {&in.dout, &in.bias, &in.alibi_slopes, &in.sink, &in.q_descale, &in.k_descale, &in.v_descale})
    EXPECT_TRUE(tensor->values.empty());
  for (const auto& [bias, batch, heads] :
       {std::tuple{Bias::bhqk, 3, 4}, {Bias::hqk, 1, 4}, {Bias::bqk, 3, 1}, {Bias::qk, 1, 1}}) {
    Case c = case_of(whole_problem(Dtype::fp16), Distribution::normal);
    c.problem.bias = bias;
    EXPECT_EQ(make_inputs(c).bias.extents, (std::array<std::int64_t, 4>{batch, heads, 20, 30}));
  }
}

// What a kernel may confuse differs: tensors, neighbouring heads and batch entries.
TEST(InputsTest, DescalesAndSlopesDiffer) {
  Case c = case_of(whole_problem(Dtype::fp8_e4m3), Distribution::normal);
  c.problem.batch = 8;
  c.problem.nheads = c.problem.nheads_k = 8;
  const Inputs in = make_inputs(c);
  int powers = 0;
  for (std::int64_t b = 0; b < 8; ++b)
    for (std::int64_t h = 0; h < 8; ++h) {
      const double q = in.q_descale.at(b, h, 0, 0), k = in.k_descale.at(b, h, 0, 0), v = in.v_descale.at(b, h, 0, 0);
      EXPECT_TRUE(q != k && k != v && q != v);
      for (const Tensor* tensor : {&in.q_descale, &in.k_descale, &in.v_descale, &in.alibi_slopes}) {
        if (b > 0) {
          EXPECT_NE(tensor->at(b, h, 0, 0), tensor->at(b - 1, h, 0, 0));
        }
        if (h > 0) {
          EXPECT_NE(tensor->at(b, h, 0, 0), tensor->at(b, h - 1, 0, 0));
        }
        powers += tensor != &in.alibi_slopes && std::exp2(std::ilogb(tensor->at(b, h, 0, 0))) == tensor->at(b, h, 0, 0);
      }
    }
  EXPECT_GT(powers, 24);  // of 192
  EXPECT_LT(powers, 96);
  EXPECT_EQ(in.alibi_slopes.at(0, 3, 0, 0), 0.0625);
}

TEST(InputsTest, LargeBiasHasTheLowestFiniteNumberAndMinusInfinity) {
  for (const Dtype dtype : all_dtypes) {
    Case c = case_of(whole_problem(dtype), Distribution::large);
    const Tensor bias = make_inputs(c).bias;
    const double lowest = -decode(output_dtype(dtype), output_dtype(dtype) == Dtype::fp16   ? 0x7bff
                                                       : output_dtype(dtype) == Dtype::bf16 ? 0x7f7f
                                                                                            : 0x7f7fffff);
    std::int64_t rows_of_lowest = 0, mixed = 0, with_inf = 0;
    for (std::size_t row = 0; row < bias.values.size(); row += 30) {
      const auto first = bias.values.begin() + static_cast<std::ptrdiff_t>(row);
      const auto low = std::count(first, first + 30, lowest);
      rows_of_lowest += low == 30;
      mixed += low > 0 && low < 30;
      with_inf += std::count(first, first + 30, -INFINITY) > 0;
    }
    EXPECT_GT(rows_of_lowest, 5) << to_string(dtype);  // of 240
    EXPECT_GT(mixed, 10);
    EXPECT_GT(with_inf, 10);
    EXPECT_LT(rows_of_lowest + mixed + with_inf, 120);
  }
}

TEST(InputsTest, NonFiniteIsRare) {
  for (const Dtype dtype : all_dtypes) {
    const Inputs in = make_inputs(case_of(small_problem(512, 2048, 4, 4, dtype), Distribution::non_finite));
    const auto bad = [](const Tensor& t) {
      return std::count_if(t.values.begin(), t.values.end(), [](double x) { return !std::isfinite(x); });
    };
    EXPECT_NEAR(static_cast<double>(bad(in.q)), 32, 20);
    EXPECT_NEAR(static_cast<double>(bad(in.k)), 8, 7);
    EXPECT_NEAR(static_cast<double>(bad(in.v)), 32, 20);
    const auto infinite = std::count_if(in.v.values.begin(), in.v.values.end(), [](double x) { return std::isinf(x); });
    EXPECT_EQ(infinite > 0, !is_fp8(dtype));
  }
}

TEST(InputsTest, OrthogonalGradients) {
  Case c = case_of(whole_problem(Dtype::bf16), Distribution::orthogonal_dout);
  c.backward = true;
  const Inputs in = make_inputs(c);
  const Tensor o = forward(c.problem, in).o;
  for (std::size_t row = 0; row < o.values.size(); row += 6) {
    double product = 0, magnitude = 0;
    for (std::size_t d = row; d < row + 6; ++d) {
      product += o.values[d] * in.dout.values[d];
      magnitude += std::abs(o.values[d] * in.dout.values[d]);
    }
    EXPECT_LE(std::abs(product), 0x1p-8 * magnitude);
  }
}

}  // namespace
}  // namespace attest
