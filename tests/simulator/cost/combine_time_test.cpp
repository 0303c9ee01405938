// combine(), against its machine code, bench/hardware/combine_path.py, and an H200's counters.
#include "combine_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "attest/plan/combine_shape.h"
#include "attest/problem/file.h"
#include "attest/simulator/measured_call.h"
#include "attest/simulator/report.h"
#include "attest/simulator/step_time.h"
#include "measured_rows.h"

namespace attest {
namespace {

TEST(CombineTime, ItsCodeIsTheFiles) {
  const std::map<std::string, CombineCode> parts = {
      {"row", combine_row}, {"turn", combine_turn}, {"weights", combine_weights}};
  int rows = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_MEASURED "/combine_paths.csv")) {
    const std::string& name = row.at("part");
    const CombineCode& part = parts.at(name);
    EXPECT_EQ(part.instructions, std::stod(row.at("instructions"))) << name;
    EXPECT_EQ(part.cycles, std::stod(row.at("cycles"))) << name;
    EXPECT_EQ(part.waits, std::stod(row.at("waits"))) << name;
    EXPECT_EQ(name == "row" ? combine_argument_lines : 0, std::stoi(row.at("argument_lines"))) << name;
    ++rows;
  }
  EXPECT_EQ(rows, 2 * 3);  // of bf16 and fp16
}

// As parts of all that the call's two kernels write.
TEST(CombineTime, LseOfWarpsThatGoTogetherLeavesTogether) {
  const DeviceSpec device = load_device("h200");
  double of_ctas_alone = 0, of_others = 0;
  int alone = 0, together = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_SM "/combine_lse.csv")) {
    const auto number = [&](const char* name) { return std::stoll(row.at(name)); };
    Case c;
    Problem& p = c.problem;
    p.batch = number("batch"), p.nheads = number("nheads"), p.nheads_k = number("nheads_k");
    p.seqlen_q = number("seqlen_q"), p.seqlen_k = number("seqlen_k");
    p.headdim = p.headdim_v = 128;
    c.num_splits = number("num_splits");
    const std::int64_t rows = p.batch * p.nheads * p.seqlen_q, output = rows * p.headdim_v * 2;
    const double counted = static_cast<double>(number("sm_write_bytes") - output) / 32;
    KernelPlan plan = plan_named("attest", c, device);
    plan.num_splits = static_cast<int>(c.num_splits);
    const std::int64_t sectors = combined_lse_sectors(c, plan, device, std::stod(row.at("ctas")));
    const double partial = static_cast<double>(c.num_splits * rows) * (4.0 * static_cast<double>(p.headdim_v) + 4);
    const double off = 32 * std::abs(static_cast<double>(sectors) - counted) / (partial + static_cast<double>(output));
    std::printf("%5ld CTAs, %2ld splits, %5ld rows: %5ld of %6.1f sectors, %.2f%% of the call's\n",
                static_cast<long>(number("ctas")), static_cast<long>(c.num_splits), static_cast<long>(rows),
                static_cast<long>(sectors), counted, 100 * off);
    double& most = number("ctas") <= device.num_sms ? of_ctas_alone : of_others;
    most = std::max(most, off);
    alone += number("ctas") <= device.num_sms, together += sectors < rows;
  }
  EXPECT_EQ(alone, 34);
  EXPECT_EQ(together, 29);
  EXPECT_LE(of_ctas_alone, 0.0014);  // 12 splits, of whose warps two thirds go together
  EXPECT_LE(of_others, 0.0097);      // two CTAs an SM
}

double mean_of(const std::vector<MeasuredRow>& rows, const std::string& column) {
  double sum = 0;
  for (const MeasuredRow& row : rows) sum += std::stod(row.at(column));
  return sum / static_cast<double>(rows.size());
}

// Cycles of a CTA alone, and where its parts are from.
TEST(CombineTime, IsWhatItsWarpsExecuteAndWaitFor) {
  const DeviceSpec device = load_device("h200");
  const auto first_uses = [&](const std::string& what, const char* uses, const char* stride) {
    std::vector<MeasuredRow> rows = measured_rows(ATTEST_H200_SM "/first_use.csv");
    std::erase_if(rows, [&](const MeasuredRow& row) {
      return row.at("what") != what || row.at("uses") != uses || row.at("stride") != stride ||
             (row.at("ctas") != "32" && row.at("ctas") != "64");
    });
    return mean_of(rows, "first");
  };
  const auto cycles = [&](int splits, double from_dram = 0) {
    return combine_cycles({1, splits, 0, from_dram}, device);
  };
  const double in_l2 = first_uses("lines in L2", "2", "4224"), in_dram = first_uses("lines in DRAM", "2", "4224"),
               wait = in_l2 - cycles_from_l1(device);
  const auto near = [](double x) { return 0.02 * x; };
  const double turn = combine_turn.cycles + combine_turn.waits * wait;
  EXPECT_NEAR(cycles(8) - cycles(4), turn, near(turn));
  EXPECT_NEAR(cycles(5) - cycles(4), turn, near(turn));
  EXPECT_NEAR(cycles(33) - cycles(32), turn + combine_weights.cycles, near(turn));
  const double from_dram = (1 + combine_turn.waits) * (in_dram - in_l2);
  EXPECT_NEAR(cycles(4, 1) - cycles(4), from_dram, 0.03 * from_dram);  // of two lines L2's are 2% longer
  const double a_tenth = 1 - std::pow(0.9, 16.0 / 3);  // of four splits' lines one of those that are waited for
  EXPECT_NEAR(cycles(8, 0.1) - cycles(4, 0.1) - (1 - std::pow(0.9, 8) - (1 - std::pow(0.9, 4))) * from_dram / 4,
              turn + a_tenth * combine_turn.waits * from_dram / 4, near(turn));
  // a warp's lanes load 32 LSE together, and those of further splits behind a hit
  const double of_first = cycles(32, 0.01) - cycles(4, 0.01), of_more = cycles(64, 0.01) - cycles(36, 0.01);
  const double one_wait = (cycles(4, 1) - cycles(4)) / (1 + combine_turn.waits);
  EXPECT_NEAR(of_first - of_more, (std::pow(0.99, 4) - std::pow(0.99, 32)) * one_wait, 1e-6);
  const double line = (first_uses("arguments", "12", "64") - first_uses("arguments", "4", "64")) / 8;
  const double begun = launch_cycles(1, device);
  // of LSE's loads the first alone is far
  const double alone = (combine_argument_lines - 2) * line + combine_row.cycles + combine_weights.cycles + turn + wait;
  EXPECT_NEAR(cycles(4) - begun, alone, near(alone));
  EXPECT_EQ(combine_cycles({}, device), 0);
}

// Each SM's first adds its start; then a CTA more on an SM is so many slots more of each scheduler, or a wave where no
// more fit.
TEST(CombineTime, CtasShareIssueAndPlace) {
  DeviceSpec device = load_device("h200");
  const auto sms = static_cast<double>(device.num_sms);
  constexpr double slots = combine_row.instructions + combine_weights.instructions + combine_turn.instructions;
  const auto of_sm = [&](double n) { return combine_cycles({n * sms, 4, 0, 0}, device); };
  EXPECT_NEAR(of_sm(1) - combine_cycles({1, 4, 0, 0}, device), (sms - 1) * device.cta_start_cycles, 1e-6);
  EXPECT_NEAR(of_sm(7) - of_sm(1), 6 * slots, 1e-6);
  EXPECT_NEAR(of_sm(16) - of_sm(1), 15 * slots, 1e-6);
  EXPECT_EQ(of_sm(1.01), of_sm(2));
  const double begun = launch_cycles(sms, device), alone = of_sm(1) - begun;
  DeviceSpec slow = device;  // 40 registers let 12 stand together
  slow.l2_latency_cycles = 1e6;
  EXPECT_NEAR(combine_cycles({12 * sms, 4, 0, 0}, slow) - combine_cycles({sms, 4, 0, 0}, slow), 11 * slots, 1e-6);
  EXPECT_GT(combine_cycles({13 * sms, 4, 0, 0}, slow), 1.9 * combine_cycles({sms, 4, 0, 0}, slow));
  device.max_ctas_per_sm = 2;
  EXPECT_NEAR(of_sm(2), begun + alone + slots, 1e-6);
  EXPECT_NEAR(of_sm(5), begun + 3 * alone + 2 * device.cta_launch_cycles, 1e-6);
  device.warp_schedulers_per_sm = 1;
  EXPECT_NEAR(of_sm(2) - of_sm(1), 4 * slots, 1e-6);
  const double bytes = 1e9;  // more than latencies hide
  EXPECT_NEAR(combine_cycles({1, 4, bytes, 0}, device) - launch_cycles(1, device),
              bytes / device.l2_bytes_per_second * device.sm_clock_hz, 1);
}

/// A launch, and what was predicted over what was counted of it, as reached.
struct Launch {
  int ctas, splits;
  double reached;
};

void hold(const char* file, const std::vector<Launch>& launches) {
  const DeviceSpec device = load_device("h200");
  auto row = launches.begin();
  for (const MeasuredCall& call : measured_from_csv(read_file("launches", file, 8 << 20), file).calls) {
    if (call.c.num_splits == 1) continue;
    ASSERT_EQ(call.launches.size(), 2u);
    ASSERT_NE(row, launches.end());
    const auto& counters = call.launches[1].counters;
    EXPECT_EQ(counters.at("launch__grid_size"), row->ctas);
    EXPECT_EQ(call.c.num_splits, row->splits);
    EXPECT_EQ(counters.at("launch__block_size"), 32 * combine_rows);
    EXPECT_EQ(counters.at("launch__registers_per_thread"), combine_registers);
    const SimulationReport r = simulate(call.c, plan_named("attest", call.c, device), device, "attest");
    const double predicted = combine_cycles(combine_work(call.c.problem, r.plan, r.walk), device);
    const double counted = counters.at("sm__cycles_elapsed.max");
    std::printf("%4d CTAs, %2d splits: %6.0f cycles, %.3f of those counted\n", row->ctas, row->splits, predicted,
                predicted / counted);
    EXPECT_NEAR(predicted / counted, row->reached, 0.005);
    ++row;
  }
  EXPECT_EQ(row, launches.end());
}

TEST(CombineTime, LaunchesOfThePanel) {
  hold(ATTEST_MEASURED "/h200_panel.csv", {{64, 8, 0.916}, {32, 16, 0.972}, {2048, 4, 0.935}});
}

// Counted to see what the panel's three launches lack; two splits go through a loop that is not unrolled.
TEST(CombineTime, LaunchesOfMoreShapes) {
  hold(ATTEST_MEASURED "/h200_splits.csv", {{16, 4, 0.932},
                                            {16, 16, 0.959},
                                            {32, 64, 0.999},
                                            {128, 4, 0.906},
                                            {512, 4, 1.0},
                                            {1024, 4, 0.952},
                                            {2048, 4, 0.925},
                                            {2048, 8, 0.921},
                                            {4096, 2, 1.023},
                                            {2048, 4, 0.951},
                                            {1024, 4, 0.946},
                                            {16, 32, 0.980},
                                            {32, 8, 0.918}});
}

}  // namespace
}  // namespace attest
