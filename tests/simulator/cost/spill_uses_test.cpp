// What L2 sees of spilled words, and when.
#include "spill_uses.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "attest/simulator/report.h"
#include "compiled_registers.h"

namespace attest {
namespace {

using Kind = SpillUse::Kind;

TEST(SpillUses, ATraceSaysWhenEachWordIsStoredAndLoaded) {
  // word 7 is stored and loaded, 9 loaded alone: it is a CTA's; calls have no word
  const SpillTrace trace{100,
                         {{10, SpillAccess::Kind::load, 9},
                          {20, SpillAccess::Kind::store, 7},
                          {30, SpillAccess::Kind::call, 0},
                          {80, SpillAccess::Kind::last_load, 7}}};
  const std::vector<SpillUse> uses = traced_spill_uses(trace, {0.25, 0, 0, 0.75});
  ASSERT_EQ(uses.size(), 3U);
  const auto is = [](const SpillUse& use, double at, Kind kind, bool parked, double part) {
    return use.at == at && use.kind == kind && use.word == 0 && use.parked == parked && use.part == part;
  };
  EXPECT_TRUE(is(uses[0], 0.1, Kind::load, true, 0.25));
  EXPECT_TRUE(is(uses[1], 0.2, Kind::store, false, 1));
  EXPECT_TRUE(is(uses[2], 0.8, Kind::last_load, false, 0.75));
}

TEST(SpillUses, WithoutATraceWordsAreStoredAtTheBeginAndLoadedInTheMiddle) {
  const std::vector<SpillUse> hits = untraced_spill_uses(3, 2, 1, 0);
  ASSERT_EQ(hits.size(), 3U);
  EXPECT_TRUE(std::ranges::all_of(hits, [](const SpillUse& u) { return u.kind == Kind::store && u.at == 0; }));
  EXPECT_EQ(hits[2].word, 0);  // a frame of two words
  const std::vector<SpillUse> misses = untraced_spill_uses(3, 2, 1, 0.5);
  ASSERT_EQ(misses.size(), 7U);
  EXPECT_EQ(std::ranges::count(misses, Kind::last_load, &SpillUse::kind), 3);
  EXPECT_TRUE(misses[6].parked && misses[6].kind == Kind::load && misses[6].part == 0.5);
}

// The forced spill's are as many as its machine code has, and L1 lacks two thirds of its loads.
TEST(SpillUses, OfTheForcedSpill) {
  Case c;
  c.problem.headdim = c.problem.headdim_v = 128, c.problem.seqlen_q = c.problem.seqlen_k = 4096;
  const DeviceSpec h200 = load_device("h200");
  const KernelPlan plan = plan_named("sm80-spill", c, h200);
  const SpillTrace trace = compiled_traces(plan, "sm80-spill", c, h200).whole;
  const SpillMisses misses = spill_misses(trace, plan.num_warps, 2, l1_lines(plan.smem_bytes(), 2, h200));
  const std::vector<SpillUse> uses = traced_spill_uses(trace, misses.of_access);
  EXPECT_EQ(std::ranges::count(uses, Kind::store, &SpillUse::kind), plan.spill_words_per_key_tile);
  double missed = 0, loads = 0;
  for (const SpillUse& use : uses)
    if (use.kind != Kind::store) ++loads, missed += use.part;
  std::printf("%.0f loads, of which %.3f miss L1\n", loads, missed / loads);
  EXPECT_NEAR(missed / loads, misses.part, 1e-9);
  EXPECT_NEAR(missed / loads, 0.67, 0.02);
}

}  // namespace
}  // namespace attest
