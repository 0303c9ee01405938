// What gpu/sm80's kernels execute beside what a plan implies, against their machine code:
// bench/hardware/kernel_paths.py.
#include "kernel_code.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "attest/plan/sm80_tiles.h"
#include "attest/simulator/plan_file.h"
#include "attest/simulator/report.h"
#include "attest/simulator/step_time.h"
#include "measured_rows.h"

namespace attest {
namespace {

using Parts = std::map<std::string, CodeTime>;

/// By tile and kind, in bf16.
std::map<std::pair<int, int>, Parts> kernels() {
  std::map<std::pair<int, int>, Parts> all;
  for (const MeasuredRow& row : measured_rows(ATTEST_MEASURED "/kernel_paths.csv")) {
    const std::string& kernel = row.at("kernel");
    if (kernel.find("5DtypeE1E") == std::string::npos) continue;
    const auto digit_after = [&](std::string_view name) { return kernel[kernel.find(name) + name.size()] - '0'; };
    all[{digit_after("Sm80TileE"), digit_after("Sm80KindE")}][row.at("part")] = {
        std::stod(row.at("instructions")), std::stod(row.at("cycles")), std::stod(row.at("jumps"))};
  }
  return all;
}

void expect_near(const CodeTime& time, const CodeTime& code, double within) {
  EXPECT_NEAR(time.instructions / code.instructions, 1, within);
  EXPECT_NEAR(time.cycles / code.cycles, 1, within);
  EXPECT_NEAR(time.jumps, code.jumps, 14);
}

TEST(KernelCode, IsTheKernelsMachineCode) {
  const auto all = kernels();
  ASSERT_EQ(all.size(), 11u);
  for (const auto& [kernel, parts] : all) {
    const auto tile = static_cast<Sm80Tile>(kernel.first);
    const auto kind = static_cast<Sm80Kind>(kernel.second);
    SCOPED_TRACE(testing::Message() << "tile " << kernel.first << ", kind " << kernel.second);
    KernelPlan plan = with_words_of(sm80_plan(tile), kind);
    const CodeTime &before = parts.at("before"), &after = parts.at("after");
    const CodeTime around{before.instructions + after.instructions, before.cycles + after.cycles,
                          before.jumps + after.jumps};
    expect_near(code_around_tiles(plan), around, 0.20);
    if (kind == Sm80Kind::fast) {
      plan.alibi = plan.softcap = true;
      EXPECT_EQ(waits_of(code_of_tile(plan)), 0);
      EXPECT_EQ(code_of_scores(plan).instructions, 0);
      EXPECT_EQ(code_of_masks(plan, true).instructions, 0);
      continue;
    }
    EXPECT_EQ(code_of_scores(plan).instructions, 0);
    const auto scores = [&](bool softcap, bool alibi, bool bias) {
      KernelPlan modifies = plan;
      modifies.softcap = softcap, modifies.alibi = alibi, modifies.bias = bias;
      return code_of_scores(modifies);
    };
    EXPECT_NEAR(waits_of(code_of_tile(plan)) / (4.7 + 9.5), parts.at("alike").jumps + 1, 1.1);
    expect_near(scores(true, false, false), parts.at("softcap"), 0.11);
    expect_near(scores(false, true, false), parts.at("alibi"), 0.08);
    expect_near(scores(false, false, true), parts.at("bias"), 0.12);
    expect_near(code_of_masks(plan, true), parts.at("mask"), 0.15);
  }
}

// What is not issued is waited for.
TEST(KernelCode, TakesIssueSlotsAndWaits) {
  const DeviceSpec device = load_device("h200");
  KernelPlan plan = with_words_of(sm80_plan(Sm80Tile::d128), Sm80Kind::general);
  Counts counts;
  counts.key_tiles = 4;
  counts.masked_key_tiles = 1;
  const StepDemand plain = step_demand(plan, device, counts, 0);
  plan.alibi = true;
  const StepDemand alibi = step_demand(plan, device, counts, 0);
  const CodeTime code = code_of_scores(plan);
  EXPECT_NEAR(alibi.issue - plain.issue, code.instructions, 1e-9);
  EXPECT_NEAR(alibi.waits - plain.waits, waits_of(code), 1e-9);
  DeviceSpec slow = device;
  slow.kernel_code_scale = 3;
  const double masked = code_of_masks(plan, false).instructions / 4;  // of one key tile in four
  EXPECT_NEAR(step_demand(plan, slow, counts, 0).issue - alibi.issue, 2 * (code.instructions + masked), 1e-9);
  const StepDemand segments = step_demand(plan, device, counts, 0, {false, true});
  const CodeTime simple = code_of_masks(plan, false), of_segments = code_of_masks(plan, true);
  EXPECT_NEAR(segments.issue - alibi.issue, (of_segments.instructions - simple.instructions) / 4, 1e-9);
  EXPECT_NEAR(segments.waits - alibi.waits, (waits_of(of_segments) - waits_of(simple)) / 4, 1e-9);
}

// Its multiple is of kernels with mma.sync.
TEST(KernelCode, MovesTheTimeOfKernelsWithMmaSync) {
  Case c;
  c.problem.seqlen_q = c.problem.seqlen_k = 256;
  for (const auto& [plan, device, moves] :
       {std::tuple{"attest", "h200", true}, {"attest", "a100", true}, {"fa2", "a100", true}, {"fa3", "b200", false}}) {
    const DeviceSpec on = load_device(device);
    const SimulationReport r = simulate(c, load_plan(plan, c, on).plan, on, plan);
    const double slower = simulate(c, r.plan, *device_scaled(on, "kernel_code_scale", 2), plan).cycles;
    EXPECT_EQ(slower > r.cycles, moves) << plan << " on " << device;
  }
}

}  // namespace
}  // namespace attest
