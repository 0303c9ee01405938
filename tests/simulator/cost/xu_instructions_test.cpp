// Instructions of the exponentials' unit in calls that neither a panel nor another kernel's rows have.
#include <gtest/gtest.h>

#include <algorithm>

#include "attest/problem/file.h"
#include "attest/simulator/comparison.h"
#include "attest/simulator/measured_call.h"
#include "attest/simulator/report.h"

namespace attest {
namespace {

// 2 to 64 splits, of packed heads and not, with what combines them.
TEST(XuInstructions, CallsInSplitsToTheDigit) {
  const std::string path = ATTEST_MEASURED "/h200_splits.csv";
  const DeviceSpec h200 = load_device("h200");
  int calls = 0, of_more_than_a_warp = 0;
  const MeasuredFile counted = measured_from_csv(read_file("splits", path, 8 << 20), path);
  for (const MeasuredCall& call : counted.calls) {
    const Comparison compared = compare(call, h200, nullptr, counted.how);
    const auto xu = std::find_if(compared.figures.begin(), compared.figures.end(),
                                 [](const ComparedFigure& f) { return f.name == "xu_instructions"; });
    ASSERT_NE(xu, compared.figures.end());
    EXPECT_EQ(xu->predicted, xu->measured) << command_line(call.c);
    ++calls;
    of_more_than_a_warp += call.c.num_splits > 32;
  }
  EXPECT_EQ(calls, 13);
  EXPECT_GT(of_more_than_a_warp, 0);
}

double of_plan(const Case& c, const char* plan, const char* device) {
  const DeviceSpec d = load_device(device);
  return simulate(c, plan_named(plan, c, d), d, plan).xu_instructions;
}

// A sink adds two exponentials to each of a lane's rows; before compute capability 9.0 ALiBi has a conversion a score.
TEST(XuInstructions, OfWhatCasesAskFor) {
  Case c;
  c.problem.nheads = c.problem.nheads_k = 4;
  c.problem.seqlen_q = c.problem.seqlen_k = 1024;
  c.problem.headdim = c.problem.headdim_v = 128;
  c.problem.dtype = Dtype::bf16;
  const double plain = of_plan(c, "attest", "h200"), scores = 4.0 * 1024 * 1024 / 32;
  EXPECT_EQ(plain, scores + 3.0 * 4 * 1024 / 8);  // an exponential, a logarithm and a reciprocal for 8 rows each
  Case sink = c, alibi = c;
  sink.problem.sink = true;
  EXPECT_EQ(of_plan(sink, "attest", "h200") - plain, 2.0 * 4 * 1024 / 8);
  alibi.problem.alibi = true;
  EXPECT_EQ(of_plan(alibi, "attest", "h200"), plain);
  EXPECT_EQ(of_plan(alibi, "attest", "a100") - of_plan(c, "attest", "a100"), scores);
}

// A name changes nothing: plan files may have any.
TEST(XuInstructions, HangOnThePlanAndNotOnItsName) {
  Case c;
  c.problem.seqlen_q = c.problem.seqlen_k = 512;
  c.problem.headdim = c.problem.headdim_v = 128;
  const DeviceSpec h200 = load_device("h200");
  const KernelPlan plan = plan_named("cudnn", c, h200);
  EXPECT_EQ(simulate(c, plan, h200, "another").xu_instructions, simulate(c, plan, h200, "cudnn").xu_instructions);
}

}  // namespace
}  // namespace attest
