// Key tiles of a CTA alone on its SM, each of whose warps has a scheduler to itself, off
// simulator/measured/warp_alone.csv.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <tuple>

#include "attest/plan/catalog.h"
#include "attest/plan/launch.h"
#include "attest/simulator/report.h"
#include "attest/simulator/step_time.h"
#include "compiled_plans.h"
#include "compiled_registers.h"
#include "measured_rows.h"
#include "step_demands.h"

namespace attest {
namespace {

// Of calls of as many CTAs and more and more key tiles what a key tile takes, which the walk has too: where K and V
// come from DRAM, and where L2 has them, counted when the model was as it is. By the network a key tile of a CTA alone
// takes 2,975 cycles at headdim 128, and 2,646 at headdim 192 wherever it comes from.
void expect_key_tiles(const char* name, const std::string& file, double each, double v_of_128, int beyond) {
  const DeviceSpec device = load_device(name);
  struct Call {
    double keys, cycles, predicted;
  };
  std::map<std::tuple<std::string, int, int, int, int>, std::pair<Call, Call>> calls;  // the shortest and the longest
  for (const MeasuredRow& row : measured_rows(file)) {
    const auto number = [&](const char* column) { return std::stoi(row.at(column)); };
    const bool warm = row.at("state") == "warm";
    if (number("softcap") != 0) continue;
    // of headdim 256 they are more than a side of L2 holds beside what the launch leaves there
    if (warm && number("headdim") == 256 && number("seqlen_k") == 1536) continue;
    Case c;
    c.problem = {1,
                 number("nheads"),
                 number("nheads"),
                 number("seqlen_q"),
                 number("seqlen_k"),
                 number("headdim"),
                 number("headdim_v"),
                 Dtype::bf16,
                 {},
                 number("causal") != 0 ? Causal::bottom_right : Causal::none,
                 -1,
                 -1};
    TileWalkOptions options;
    options.warm = warm;
    const SimulationReport r = simulate(c, plan_named("attest", c, device), device, "attest", options);
    const Call call{static_cast<double>(c.problem.seqlen_k), std::stod(row.at("cycles")), r.cycles};
    const auto [at, first] = calls.try_emplace(
        {row.at("state"), number("headdim"), number("headdim_v"), number("seqlen_q"), number("causal")}, call, call);
    if (call.keys < at->second.first.keys) at->second.first = call;
    if (call.keys > at->second.second.keys) at->second.second = call;
  }
  int most = 0;
  for (const auto& [key, ends] : calls) {
    const auto& [state, headdim, headdim_v, queries, causal] = key;
    const double tiles = (ends.second.keys - ends.first.keys) / 64;
    const double counted = (ends.second.cycles - ends.first.cycles) / tiles,
                 predicted = (ends.second.predicted - ends.first.predicted) / tiles;
    std::printf("%s, %s, headdim %3d/%3d, %3d queries%s: %5.0f of %5.0f cycles, %.3f\n", name, state.c_str(), headdim,
                headdim_v, queries, causal != 0 ? ", causal" : "", predicted, counted, predicted / counted);
    // from L2, 192 and 128 columns, where a tile's second phase is short: not known why
    EXPECT_NEAR(predicted / counted, 1, headdim != headdim_v && state == "warm" ? v_of_128 : each);
    most += std::abs(predicted / counted - 1) > 0.05 ? 1 : 0;
  }
  EXPECT_EQ(calls.size(), 23U);
  EXPECT_LE(most, beyond);
}

TEST(AloneTime, AKeyTileTakesWhatItsCodeDoes) {
  expect_key_tiles("h100", ATTEST_H100 "/alone.csv", 0.07, 0.13, 3);
  expect_key_tiles("h200", ATTEST_H200_SM "/alone.csv", 0.09, 0.15, 7);
}

/// Of two phases, of 500 and 900 cycles, in which copies are issued after 50 and 100.
StepDemand of_two_phases() {
  StepDemand d = demand_of(800, 300, 200);
  d.smem = 100, d.filled = 20;
  d.alone = {{500, 50, 0.75, 0.4}, {900, 100, 0.25, 0.6}};
  return d;
}

TEST(AloneTime, APhaseEndsWhenItsCopiesHaveLandedAndItsLoadsAreServed) {
  DeviceSpec device = load_device("h100");
  device.step_deviation_mma_sync_alone = 0;
  const KernelPlan plan = warps(4);
  StepDemand d = of_two_phases();
  const double from_l2 = cycles_from_l2(plan.tile_n, device), from_dram = cycles_from_dram(plan.tile_n, device);
  EXPECT_GT(from_l2 + 50, 500);
  EXPECT_LT(from_l2 + 100, 900);
  EXPECT_DOUBLE_EQ(cycles_per_key_tile(d, plan, device, 1), 50 + from_l2 + 900);
  EXPECT_DOUBLE_EQ(longer_from_dram(d, plan, device), 50 + from_dram + 100 + from_dram - (50 + from_l2 + 900));
  d.smem = 1020;  // of which 0.75 are loaded in the first phase, by four warps
  EXPECT_DOUBLE_EQ(cycles_per_key_tile(d, plan, device, 1), 4 * (750 + 8) + 4 * (250 + 12));
  d.smem = 100, d.behind_copies = 100;
  EXPECT_DOUBLE_EQ(cycles_per_key_tile(d, plan, device, 1), 50 + from_l2 + 900 + 60);
  d.waits = 70, d.masked = 0.5, d.masks = 80;
  EXPECT_DOUBLE_EQ(cycles_per_key_tile(d, plan, device, 1), 50 + from_l2 + 900 + 60 + 70 + 40);
}

// Copies and waits are as late for all warps alike; no key tile is faster than its pipes, or than L2.
TEST(AloneTime, TheSlowestWarpIsWaitedForWhereItExecutes) {
  DeviceSpec device = load_device("h100");
  const KernelPlan plan = warps(4);
  StepDemand d = of_two_phases();
  d.waits = 70, d.barriers = 1;
  const double from_l2 = cycles_from_l2(plan.tile_n, device);
  device.step_deviation_mma_sync_alone = 0;
  const double alike = cycles_per_key_tile(d, plan, device, 1);
  device.step_deviation_mma_sync_alone = 0.01;
  const double apart = cycles_per_key_tile(d, plan, device, 1);
  EXPECT_GT(apart, alike);
  EXPECT_NEAR((apart - 50 - from_l2 - 70) / 900, 1 + 0.01 * 1.03,
              1e-3);  // the largest of four is 1.03 deviations above
  d.tensor = 5000;
  EXPECT_DOUBLE_EQ(cycles_per_key_tile(d, plan, device, 1), 5000 + 70);
  d.l2 = 2000;
  EXPECT_DOUBLE_EQ(cycles_per_key_tile(d, plan, device, 1), 4 * 2000);
  EXPECT_EQ(longer_from_dram(d, plan, device), 0);
}

TEST(AloneTime, BesideOthersTheNetworkDecides) {
  const DeviceSpec device = load_device("h100");
  StepDemand known = of_two_phases(), unknown = known;
  unknown.alone.clear();
  for (const auto& [n, ctas] : {std::pair{4, 2}, {8, 1}, {1, 2}}) {
    EXPECT_EQ(cycles_per_key_tile(known, warps(n), device, ctas), cycles_per_key_tile(unknown, warps(n), device, ctas));
  }
  EXPECT_EQ(longer_from_dram(unknown, warps(4), device), 0);
  EXPECT_EQ(longer_from_dram(known, warps(8), device), 0);
}

// Of kernels whose tiles are as compiled, where nothing stands between them.
TEST(AloneTime, PhasesAreThoseOfTheKernelThatIsLaunched) {
  const auto phases = [](const Case& c, const char* name = "attest", const char* device = "h200") {
    return compiled_alone(with_features(plan_on(device, name, c), c), name, c, load_device(device));
  };
  const std::vector<AlonePhase> of_128 = phases(d128());
  ASSERT_EQ(of_128.size(), 1U);
  EXPECT_EQ(of_128[0].cycles, 2675);
  EXPECT_EQ(of_128[0].of_fragments, 1);
  Case wide = d128(), short_one = d128(), softcap = d128(), pages = d128(), documents = d128();
  wide.problem.headdim = wide.problem.headdim_v = 256;
  short_one.problem.seqlen_q = 1;
  softcap.problem.softcap = 30;
  pages.problem.seqlen_q = 1, pages.layout.page_size = 64;
  documents.problem.documents = {1024, 1024};
  ASSERT_EQ(phases(wide).size(), 2U);
  EXPECT_EQ(phases(wide)[0].of_fragments, 80 / 144.0);
  EXPECT_EQ(phases(short_one).size(), 1U);
  for (const Case* c : {&softcap, &pages, &documents}) EXPECT_TRUE(phases(*c).empty()) << command_line(*c);
  EXPECT_TRUE(phases(d128(), "fa2").empty());
  EXPECT_TRUE(phases(d128(), "sm80-sync-copies").empty());
  EXPECT_TRUE(phases(d128(), "attest", "a100").empty());
  EXPECT_EQ(phases(d128(), "sm80-no-skip").size(), 1U);
  const DeviceSpec h200 = load_device("h200");
  KernelPlan otherwise = with_features(plan_on("h200", "attest", d128()), d128());
  otherwise.exp_instructions = 4;
  EXPECT_TRUE(compiled_alone(otherwise, "attest", d128(), h200).empty());
  Case narrow = d128();  // granules of V alone
  narrow.problem.headdim_v = 100, narrow.problem.seqlen_q = 1;
  EXPECT_TRUE(phases(narrow).empty());
}

}  // namespace
}  // namespace attest
