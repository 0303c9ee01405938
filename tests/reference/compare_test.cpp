#include "attest/reference/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "emulated_kernel.h"
#include "problems.h"

namespace attest {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

// A small case, its truth, and what a perfect kernel would write.
struct Trial {
  explicit Trial(Problem p, bool statistical = false, Distribution distribution = Distribution::normal) {
    c.problem = p;
    c.inputs = distribution;
    inputs = make_inputs(c);
    truth = forward_with_budget(p, inputs, flash_numerics(p.dtype), statistical);
    outputs = {truth.forward.o, truth.forward.lse};
  }
  Verdict judge() const { return compare(c.problem, truth, outputs); }

  Case c;
  Inputs inputs;
  Truth truth;
  Outputs outputs;
};

Problem causal_problem() {
  Problem p = small_problem(5, 7, 16, 16);
  p.batch = 2;
  p.nheads = 2;
  p.causal = Causal::bottom_right;
  return p;
}

TEST(CompareTest, TheTruthPasses) {
  const Verdict v = Trial(causal_problem(), true).judge();
  EXPECT_EQ(v.status, Status::passed);
  EXPECT_EQ(v.error_over_budget, 0);
  EXPECT_EQ(v.numerics, "flash bf16");
}

// Just inside a bound passes and just outside fails, in both channels, at every kind of place.
TEST(CompareTest, BothSidesOfTheWorstCase) {
  for (const std::size_t n : {std::size_t{0}, std::size_t{100}, std::size_t{319}})
    for (const double sign : {1.0, -1.0}) {
      Trial run(causal_problem());
      const double bound = run.truth.o_bound.values[n];
      ASSERT_GT(bound, 0);
      run.outputs.o.values[n] = run.truth.forward.o.values[n] + sign * 0.999 * bound;
      EXPECT_EQ(run.judge().status, Status::passed);
      run.outputs.o.values[n] = run.truth.forward.o.values[n] + sign * 1.001 * bound;
      const Verdict v = run.judge();
      EXPECT_EQ(v.status, Status::wrong_values);
      EXPECT_EQ(v.channel, "o");
      EXPECT_EQ(v.rule, "worst case");
      EXPECT_NEAR(v.error_over_budget, 1.001, 1e-6);
      EXPECT_NE(v.detail.find(", 1.001 of the worst case budget"), std::string::npos) << v.detail;
      EXPECT_EQ(run.truth.forward.o.index(v.element[0], v.element[1], v.element[2], v.element[3]),
                static_cast<std::int64_t>(n));
    }
  for (const std::size_t n : {std::size_t{0}, std::size_t{19}}) {
    Trial run(causal_problem());
    run.outputs.lse->values[n] += 0.999 * run.truth.lse_bound.values[n];
    EXPECT_EQ(run.judge().status, Status::passed);
    run.outputs.lse->values[n] = run.truth.forward.lse.values[n] - 1.001 * run.truth.lse_bound.values[n];
    const Verdict v = run.judge();
    EXPECT_EQ(v.status, Status::wrong_values);
    EXPECT_EQ(v.channel, "lse");
    EXPECT_EQ(v.element, (n == 0 ? std::array<std::int64_t, 4>{0, 0, 0, 0} : std::array<std::int64_t, 4>{1, 1, 4, 0}));
  }
}

// What fails by little does not read as what is at the limit and passes.
TEST(CompareTest, ARatioIsToldFromItsLimit) {
  EXPECT_EQ(ratio_text(0.47113), "0.471");
  EXPECT_EQ(ratio_text(123456), "1.23e+05");
  EXPECT_EQ(ratio_text(1.003), "1.003");
  EXPECT_EQ(ratio_text(1.00004), "1.00004");
  EXPECT_EQ(ratio_text(0.9998), "0.9998");
  EXPECT_NE(ratio_text(std::nextafter(1.0, 2.0)), "1");
  EXPECT_EQ(ratio_text(1), "1");
  EXPECT_EQ(ratio_text(infinity), "inf");
}

TEST(CompareTest, VerdictNamesTheRowsKeys) {
  Trial run(causal_problem());  // row 0 of 5 queries and 7 keys sees keys 0 to 2
  run.outputs.o.at(1, 0, 1, 3) += 1;
  const Verdict v = run.judge();
  EXPECT_EQ(v.element, (std::array<std::int64_t, 4>{1, 0, 1, 3}));
  EXPECT_EQ(v.visible_keys, "0-2");
  EXPECT_NE(v.detail.find("o[b=1, i=0, h=1, d=3]"), std::string::npos) << v.detail;
  EXPECT_EQ(v.detail.find('\n'), std::string::npos);
}

// Every rule keeps its own count, and the worst of them is the verdict's.
TEST(CompareTest, FindingsKeepTheRulesApart) {
  Trial run(small_problem(200, 64, 32, 32), true);
  run.outputs.lse->values[7] += 2 * run.truth.lse_bound.values[7];
  run.outputs.o.values[3 * 32] += 0.5 * run.truth.o_bound.values[3 * 32];
  std::vector<RuleFinding> findings;
  const Verdict v = compare(run.c.problem, run.truth, run.outputs, &findings);
  ASSERT_EQ(findings.size(), 5u);
  const auto expect = [&](std::size_t n, std::string_view rule, std::string_view channel, int judged, int over) {
    EXPECT_EQ(findings[n].rule, rule);
    EXPECT_EQ(findings[n].channel, channel);
    EXPECT_EQ(findings[n].judged, judged) << rule;
    EXPECT_EQ(findings[n].over, over) << rule << " " << channel;
  };
  expect(0, "worst case", "o", 200, 0);
  expect(1, "worst case", "lse", 200, 1);
  expect(2, "statistical row", "o", 200, 0);
  expect(3, "statistical block", "o", 2, 0);
  expect(4, "statistical lse", "lse", 200, 1);
  EXPECT_DOUBLE_EQ(findings[0].error_over_budget, 0.5);
  EXPECT_NEAR(findings[1].error_over_budget, 2, 1e-9);
  EXPECT_EQ(v.error_over_budget, findings[4].error_over_budget);

  run.outputs.o.values[0] = nan_value;
  compare(run.c.problem, run.truth, run.outputs, &findings);
  EXPECT_TRUE(findings.empty());
}

TEST(CompareTest, OrderOfTheRules) {
  Trial run(causal_problem());
  run.outputs.o.values[0] += 1;
  run.outputs.lse->values[3] = nan_value;
  EXPECT_EQ(run.judge().rule, "nan");
  run.outputs.unwritten_lse = 1;
  EXPECT_EQ(run.judge().status, Status::unwritten);
  run.outputs.out_of_bounds = 2;
  EXPECT_EQ(run.judge().status, Status::out_of_bounds);
  run.outputs.o.extents[3] = 8;
  EXPECT_EQ(run.judge().status, Status::wrong_shape);
}

TEST(CompareTest, EveryRefusalNamesItsChannel) {
  Trial run(causal_problem());
  run.outputs.unwritten_o = 7;
  EXPECT_EQ(run.judge().channel, "o");
  EXPECT_NE(run.judge().detail.find('7'), std::string::npos);
  run.outputs.unwritten_o = 0;
  run.outputs.lse->extents = {1, 1, 1, 1};
  EXPECT_EQ(run.judge().channel, "lse");
}

TEST(CompareTest, AKernelWithoutLseIsJudgedOnO) {
  Trial run(causal_problem());
  run.outputs.lse.reset();
  EXPECT_EQ(run.judge().status, Status::passed);
}

TEST(CompareTest, EmptyRowsAreExact) {
  Problem p = small_problem(4, 2, 16, 16);
  p.causal = Causal::bottom_right;  // rows 0 and 1 see nothing
  Trial run(p);
  ASSERT_EQ(run.truth.forward.lse.values[0], -infinity);
  EXPECT_EQ(run.judge().status, Status::passed);
  for (const double wrong : {0.0, infinity, nan_value, -1e30}) {
    Trial other = run;
    other.outputs.lse->values[1] = wrong;
    EXPECT_EQ(other.judge().status, Status::wrong_values) << wrong;
    EXPECT_EQ(other.judge().visible_keys, "none");
  }
  run.outputs.o.at(0, 1, 0, 2) = 0x1p-149;
  EXPECT_EQ(run.judge().status, Status::wrong_values);
}

TEST(CompareTest, NanAndInfMasks) {
  Trial run(causal_problem());
  run.truth.forward.o.values[5] = nan_value;
  run.outputs.o.values[5] = 1;
  EXPECT_EQ(run.judge().rule, "nan");
  run.outputs.o.values[5] = infinity;
  EXPECT_EQ(run.judge().rule, "nan");
  run.outputs.o.values[5] = nan_value;
  EXPECT_EQ(run.judge().status, Status::passed);
  run.truth.forward.o.values[5] = infinity;  // Inf - Inf on a kernel's way is NaN
  EXPECT_EQ(run.judge().status, Status::passed);
  run.outputs.o.values[5] = -infinity;
  EXPECT_EQ(run.judge().rule, "nan");
  run.outputs.o.values[5] = infinity;
  EXPECT_EQ(run.judge().status, Status::passed);
  run.outputs.o.values[6] = infinity;
  EXPECT_EQ(run.judge().status, Status::wrong_values);
}

// A value near the limit may round to the Inf on its own side, and to the other only if the bound reaches that far.
TEST(CompareTest, OverflowHasASign) {
  Trial run(causal_problem());
  run.truth.forward.o.values[5] = 3.38e38;
  run.truth.o_bound.values[5] = 1e37;
  run.outputs.o.values[5] = infinity;
  EXPECT_EQ(run.judge().status, Status::passed);
  run.outputs.o.values[5] = -infinity;
  EXPECT_EQ(run.judge().rule, "nan");
  run.truth.forward.o.values[5] = -3.38e38;
  EXPECT_EQ(run.judge().status, Status::passed);
  run.outputs.o.values[5] = infinity;
  EXPECT_EQ(run.judge().rule, "nan");
}

// A weight that underflows to 0 times -Inf is NaN as it is times +Inf. LSE = -Inf stays exact.
TEST(CompareTest, NegativeInfinityInOMayBecomeNan) {
  Trial run(causal_problem());
  run.truth.forward.o.values[5] = -infinity;
  run.outputs.o.values[5] = nan_value;
  EXPECT_EQ(run.judge().status, Status::passed);
  run.outputs.o.values[5] = infinity;
  EXPECT_EQ(run.judge().rule, "nan");
  run.outputs.o.values[5] = -infinity;
  run.truth.forward.lse.values[3] = -infinity;
  run.outputs.lse->values[3] = nan_value;
  EXPECT_EQ(run.judge().rule, "nan");
}

// Where a visible score is +Inf, m + ln l is NaN and ln(sum exp(s)) is +Inf: LSE may be either, O is NaN both ways.
TEST(CompareTest, LseOfAScoreOfPlusInfinity) {
  Case c;
  c.problem = small_problem(3, 4, 16, 16);
  c.problem.bias = Bias::qk;
  Inputs in = make_inputs(c);
  in.bias.at(0, 0, 0, 1) = infinity;
  in.bias.at(0, 0, 1, 2) = nan_value;
  for (const bool nan_beside : {false, true}) {  // fmaxf() drops NaN, and +Inf stays the maximum
    if (nan_beside) in.bias.at(0, 0, 0, 2) = nan_value;
    const Truth truth = forward_with_budget(c.problem, in, flash_numerics(c.problem.dtype), false);
    ASSERT_TRUE(std::isnan(truth.forward.lse.values[0]));
    const auto rule = [&](std::size_t row, double lse, double o) {
      Outputs outputs{truth.forward.o, truth.forward.lse};
      outputs.lse->values[row] = lse;
      if (row == 0) outputs.o.values[3] = o;
      return compare(c.problem, truth, outputs).rule;
    };
    for (const double right : {nan_value, infinity}) {
      EXPECT_EQ(rule(0, right, nan_value), "worst case") << right;
      EXPECT_EQ(rule(0, right, infinity), "nan") << right;
    }
    for (const double wrong : {-infinity, 0.0, 3.4e38}) EXPECT_EQ(rule(0, wrong, nan_value), "nan") << wrong;
    EXPECT_EQ(rule(1, infinity, nan_value), "nan");  // a score of NaN alone
    EXPECT_EQ(rule(2, infinity, nan_value), "nan");  // all finite
  }
}

// One key: O must be V bit for bit.
TEST(CompareTest, OneVisibleKeyIsExact) {
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16}) {
    Trial run(small_problem(3, 1, 16, 16, dtype));
    EXPECT_EQ(run.truth.forward.o.values[20], run.inputs.v.values[4]);
    EXPECT_EQ(run.truth.o_bound.values[20], 0);
    EXPECT_EQ(run.judge().status, Status::passed);
    run.outputs.o.values[20] *= 1 + 2 * run.truth.numerics.u_out;
    EXPECT_EQ(run.judge().status, Status::wrong_values);
  }
}

TEST(CompareTest, JsonSaysEverything) {
  Trial run(causal_problem());
  run.outputs.lse->values[0] = nan_value;
  const auto json = to_json(run.judge());
  EXPECT_EQ(json["status"], "wrong_values");
  EXPECT_EQ(json["value"], "nan");
  EXPECT_EQ(json["error_over_budget"], "inf");
  EXPECT_EQ(json["element"], (nlohmann::ordered_json{0, 0, 0, 0}));
  EXPECT_EQ(nlohmann::ordered_json::parse(json.dump()), json);
}

struct Planted {
  Fault fault;
  Dtype dtype;
  std::int64_t keys;
  Distribution inputs = Distribution::normal;
};

class PlantedFaultTest : public testing::TestWithParam<Planted> {};
std::string name_of(const testing::TestParamInfo<Planted>& tested) {
  const char* faults[] = {"none", "scale", "dropped_key", "swapped_v", "short_p", "o_in_fp16", "s_in_fp16"};
  return std::string(faults[static_cast<int>(tested.param.fault)]) + "_" + std::string(to_string(tested.param.dtype)) +
         "_" + std::to_string(tested.param.keys) + "_" + std::string(to_string(tested.param.inputs));
}

INSTANTIATE_TEST_SUITE_P(
    All, PlantedFaultTest,
    testing::Values(Planted{Fault::scale, Dtype::bf16, 256}, Planted{Fault::scale, Dtype::fp16, 1024},
                    Planted{Fault::scale, Dtype::fp32, 64}, Planted{Fault::scale, Dtype::bf16, 64, Distribution::large},
                    Planted{Fault::scale, Dtype::bf16, 64, Distribution::shift},
                    Planted{Fault::dropped_key, Dtype::bf16, 2}, Planted{Fault::dropped_key, Dtype::bf16, 64},
                    Planted{Fault::dropped_key, Dtype::fp16, 1024}, Planted{Fault::dropped_key, Dtype::fp32, 1024},
                    Planted{Fault::dropped_key, Dtype::bf16, 1024, Distribution::zero_q},
                    Planted{Fault::dropped_key, Dtype::bf16, 1024, Distribution::one_hot_v},
                    Planted{Fault::swapped_v, Dtype::bf16, 2}, Planted{Fault::swapped_v, Dtype::bf16, 64},
                    Planted{Fault::swapped_v, Dtype::fp16, 256}, Planted{Fault::swapped_v, Dtype::fp32, 1024},
                    Planted{Fault::swapped_v, Dtype::bf16, 64, Distribution::one_hot_v},
                    Planted{Fault::short_p, Dtype::bf16, 256}, Planted{Fault::short_p, Dtype::fp16, 256},
                    Planted{Fault::o_in_fp16, Dtype::fp16, 256}, Planted{Fault::o_in_fp16, Dtype::bf16, 4096},
                    Planted{Fault::s_in_fp16, Dtype::fp16, 1024}, Planted{Fault::s_in_fp16, Dtype::bf16, 1024}),
    name_of);

// The same kernel passes without its fault and is accused with it.
TEST_P(PlantedFaultTest, IsSeen) {
  const Planted& planted = GetParam();
  const Trial run(small_problem(128, planted.keys, 64, 64, planted.dtype), planted.inputs == Distribution::normal,
                  planted.inputs);
  EmulatedKernel kernel;
  kernel.dtype = planted.dtype;
  const Verdict right = compare(run.c.problem, run.truth, kernel.run(run.c.problem, run.inputs));
  EXPECT_EQ(right.status, Status::passed) << right.detail;
  kernel.fault = planted.fault;
  const Verdict wrong = compare(run.c.problem, run.truth, kernel.run(run.c.problem, run.inputs));
  EXPECT_EQ(wrong.status, Status::wrong_values) << wrong.detail;
  std::cout << "  " << wrong.detail << "\n";
}

}  // namespace
}  // namespace attest
