// A kernel that leaves out a feature, or gets it slightly wrong, is accused; without the fault it passes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "attest/reference/compare.h"
#include "emulated_kernel.h"
#include "problems.h"

namespace attest {
namespace {

struct Planted {
  const char* name;
  Fault fault;
  void (*feature)(Problem&);
};

void softcap(Problem& p) { p.softcap = 20; }
void softcap_and_bias(Problem& p) { p.softcap = 20, p.bias = Bias::hqk; }
// A masked key that scores -cap weighs exp(-20) at a cap of 20, below what any budget resolves.
void causal_softcap(Problem& p) { p.softcap = 2, p.causal = Causal::bottom_right; }
void alibi(Problem& p) { p.alibi = true; }
void bias(Problem& p) { p.bias = Bias::qk; }
void sink(Problem& p) { p.sink = true; }
void nothing(Problem&) {}

constexpr Planted faults[] = {{"no_softcap", Fault::no_softcap, softcap},
                              {"cap_after_mask", Fault::cap_after_mask, causal_softcap},
                              {"bias_inside_cap", Fault::bias_inside_cap, softcap_and_bias},
                              {"no_alibi", Fault::no_alibi, alibi},
                              {"alibi_off_by_one", Fault::alibi_off_by_one, alibi},
                              {"no_bias", Fault::no_bias, bias},
                              {"bias_before_scale", Fault::bias_before_scale, bias},
                              {"no_sink", Fault::no_sink, sink},
                              {"sink_is_scaled", Fault::sink_is_scaled, sink},
                              {"lse_base_2", Fault::lse_base_2, nothing}};
constexpr Planted fp8_faults[] = {{"no_v_descale", Fault::no_v_descale, nothing},
                                  {"k_descale_twice", Fault::k_descale_twice, nothing}};

class FeatureFaultTest : public testing::TestWithParam<std::tuple<Planted, Dtype, int>> {};
std::string name_of(const testing::TestParamInfo<FeatureFaultTest::ParamType>& tested) {
  return std::string(std::get<0>(tested.param).name) + "_" + std::string(to_string(std::get<1>(tested.param))) + "_" +
         std::to_string(std::get<2>(tested.param)) + "_splits";
}
INSTANTIATE_TEST_SUITE_P(All, FeatureFaultTest,
                         testing::Combine(testing::ValuesIn(faults), testing::ValuesIn(all_dtypes),
                                          testing::Values(1, 3)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Fp8, FeatureFaultTest,
                         testing::Combine(testing::ValuesIn(fp8_faults),
                                          testing::Values(Dtype::fp8_e4m3, Dtype::fp8_e5m2), testing::Values(1, 3)),
                         name_of);

TEST_P(FeatureFaultTest, IsSeen) {
  const auto& [planted, dtype, num_splits] = GetParam();
  Case c;
  c.problem = small_problem(40, 128, 32, 32, dtype);
  c.problem.nheads = 2;
  planted.feature(c.problem);
  const Inputs inputs = make_inputs(c);
  EmulatedKernel kernel;
  kernel.dtype = dtype;
  kernel.tile = 32;
  kernel.num_splits = num_splits;
  const Truth truth = forward_with_budget(c.problem, inputs, kernel.numerics(), true);
  const Verdict right = compare(c.problem, truth, kernel.run(c.problem, inputs));
  EXPECT_EQ(right.status, Status::passed) << right.detail;
  kernel.fault = planted.fault;
  const Verdict wrong = compare(c.problem, truth, kernel.run(c.problem, inputs));
  EXPECT_EQ(wrong.status, Status::wrong_values) << wrong.detail;
  RecordProperty("over_budget", std::to_string(wrong.error_over_budget));
  std::cout << "  " << wrong.detail.substr(0, 120) << "\n";
}

// A score of -Inf weighs nothing, a row of nothing else is an empty one, and a row of lowest finite numbers averages V.
TEST(FeatureBudgetTest, BiasesThatMaskWholeRows) {
  for (const Dtype dtype : all_dtypes) {
    Case c;
    c.problem = small_problem(3, 20, 16, 16, dtype);
    c.problem.bias = Bias::qk;
    Inputs in = make_inputs(c);
    const double lowest = dtype == Dtype::fp16 ? -65504 : -0x1.fep127;
    for (std::int64_t j = 0; j < 20; ++j) {
      in.bias.at(0, 0, 0, j) = -INFINITY;
      in.bias.at(0, 0, 1, j) = lowest;
      if (j % 2) in.bias.at(0, 0, 2, j) = j % 4 == 1 ? -INFINITY : lowest;
    }
    const EmulatedKernel kernel{.dtype = dtype, .tile = 16};
    const Truth truth = forward_with_budget(c.problem, in, kernel.numerics(), true);
    EXPECT_EQ(truth.forward.lse.values[0], -INFINITY);
    for (std::int64_t d = 0; d < 16; ++d) {
      EXPECT_EQ(truth.forward.o.at(0, 0, 0, d), 0);
      EXPECT_EQ(truth.o_bound.at(0, 0, 0, d), 0);
      EXPECT_TRUE(std::isfinite(truth.o_bound.at(0, 1, 0, d)));
      EXPECT_LT(truth.o_bound.at(0, 2, 0, d), is_fp8(dtype) ? 1 : 0.1);  // what is masked widens nothing
    }
    const Outputs outputs = kernel.run(c.problem, in);
    const Verdict right = compare(c.problem, truth, outputs);
    EXPECT_EQ(right.status, Status::passed) << right.detail;
    Outputs nan = outputs;  // what a mask added before the product with log2(e) gives (pytorch#109517)
    nan.o.at(0, 1, 0, 0) = NAN;
    EXPECT_EQ(compare(c.problem, truth, nan).rule, "nan");
  }
}

// Rows past a batch entry's length may hold anything.
TEST(FeatureBudgetTest, RowsPastTheLengthAreNotCompared) {
  Case c;
  c.problem = small_problem(6, 20, 16, 16);
  c.problem.batch = 2;
  c.problem.varlen_q = {6, 2};
  const Inputs in = make_inputs(c);
  const EmulatedKernel kernel;
  const Truth truth = forward_with_budget(c.problem, in, kernel.numerics(), true);
  Outputs outputs = kernel.run(c.problem, in);
  outputs.o.at(1, 2, 0, 3) = NAN;
  outputs.o.at(1, 5, 0, 3) = 1e30;
  outputs.lse->at(1, 0, 2, 0) = -7;
  EXPECT_EQ(compare(c.problem, truth, outputs).status, Status::passed);
  outputs.lse->at(1, 0, 1, 0) += 1;
  EXPECT_EQ(compare(c.problem, truth, outputs).status, Status::wrong_values);
  outputs.o.at(1, 1, 0, 3) = NAN;
  EXPECT_EQ(compare(c.problem, truth, outputs).rule, "nan");
}

TEST(FeatureBudgetTest, VisibleKeysInSeveralRanges) {
  Case c;
  c.problem = small_problem(4, 20, 16, 16);
  c.problem.prefix = 2;
  c.problem.window_left = c.problem.window_right = 1;
  const Inputs in = make_inputs(c);
  const EmulatedKernel kernel;
  const Truth truth = forward_with_budget(c.problem, in, kernel.numerics(), false);
  Outputs outputs = kernel.run(c.problem, in);
  outputs.o.at(0, 2, 0, 3) += 1;
  EXPECT_EQ(compare(c.problem, truth, outputs).visible_keys, "0-1, 17-19");
}

TEST(FeatureBudgetTest, NothingToCompareIsNoNan) {
  Case c;
  c.problem = small_problem(0, 4, 16, 16);
  const Inputs in = make_inputs(c);
  const EmulatedKernel kernel;
  const Truth truth = forward_with_budget(c.problem, in, kernel.numerics(), true);
  const Verdict verdict = compare(c.problem, truth, kernel.run(c.problem, in));
  EXPECT_EQ(verdict.status, Status::passed);
  EXPECT_EQ(verdict.rule, "kinds");
}

}  // namespace
}  // namespace attest
