// What kernels of the panel's calls execute, wait for and write, launch by launch, beside counters and samples.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "attest/problem/file.h"
#include "attest/simulator/case_counts.h"
#include "attest/simulator/comparison.h"
#include "attest/simulator/report.h"
#include "attest/simulator/step_time.h"
#include "attest/simulator/unfused.h"
#include "compiled_registers.h"
#include "copy_time.h"
#include "kernel_code.h"
#include "measured_rows.h"
#include "missing_words.h"
#include "panel_goals.h"

namespace attest {
namespace {

// S, P and O, and the sums that products keep in local memory: what SMs write. Those of 28 MB are in L2 at the end.
TEST(Panel, UnfusedKernelsWriteTheirSumsToo) {
  const DeviceSpec h200 = load_device("h200");
  int calls = 0, large = 0;
  for (const MeasuredCall& call : counted_file(ATTEST_H200_MEASURE "/panel_placed.csv").calls) {
    if (call.kernel != "unfused") continue;
    SCOPED_TRACE(command_line(call.c));
    const UnfusedCost cost =
        unfused_cost(call.c.problem, h200, own_unfused(call.c.problem), call.dirty_bytes_before(Profiler::cupti));
    ASSERT_EQ(call.launches.size(), cost.steps.size());
    for (std::size_t i = 0; i < cost.steps.size(); ++i) {
      const auto counted = [&](const char* counter) { return call.launches[i].counters.at(counter); };
      EXPECT_EQ(cost.steps[i].local_bytes, 32 * counted("l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"));
      const double written = cost.steps[i].result_bytes + cost.steps[i].local_bytes;
      EXPECT_NEAR(written / counted("l1tex__m_l1tex2xbar_write_bytes.sum"), 1, 0.006);
      std::printf("%-15s DRAM read %7.2f of %7.2f MB, written %7.2f of %7.2f\n",
                  std::string(cost.steps[i].name).c_str(), cost.steps[i].dram_read_bytes / 1e6,
                  counted("dram__bytes_read.sum") / 1e6, cost.steps[i].dram_write_bytes / 1e6,
                  counted("dram__bytes_write.sum") / 1e6);
    }
    ++calls;
    if (cost.matrix_bytes < 1e8) continue;
    ++large;
    EXPECT_NEAR(cost.dram_read_bytes / *call.sum("dram__bytes_read.sum"), 1, 0.035);
    EXPECT_NEAR(cost.dram_write_bytes / *call.sum("dram__bytes_write.sum"), 0.98, 0.02);
  }
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(large, 3);
}

// Products take a tenth more than their instructions say: loads of shared memory by generic addresses. Softmax, which
// the ALU binds, takes up to 2% more, of 1024 CTAs 11%.
TEST(Panel, UnfusedKernelsTakeWhatTheirInstructionsSay) {
  const DeviceSpec h200 = load_device("h200");
  const std::vector<double> errors = {0.081, 0.01, 0.01, 0.16, 0.13, 0.01, 0.14, 0.014, 0.08, 0.12, 0.02, 0.04};
  std::size_t launches = 0;
  for (const MeasuredCall& call : counted_file(ATTEST_H200_MEASURE "/panel_placed.csv").calls) {
    if (call.kernel != "unfused") continue;
    const UnfusedCost cost = unfused_cost(call.c.problem, h200, own_unfused(call.c.problem));
    for (std::size_t i = 0; i < cost.steps.size(); ++i) {
      const UnfusedKernel& step = cost.steps[i];
      const double counted = call.launches[i].counters.at("sm__cycles_elapsed.max"), ratio = step.cycles / counted;
      const double tensor = step.utilisation[0].fraction * step.cycles,
                   active =
                       call.launches[i].counters.at("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed") /
                       100 * counted;
      std::printf("%-15s %9.0f of %9.0f cycles, %.3f, bound by %s; tensor pipe %6.0f of %6.0f\n",
                  std::string(step.name).c_str(), step.cycles, counted, ratio, step.bound.c_str(), tensor, active);
      EXPECT_NEAR(ratio, 1, errors.at(launches)) << step.name << command_line(call.c);
      EXPECT_NEAR(tensor, active, 0.06 * active + 1) << step.name << command_line(call.c);
      ++launches;
    }
  }
  EXPECT_EQ(launches, errors.size());
}

/// By samples of a launch: cycles that its warps wait for `reason`, all together.
double sampled_cycles(const MeasuredRow& row, const char* reason) {
  return std::stod(row.at("instructions")) * std::stod(row.at(reason));
}

// What samples have a warp of the kernel that spills wait for loads, a key tile: half of it alone, the rest beside
// others.
TEST(Panel, WarpsThatSpillWaitAsSampled) {
  const DeviceSpec h200 = load_device("h200");
  int launches = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_MEASURED "/h200_stalls.csv")) {
    if (row.at("mechanism") != "forced spill") continue;
    const Case c = case_from_json_text(row.at("case"));
    const KernelPlan plan = plan_named("sm80-spill", c, h200);
    const Problem& p = c.problem;
    const std::int64_t tiles = p.batch * p.nheads * (p.seqlen_q / plan.tile_m) * (p.seqlen_k / plan.tile_n);
    const double sampled = sampled_cycles(row, "long_scoreboard") / static_cast<double>(tiles * plan.num_warps);
    const FramePlaces places{MemoryMap(h200), compiled_frame(plan, "sm80-spill", c, h200).value().words};
    const SpillCycles times{.key_tile = 11'000, .around = 4300, .between = 19};
    const double alone = missing_words(simulate(c, plan, h200, "sm80-spill"), 0, 2, false, places, times).waits;
    std::printf("%4ld keys: %.0f of %.0f cycles\n", static_cast<long>(p.seqlen_k), alone, sampled);
    EXPECT_NEAR(alone / sampled, 0.53, 0.06);
    ++launches;
  }
  EXPECT_EQ(launches, 2);
}

// Of a warp's key tile: what it executes, and by which causes a profile's samples have it wait, beside the model's
// cycles and what of them it waits for at no resource. What is around key tiles is in all of them.
TEST(Panel, WarpsExecuteAsCounted) {
  const DeviceSpec h200 = load_device("h200");
  std::printf(
      "instructions, predicted of counted; sampled cycles = issue and control words + pipes and other warps + "
      "loads + jumps and code + barriers; predicted cycles, of which waits\n");
  int launches = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_MEASURED "/h200_stalls.csv")) {
    if (row.at("kernel") == "unfused" || row.at("launch") != "0") continue;
    const Case c = case_from_json_text(row.at("case"));
    const std::string name = row.at("kernel") == "sm80" ? "attest" : row.at("kernel");
    const SimulationReport r = simulate(c, plan_named(name, c, h200), h200, name);
    const CodeTime around = code_around_tiles(r.plan);
    const CopyTime queries = copy_time(r.plan, h200, Operand::q, false);
    const StepDemand demand = step_demand(r.plan, h200, count_case(c, r.plan), r.registers.spill_words, parts_of(c));
    const double tiles = static_cast<double>(r.walk.key_tiles), ctas = static_cast<double>(r.walk.ctas) / tiles;
    const double counted = std::stod(row.at("instructions")) / tiles / r.plan.num_warps;
    const double executed = demand.issue + ctas * (around.instructions + queries.instructions);
    const auto sampled = [&](std::initializer_list<const char*> causes) {
      double sum = 0;
      for (const char* cause : causes) sum += counted * std::stod(row.at(cause));
      return sum;
    };
    const double issued = sampled({"selected", "wait"}),
                 pipes =
                     sampled({"math_pipe_throttle", "not_selected", "dispatch_stall", "mio_throttle", "lg_throttle"}),
                 loads = sampled({"short_scoreboard", "long_scoreboard"}),
                 code = sampled({"branch_resolving", "no_instruction"}), barriers = sampled({"barrier"});
    std::printf("%-12s %3ld %5ld keys: %5.0f of %5.0f; %6.0f = %5.0f + %4.0f + %5.0f + %5.0f + %4.0f; %6.0f, %5.0f\n",
                row.at("mechanism").c_str(), static_cast<long>(c.problem.headdim),
                static_cast<long>(c.problem.seqlen_k), executed, counted, issued + pipes + loads + code + barriers,
                issued, pipes, loads, code, barriers,
                r.walk_options.cycles_per_key_tile.back() + ctas * r.walk_options.cycles_per_cta,
                r.walk_options.waits_per_key_tile.back());
    EXPECT_GT(executed / counted,
              r.plan.num_warps == 1 ? 0.80 : 0.84);  // decoding's copies have addresses of their own
    EXPECT_LT(executed / counted, 1.03);
    ++launches;
  }
  EXPECT_EQ(launches, 20);
}

// What a profiler counted of two of the calls, kernel by kernel. O of 64 columns is half a tile, where a warp's lanes
// part as they copy V; the others are whole tiles and walk the one path.
TEST(Panel, UnfusedKernelsExecuteWhatTheirPathsSay) {
  const DeviceSpec h200 = load_device("h200");
  int launches = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_MEASURED "/h200_stalls.csv")) {
    if (row.at("mechanism") != "unfused") continue;
    const Problem p = case_from_json_text(row.at("case")).problem;
    const UnfusedKernel step = unfused_cost(p, h200, own_unfused(p)).steps[std::stoul(row.at("launch"))];
    const auto issue = std::find_if(step.utilisation.begin(), step.utilisation.end(),
                                    [](const Utilisation& u) { return u.resource == "issue"; });
    const double slots = step.cycles * 132 * 4, executed = std::stod(row.at("instructions"));
    const bool whole = step.name != "O = P V" || p.headdim_v % 128 == 0;
    EXPECT_NEAR(issue->fraction * slots / executed, 1, whole ? 0.004 : 0.1) << step.name;
    ++launches;
    if (step.name == "P = softmax(S)") continue;
    const bool scores = step.name == "S = Q K^T";
    const double columns = static_cast<double>(scores ? p.seqlen_k : p.headdim_v),
                 depth = static_cast<double>(scores ? p.headdim : p.seqlen_k);
    const double slices_of_warps =
        static_cast<double>(p.batch * p.nheads * p.seqlen_q) / 128 * std::ceil(columns / 128) * depth / 32 * 8;
    const auto a_slice = [&](const char* reason) { return sampled_cycles(row, reason) / slices_of_warps; };
    std::printf("%s of %ld keys: a warp waits %.0f cycles a slice for loads, %.0f at barriers\n",
                std::string(step.name).c_str(), static_cast<long>(p.seqlen_k), a_slice("long_scoreboard"),
                a_slice("barrier"));
  }
  EXPECT_EQ(launches, 6);
}

}  // namespace
}  // namespace attest
