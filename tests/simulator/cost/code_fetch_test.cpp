// What CTAs wait for their code, beside `walked_code` of an H200 and an H100.
#include "code_fetch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "attest/plan/catalog.h"
#include "attest/plan/launch.h"
#include "attest/problem/file.h"
#include "attest/simulator/case_counts.h"
#include "attest/simulator/report.h"
#include "attest/simulator/step_time.h"
#include "compiled_registers.h"
#include "kernel_code.h"
#include "measured_rows.h"

namespace attest {
namespace {

/// Cycles of a walk and of the turns in a loop behind it, by instructions walked and turns: of one SM, whose CTAs have
/// all that they ask for, and of all of them.
struct Round {
  double alone = 0, in_step = 0, apart = 0;
};
std::map<std::pair<int, int>, Round> rounds(const std::string& file) {
  std::map<std::pair<int, int>, Round> all;
  for (const MeasuredRow& row : measured_rows(file)) {
    Round& round = all[{std::stoi(row.at("instructions")), std::stoi(row.at("turns"))}];
    const bool apart = row.at("apart") == "1", one = row.at("sms") == "1";
    (one ? round.alone : apart ? round.apart : round.in_step) = std::stod(row.at("round_cycles"));
  }
  return all;
}

void expect_waits(const char* name, const std::string& file) {
  const DeviceSpec device = load_device(name);
  double off = 0;
  int compared = 0;
  for (const auto& [call, round] : rounds(file)) {
    const auto [instructions, turns] = call;
    const double waits = code_wait_cycles(16.0 * instructions, round.alone, 2, device);
    const double ratio = (round.alone + waits) / round.apart;
    std::printf("%s, %3d KB walked, %2d turns behind: %6.0f cycles alone, %6.0f in step, %6.0f apart, predicted %.3f\n",
                name, instructions / 64, turns, round.alone, round.in_step, round.apart, ratio);
    EXPECT_NEAR(round.in_step / round.alone, 1, 0.23) << "CTAs in step share what they fetch";
    if (instructions < 4096) continue;  // what stays in the SM, and longer walks' rule does not have
    EXPECT_NEAR(ratio, 1, 0.15) << instructions << ", " << turns;
    off += std::abs(ratio - 1), ++compared;
  }
  EXPECT_EQ(compared, 21);
  EXPECT_LT(off / compared, 0.06);
}

TEST(CodeFetch, CtasWaitForTheirCodeAsMeasured) {
  expect_waits("h200", ATTEST_H200_SM "/walked_code.csv");
  expect_waits("h100", ATTEST_H100 "/walked_code.csv");
}

// A launch brings 64 KiB of code to each of eight GPCs (16,640 sectors, of a kernel of as much as of longer ones); of a
// longer kernel its CTAs have L2 asked for the rest of what they walk, from DRAM in a cold call: 9,000 to 32,000
// cycles, where calls of the fast kinds take 3,900 more at most.
TEST(CodeFetch, CodeBeyondTheFirst64KiBIsAskedForAsCounted) {
  const DeviceSpec h100 = load_device("h100");
  int longer = 0;
  double asked_off = 0, cycles = 0, predicted = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_H100 "/cold_code.csv")) {
    const Case c = case_from_json_text(row.at("case"));
    SCOPED_TRACE(command_line(c));
    const KernelPlan plan = with_features(plan_named("attest", c, h100), c);
    const KeyRuns runs = count_key_runs(c, plan);
    const StepDemand demand = step_demand(plan, h100, count_case(c, plan), 0, parts_of(c));
    const double fetched = fetched_code_bytes(demand, plan, h100, runs, parts_of(c).pages);
    const double all = compiled_code_bytes(plan, "attest", c, h100).value_or(0);
    const double asked = asked_code_bytes(all, fetched);
    const std::string &text = row.at("text_bytes"), &sectors = row.at("gcc_sectors");
    if (!text.empty()) {
      EXPECT_EQ(all, std::stod(text));
    }
    if (code_bytes(plan) > 0) {
      EXPECT_NEAR(code_bytes(plan) / all, 1, 0.07);
    }
    const std::int64_t ctas = c.problem.nheads;  // of 8 or more GPCs from 32 CTAs on
    if (!sectors.empty() && ctas >= 32) {
      const double counted = 32 * (std::stod(sectors) - 16'640) / 8;
      std::printf("%s: %.0f bytes asked for, %.0f predicted\n", command_line(c).c_str(), counted, asked);
      if (asked == 0) {
        EXPECT_EQ(counted, 0);
      } else {
        EXPECT_NEAR(asked / counted, 1, 0.21);
        asked_off += std::abs(asked / counted - 1), ++longer;
      }
    }
    const double cold = std::stod(row.at("cold_cycles")), warm = std::stod(row.at("warm_cycles"));
    if (asked > 0 && ctas <= 132) {
      std::printf("  cold %.0f cycles longer, %.0f predicted\n", cold - warm, cold_code_cycles(asked));
      cycles += cold - warm, predicted += cold_code_cycles(asked);
    }
  }
  EXPECT_EQ(longer, 15);
  EXPECT_LT(asked_off / longer, 0.12);
  EXPECT_NEAR(predicted / cycles, 1, 0.07);
}

TEST(CodeFetch, CodeThatAnSmKeepsIsNotWaitedFor) {
  const DeviceSpec h200 = load_device("h200");
  EXPECT_EQ(code_wait_cycles(16 << 10, 1e4, 2, h200), 0);
  EXPECT_EQ(code_wait_cycles(32 << 10, 1e4, 1, h200), 0);
  EXPECT_GT(code_wait_cycles(32 << 10, 1e4, 2, h200), 0);
  EXPECT_GT(code_wait_cycles(64 << 10, 1e4, 2, h200), code_wait_cycles(64 << 10, 1e5, 2, h200));
}

Case causal_case(std::int64_t keys) {
  Case c;
  c.problem.nheads = c.problem.nheads_k = 64;
  c.problem.seqlen_q = c.problem.seqlen_k = keys;
  c.problem.headdim = c.problem.headdim_v = 64;
  c.problem.causal = Causal::bottom_right;
  return c;
}

TEST(CodeFetch, CtasOfDifferentLengthsWalkApart) {
  Problem p = causal_case(1024).problem;
  const KernelPlan plan = fa2_plan(p, 227 << 10);
  EXPECT_TRUE(walk_apart(p, plan));
  p.seqlen_q = plan.tile_m;  // a CTA a head
  EXPECT_FALSE(walk_apart(p, plan));
  p.seqlen_q = 1024, p.window_left = 128;
  EXPECT_FALSE(walk_apart(p, plan));
  p.causal = Causal::none;  // keys from 128 before a query on
  EXPECT_TRUE(walk_apart(p, plan));
  p.window_left = -1, p.window_right = 0;  // causal by another name
  EXPECT_TRUE(walk_apart(p, plan));
  p.window_right = -1;
  EXPECT_FALSE(walk_apart(p, plan));
  p.prefix = 100;
  EXPECT_TRUE(walk_apart(p, plan));
}

// FlashAttention 2's n_masking_steps: the diagonal's key tiles, and one more where lengths are no whole tiles.
TEST(CodeFetch, MaskedStepsOfFlashAttention2) {
  const DeviceSpec h200 = load_device("h200");
  const auto steps = [&](Case c) { return plan_named("fa2", c, h200).masked_steps; };
  EXPECT_EQ(steps(causal_case(1024)), 1);
  EXPECT_EQ(steps(causal_case(1000)), 2);
  Case wide = causal_case(1024);
  wide.problem.headdim = wide.problem.headdim_v = 128;
  EXPECT_EQ(steps(wide), 2);
  wide.problem.seqlen_k = 1000;
  EXPECT_EQ(steps(wide), 3);
  wide.problem.causal = Causal::none;
  EXPECT_EQ(steps(wide), 1);
  wide.problem.seqlen_k = 1024;
  EXPECT_EQ(steps(wide), 0);
}

// Short causal calls wait for code, and those of a device that is fed it faster less; long ones hardly.
TEST(CodeFetch, ShortCausalCallsWait) {
  const DeviceSpec h200 = load_device("h200");
  DeviceSpec faster = h200;
  faster.code_bytes_per_clock = 1e6;
  const auto gain = [&](std::int64_t keys) {
    const Case c = causal_case(keys);
    const KernelPlan plan = plan_named("fa2", c, h200);
    return simulate(c, plan, h200, "fa2").cycles / simulate(c, plan, faster, "fa2").cycles;
  };
  EXPECT_GT(gain(1000), 1.15);
  EXPECT_LT(gain(8192), 1.03);
  Case full = causal_case(1000);
  full.problem.causal = Causal::none;
  const KernelPlan plan = plan_named("fa2", full, h200);
  EXPECT_EQ(simulate(full, plan, h200, "fa2").cycles, simulate(full, plan, faster, "fa2").cycles);
}

}  // namespace
}  // namespace attest
