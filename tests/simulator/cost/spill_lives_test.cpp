// Spilled words through an SM's L1, warp by warp: what each rule does by itself.
#include "spill_lives.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "attest/simulator/report.h"
#include "compiled_registers.h"

namespace attest {
namespace {

using Access = SpillAccess::Kind;
using Step = SpillStep::Kind;

constexpr int l1_of_480_lines = 480;

SpillTrace turn(int cycles, std::vector<SpillAccess> accesses) { return {cycles, std::move(accesses)}; }

std::vector<SpillAccess> each(Access kind, int words, int at) {
  std::vector<SpillAccess> accesses;
  for (int word = 0; word < words; ++word) accesses.push_back({at + word, kind, word, at + word + 29});
  return accesses;
}

SpillLives lives_of(const SpillTraces& traces, const SpillLife& life, int warps = 1, int ctas = 1,
                    const SpillCycles& times = {}) {
  const FramePlaces places{MemoryMap(load_device("h200")), 0};
  const std::vector<SpillingSm> sms = {
      {3, std::vector<std::vector<SpillLife>>(static_cast<std::size_t>(ctas), {life})}};
  return spill_lives(traces, sms, warps, l1_of_480_lines, places, times);
}

TEST(SpillLives, WordsThatFitL1AreThere) {
  SpillTraces traces;
  traces.whole = turn(1000, each(Access::store, 10, 0));
  for (const SpillAccess& a : each(Access::last_load, 10, 500)) traces.whole.accesses.push_back(a);
  const SpillLives of = lives_of(traces, {{Step::start}, {Step::whole}, {Step::whole}, {Step::finish}}, 4, 2);
  EXPECT_EQ(of.whole.part, 0);
  EXPECT_EQ(of.whole.waits, 0);
}

TEST(SpillLives, OfWordsThatDoNotFitMostAreGone) {
  SpillTraces traces;
  traces.whole = turn(1000, each(Access::store, 150, 0));
  for (const SpillAccess& a : each(Access::last_load, 150, 500)) traces.whole.accesses.push_back(a);
  const SpillLife life(6, {Step::whole});
  const double of_one = lives_of(traces, life, 4).whole.part, of_two = lives_of(traces, life, 4, 2).whole.part;
  EXPECT_GT(of_one, 0.2);
  EXPECT_GT(of_two, 0.7);
  EXPECT_GT(lives_of(traces, life, 4).whole.waits, 293);
}

// A word that nobody has stored misses once, in the first of them.
TEST(SpillLives, AStepStandsForOthers) {
  SpillTraces traces;
  traces.whole = turn(1000, {{0, Access::load, 5, 900}});
  EXPECT_EQ(lives_of(traces, {{Step::whole}, {Step::whole}}).whole.part, 0.5);
  EXPECT_EQ(lives_of(traces, {{Step::whole}, {Step::whole, 0, 3}}).whole.part, 0.25);
  EXPECT_EQ(lives_of(traces, {{Step::whole, 0, 3}, {Step::whole}}).whole.part, 0.75);
}

TEST(SpillLives, KindsAreCountedApart) {
  SpillTraces traces;
  traces.begin.accesses = {{0, Access::store, 1}};
  traces.masked = turn(1000, {{0, Access::load, 1, 900}, {10, Access::load, 2, 900}});
  traces.whole = turn(1000, {{0, Access::load, 2, 900}});
  traces.end.accesses = {{0, Access::load, 2}, {0, Access::load, 3}};
  const SpillLives of = lives_of(traces, {{Step::start}, {Step::masked}, {Step::whole}, {Step::finish}});
  EXPECT_EQ(of.masked.of_access, (std::vector<double>{0, 1}));
  EXPECT_EQ(of.whole.part, 0);
  EXPECT_EQ(of.finish, 0.5);
}

TEST(SpillLives, OIsRescaledByTheWarpsThatDo) {
  SpillTraces traces;
  traces.whole = turn(1000, {{0, Access::load, 1, 900}});
  traces.whole_rescale = {600, {{0, Access::load, 7, 600}}, 500};
  EXPECT_EQ(lives_of(traces, {{Step::whole}}, 2).rescale, 0);
  EXPECT_EQ(lives_of(traces, {{Step::whole, 2}}, 2).rescale, 1);
  EXPECT_EQ(lives_of(traces, {{Step::whole, 2}, {Step::whole, 2}}, 2).rescale, 0.5);  // there the second time
  EXPECT_EQ(lives_of(traces, {{Step::whole, 2, 3}, {Step::whole, 2}}, 2).rescale, 0.75);
}

// The branch ends with a store of a word that the turn loads for the last time at the branch's place, and so behind it.
TEST(SpillLives, WhatStandsAtABranchsPlaceComesBehindIt) {
  SpillTraces traces;
  traces.whole = turn(1000, {{500, Access::last_load, 7, 900}});
  traces.whole_rescale = {600, {{0, Access::load, 8, 600}, {599, Access::store, 7}}, 500};
  EXPECT_EQ(lives_of(traces, {{Step::whole}}).whole.part, 1);
  EXPECT_EQ(lives_of(traces, {{Step::whole, 1}}).whole.part, 0);
}

TEST(SpillLives, WordsAreStoredOnTheWayIntoARun) {
  SpillTraces traces;
  traces.run.accesses = {{0, Access::store, 1}};
  traces.enter.accesses = {{0, Access::store, 2}};
  traces.masked = turn(1000, {{0, Access::load, 1, 900}});
  traces.whole = turn(1000, {{0, Access::load, 1, 900}, {10, Access::load, 2, 900}});
  const SpillLives of = lives_of(traces, {{Step::masked}, {Step::whole}});
  EXPECT_EQ(of.masked.part, 0);
  EXPECT_EQ(of.whole.part, 0);
  traces.run.accesses.clear(), traces.enter.accesses.clear();
  EXPECT_EQ(lives_of(traces, {{Step::masked}, {Step::whole}}).masked.part, 1);
  EXPECT_EQ(lives_of(traces, {{Step::whole}}).whole.part, 1);
}

// Of two slots the second has one key tile; what the first does from then on is not counted.
TEST(SpillLives, AnSmIsFollowedUntilASlotHasNoCtaLeft) {
  SpillTraces traces;
  traces.whole = turn(1000, {{0, Access::load, 1, 900}});
  const FramePlaces places{MemoryMap(load_device("h200")), 0};
  const SpillLife one = {{Step::whole}}, three(3, {Step::whole});
  const auto part = [&](const std::vector<std::vector<SpillLife>>& slots) {
    const std::vector<SpillingSm> sms = {{3, slots}};
    return spill_lives(traces, sms, 1, l1_of_480_lines, places, {}).whole.part;
  };
  EXPECT_NEAR(part({{three}}), 1. / 3, 1e-9);  // the first of three misses
  EXPECT_EQ(part({{three}, {one}}), 1);
  EXPECT_NEAR(part({{one, one}}), 0.5, 1e-9);  // the next CTA finds the word of the one before
}

// A last use that misses has a line until its data come, some 300 cycles later.
TEST(SpillLives, WhatIsOnItsWayIsFoundUntilItHasCome) {
  const auto second_misses = [](int waited, std::uint32_t rescaling, double key_tile) {
    SpillTraces traces;
    traces.whole = turn(1000, {{10, Access::last_load, 3, waited}, {100, Access::load, 3, 900}});
    traces.whole_rescale = {600, {{0, Access::store, 7}}, 50};
    return lives_of(traces, {{Step::whole, rescaling}}, 1, 1, {.key_tile = key_tile}).whole.of_access.at(1) == 1;
  };
  EXPECT_FALSE(second_misses(900, 0, 0));
  EXPECT_TRUE(second_misses(60, 0, 0));       // the warp has waited for it
  EXPECT_TRUE(second_misses(1000, 1, 0));     // O was rescaled between
  EXPECT_FALSE(second_misses(900, 0, 2000));  // 180 cycles behind
  EXPECT_TRUE(second_misses(900, 0, 5000));   // 450
}

// 128 CTAs of eight query tiles a head: whichever of them a grid hands out first, all are among those that are
// followed.
TEST(SpillLives, SampledCtasAreOfAllQueryTiles) {
  const DeviceSpec h200 = load_device("h200");
  const auto sm_reads = [&](bool window) {
    Case c;
    Problem& p = c.problem;
    p.nheads = p.nheads_k = 16, p.seqlen_q = p.seqlen_k = 1024, p.headdim = p.headdim_v = 128;
    if (window)
      p.window_right = 0;
    else
      p.causal = Causal::bottom_right;
    return simulate(c, plan_named("sm80-spill", c, h200), h200, "sm80-spill").sm_read_bytes;
  };
  EXPECT_NEAR(sm_reads(true) / sm_reads(false), 1, 0.05);  // 0.69 where all are a head's first
}

}  // namespace
}  // namespace attest
