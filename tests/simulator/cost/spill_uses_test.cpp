// What L2 sees of spilled words, and when.
#include "spill_uses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "attest/problem/error.h"
#include "attest/simulator/report.h"
#include "compiled_registers.h"
#include "grid.h"
#include "missing_words.h"
#include "tile_walks.h"
#include "traffic.h"

namespace attest {
namespace {

using Kind = SpillUse::Kind;

TEST(SpillUses, ATraceSaysWhenEachWordIsStoredAndLoaded) {
  // calls have no word
  SpillTraces traces;
  traces.whole = {100,
                  {{10, SpillAccess::Kind::load, 9},
                   {20, SpillAccess::Kind::store, 7},
                   {30, SpillAccess::Kind::call, 0},
                   {80, SpillAccess::Kind::last_load, 7}}};
  traces.masked = {200, {{100, SpillAccess::Kind::load, 8}}};
  // the turn goes on with the last load, behind the branch's 60 cycles
  traces.whole_rescale = {60, {{0, SpillAccess::Kind::last_load, 7}, {56, SpillAccess::Kind::store, 7}}, 80};
  traces.begin.accesses = {{0, SpillAccess::Kind::store, 9}};
  traces.end.accesses = {{0, SpillAccess::Kind::last_load, 7}};
  const SpillUses uses = traced_spill_uses(traces, {{0.25, 0, 0, 0.75}, {0.5}, 0.125, 0.375});
  using Uses = std::vector<SpillUse>;
  EXPECT_EQ(uses.whole, (Uses{{0.1, Kind::load, 9, 0.25}, {0.2, Kind::store, 7, 1}, {0.8, Kind::last_load, 7, 0.75}}));
  EXPECT_EQ(uses.masked, (Uses{{0.5, Kind::load, 8, 0.5}}));
  EXPECT_EQ(uses.first_whole, (Uses{{10. / 160, Kind::load, 9, 0.25},
                                    {20. / 160, Kind::store, 7, 1},
                                    {80. / 160, Kind::last_load, 7, 0.125},
                                    {136. / 160, Kind::store, 7, 1},
                                    {140. / 160, Kind::last_load, 7, 0.75}}));
  EXPECT_EQ(uses.first_masked, uses.masked);
  EXPECT_EQ(uses.begin, (Uses{{0, Kind::store, 9, 1}}));
  EXPECT_EQ(uses.end, (Uses{{0, Kind::last_load, 7, 0.375}}));
}

TEST(SpillUses, WithoutATraceWordsAreStoredAtTheBeginAndLoadedInTheMiddle) {
  const LocalFrame frame{5, 2};
  const std::vector<SpillUse> hits = untraced_spill_uses(3, frame, 1, 0).whole;
  ASSERT_EQ(hits.size(), 3U);
  EXPECT_TRUE(std::ranges::all_of(hits, [](const SpillUse& u) { return u.kind == Kind::store && u.at == 0; }));
  EXPECT_EQ(hits[2].word, 0);  // key tiles have two words
  const SpillUses all = untraced_spill_uses(3, frame, 1, 0.5);
  for (const std::vector<SpillUse>* alike : {&all.masked, &all.first_whole, &all.first_masked})
    EXPECT_EQ(*alike, all.whole);
  EXPECT_TRUE(all.begin.empty() && all.end.empty());
  const std::vector<SpillUse>& misses = all.whole;
  ASSERT_EQ(misses.size(), 7U);
  EXPECT_EQ(std::ranges::count(misses, Kind::last_load, &SpillUse::kind), 3);
  EXPECT_EQ(misses[6], (SpillUse{0.5, Kind::load, 4, 0.5}));
}

// The forced spill's are as many as its machine code has, and L1 lacks two thirds of its loads.
TEST(SpillUses, OfTheForcedSpill) {
  Case c;
  c.problem.headdim = c.problem.headdim_v = 128, c.problem.seqlen_q = c.problem.seqlen_k = 4096;
  const DeviceSpec h200 = load_device("h200");
  const KernelPlan plan = plan_named("sm80-spill", c, h200);
  const SpillTraces traces = compiled_traces(plan, "sm80-spill", c, h200);
  const FramePlaces places{MemoryMap(h200), compiled_frame(plan, "sm80-spill", c, h200).value().words};
  const SpillCycles times{.key_tile = 11'000, .around = 4300, .between = 19};
  const MissingWords misses = missing_words(simulate(c, plan, h200, "sm80-spill"), 0, 2, false, places, times);
  const std::vector<double> all_of_masked(traces.masked.accesses.size(), 1);
  const SpillUses of_all = traced_spill_uses(traces, {misses.of_whole, all_of_masked, 1, 1});
  const std::vector<SpillUse>& uses = of_all.whole;
  EXPECT_EQ(std::ranges::count(uses, Kind::store, &SpillUse::kind), plan.spill_words_per_key_tile);
  double missed = 0, loads = 0;
  for (const SpillUse& use : uses)
    if (use.kind != Kind::store) ++loads, missed += use.part;
  std::map<int, double> stored;  // by word
  for (const SpillUse& use : uses)
    if (use.kind == Kind::store) stored[use.word] = use.at;
  double apart = 0;
  for (const SpillUse& use : uses)
    if (use.kind == Kind::last_load) {
      const double after = use.at - stored.at(use.word);
      apart += use.part * (after < 0 ? after + 1 : after) / missed;
    }
  std::printf("%.0f loads, of which %.3f miss L1, %.2f of a key tile after their store\n", loads, missed / loads,
              apart);
  EXPECT_NEAR(apart, 0.44, 0.02);
  EXPECT_NEAR(missed / loads, misses.part, 1e-9);
  EXPECT_NEAR(missed / loads, 0.69, 0.02);

  // a CTA's and its key tiles' words are as many as counted by place (registers_gpu_sm80.csv), where they lie
  const auto count = [](const std::vector<SpillUse>& of, bool stores) {
    return std::ranges::count_if(of, [&](const SpillUse& u) { return (u.kind == Kind::store) == stores; });
  };
  const CompiledSpill spill = compiled_spill(plan, "sm80-spill", c, h200).value();
  EXPECT_EQ(count(of_all.masked, true), spill.stored.masked);
  EXPECT_EQ(count(of_all.masked, false), spill.loaded.masked);
  EXPECT_EQ(count(of_all.first_masked, true), spill.stored.masked + spill.stored.masked_rescales);
  EXPECT_EQ(count(of_all.first_masked, false), spill.loaded.masked + spill.loaded.masked_rescales);
  EXPECT_EQ(count(of_all.first_whole, true), spill.stored.whole + spill.stored.whole_rescales);
  EXPECT_EQ(count(of_all.first_whole, false), spill.loaded.whole + spill.loaded.whole_rescales);
  EXPECT_EQ(count(of_all.begin, true), spill.stored.once);
  // all of O that is spilled is loaded for the last time behind the key tiles
  EXPECT_EQ(count(of_all.end, false), 56);
  EXPECT_TRUE(std::ranges::all_of(of_all.end, [](const SpillUse& u) { return u.kind == Kind::last_load; }));
}

// A word is live from its store to its last load, also into the next key tile; what is loaded alone never is.
TEST(SpillUses, WordsAreLiveUntilTheyAreLoadedForTheLastTime) {
  const std::vector<double> parts = live_parts({{0.1, Kind::last_load, 0, 1},
                                                {0.2, Kind::store, 1, 1},
                                                {0.4, Kind::last_load, 1, 0.5},
                                                {0.5, Kind::load, 2, 1},
                                                {0.7, Kind::store, 0, 1},
                                                {0.8, Kind::store, 3, 1}},
                                               5);
  const std::vector<double> expected = {0.4, 0.2 + 0.8 / 2, 0, 1, 0};
  ASSERT_EQ(parts.size(), expected.size());
  for (std::size_t word = 0; word < parts.size(); ++word) EXPECT_NEAR(parts[word], expected[word], 1e-12) << word;
}

// A CTA's key tiles with and without masks each use what such tiles use, and its first what it is; all of them store
// before its key tiles and load behind them.
TEST(SpillUses, AreTheirKeyTilesOwn) {
  const DeviceSpec device = load_device("h200");
  Case c = case_of(1, 16, 16, 1024, 64);
  KernelPlan plan = plan_for(c);
  plan.spill_words_per_key_tile = 1, plan.spill_words_per_cta = 63;
  const SpillUse ignored{0, Kind::load, 0, 1};  // so that the plan's own words are not stored
  std::vector<SpillUse> stores, loads;
  for (int word = 0; word < 64; ++word)
    stores.push_back({0, Kind::store, word, 1}), loads.push_back({0, Kind::last_load, word, 1});
  struct Bytes {
    double read, written;
  };
  const auto walked = [&](std::int64_t seqlen_k, Causal causal, SpillUses uses) {
    c.problem.seqlen_k = seqlen_k, c.problem.causal = causal;
    uses.begin.push_back(ignored);
    TileWalkOptions options = times();
    options.sampling = 1, options.dirty_bytes_at_start = 0;
    options.frame = LocalFrame{64, 1};
    options.spill_uses = {uses};
    const TileWalk walk = walk_tiles(c, plan, device, 1, options);
    return Bytes{walk.dram_read_bytes, walk.dram_write_bytes + walk.dirty_bytes_left};
  };
  // 128 CTAs of 4 warps, each on an SM of its own; with more keys than queries each CTA's mask ends in its second tile
  constexpr double bytes = 128 * 4 * 64 * 128;
  for (const auto& [seqlen_k, causal] : {std::pair{1024, Causal::none}, std::pair{1088, Causal::bottom_right}}) {
    const bool masks = causal != Causal::none;
    const Bytes without = walked(seqlen_k, causal, {});
    const auto stored = [&](std::vector<SpillUse> SpillUses::*place) {
      SpillUses uses;
      uses.*place = stores;
      return (walked(seqlen_k, causal, uses).written - without.written) / bytes;
    };
    EXPECT_NEAR(stored(&SpillUses::begin), 1, 0.02);
    EXPECT_NEAR(stored(&SpillUses::end), 1, 0.02);
    EXPECT_NEAR(stored(&SpillUses::whole), masks ? 0.875 : 1, 0.02);  // the first queries see no tile without a mask
    EXPECT_NEAR(stored(&SpillUses::masked), masks ? 1 : 0, 0.02);
    EXPECT_NEAR(stored(&SpillUses::first_whole), masks ? 0 : 1, 0.02);
    EXPECT_NEAR(stored(&SpillUses::first_masked), masks ? 1 : 0, 0.02);
    SpillUses end;
    end.end = loads;  // of words that nobody has stored
    EXPECT_NEAR((walked(seqlen_k, causal, end).read - without.read) / bytes, 1, 0.02);
  }
  // CTAs without a key tile do neither
  SpillUses around;
  around.begin = stores, around.end = loads;
  EXPECT_EQ(walked(0, Causal::none, around).written, walked(0, Causal::none, {}).written);
  EXPECT_EQ(walked(0, Causal::none, around).read, walked(0, Causal::none, {}).read);
}

// Without key tiles nothing is stored, whatever the kernel's trace has.
TEST(SpillUses, OfACaseWithoutKeys) {
  Case c = case_of(1, 4, 4, 256, 128);
  c.problem.seqlen_k = 0;
  const DeviceSpec h200 = load_device("h200");
  const SimulationReport r = simulate(c, plan_named("sm80-spill", c, h200), h200, "sm80-spill");
  EXPECT_EQ(r.walk.key_tiles, 0);
  EXPECT_TRUE(r.walk_options.spill_uses.empty());
  EXPECT_GT(r.sm_write_bytes, 0);
}

// Whatever the mask and the order, key tiles by what the mask makes of them, several of an event too.
TEST(SpillUses, KeyTilesAreMaskedWhereTheirClassSaysSo) {
  std::vector<Case> cases(4, case_of(1, 1, 1, 1024, 64));
  cases[0].problem.seqlen_k = 1088, cases[0].problem.causal = Causal::bottom_right;
  cases[1].problem.window_left = 300, cases[1].problem.window_right = 200;
  cases[2].problem.prefix = 256, cases[2].problem.causal = Causal::bottom_right;
  cases[3].problem.seqlen_k = 1000;
  int masked_tiles = 0, whole_tiles = 0;
  for (const Case& c : cases)
    for (const KeyOrder order : {KeyOrder::descending, KeyOrder::ascending}) {
      KernelPlan plan = plan_for(c);
      plan.key_order = order;
      const Grid grid(c, plan);
      for (int q_tile = 0; q_tile < grid.q_tiles; ++q_tile) {
        Work work = grid.entry(0).work;
        work.q_tile = q_tile;
        Slot slot;
        slot.walk = grid.walk(0, q_tile, 0);
        slot.spill.resize(1);
        const SpilledLines& lines = slot.spill.front();
        for (const int tiles : {1, 3})
          for (slot.position = slot.walk.first + tiles; slot.position <= slot.walk.last; ++slot.position) {
            const auto used = Traffic::spilled_by(slot, 2, tiles);
            ASSERT_EQ(std::ssize(used), tiles);
            for (int i = 0; i < tiles; ++i) {
              const int position = slot.position - tiles + i;
              const bool masked = classify(plan, work, slot.walk.tile(position)) != TileClass::full;
              const bool first = position == slot.walk.first;
              EXPECT_EQ(used[static_cast<std::size_t>(i)], masked ? (first ? &lines.first_masked : &lines.masked)
                                                                  : (first ? &lines.first_whole : &lines.whole))
                  << command_line(c) << ", queries " << q_tile << ", position " << position;
              ++(masked ? masked_tiles : whole_tiles);
            }
          }
      }
    }
  EXPECT_GT(masked_tiles, 100);
  EXPECT_GT(whole_tiles, 100);
}

/// 264 CTAs of 16 key tiles each whose 4 warps store 32 words in each and load them for the last time at `at`, beside
/// K and V of which an L2 of 6 MiB keeps few: what it reads and writes beyond them.
struct Spilled {
  double read = 0, written = 0;
};
Spilled walked(double at, std::int64_t l2_mib, std::int64_t max_events, int cluster = 1, bool warm = false) {
  DeviceSpec device = load_device("h200");
  device.l2_bytes = l2_mib << 20;
  const Case c = case_of(1, 33, 33, 1024, 64);
  KernelPlan plan = plan_for(c);
  plan.cluster = cluster;
  const auto walk = [&](int words) {
    TileWalkOptions options = times();
    options.sampling = 1, options.max_events = max_events, options.warm = warm, options.dirty_bytes_at_start = 0;
    plan.spill_words_per_key_tile = words;
    if (words > 0) {
      SpillUses uses = untraced_spill_uses(words, {words, words}, 0, 0);
      for (int word = 0; word < words && at > 0; ++word) uses.whole.push_back({at, Kind::last_load, word, 1});
      uses.first_whole = uses.whole;  // none is masked
      options.spill_uses = {uses};
    }
    return walk_tiles(c, plan, device, 2, options);
  };
  const TileWalk without = walk(0), with = walk(32);
  return {with.dram_read_bytes - without.dram_read_bytes, with.dram_write_bytes - without.dram_write_bytes};
}

TEST(SpillUses, WhatL2LetGoOfUntilItIsLoadedIsReadFromDram) {
  constexpr std::int64_t all = 1'500'000;
  const double stored = 264 * 16 * 4 * 32 * 128.0;
  const Spilled large = walked(0.99, 50, all), soon = walked(0.15, 6, all), late = walked(0.99, 6, all);
  EXPECT_LT(large.read, 0.01 * stored);
  EXPECT_GT(late.read, 0.2 * stored);
  EXPECT_LT(soon.read, 0.6 * late.read);
  EXPECT_NEAR(walked(0.99, 6, all, 1, true).read, late.read, 0.1 * late.read);
  EXPECT_GT(late.written, late.read);
}

// Several key tiles an event, and CTAs of a cluster, use their words as often.
TEST(SpillUses, AreAsManyHoweverTilesAreWalked) {
  const Spilled one = walked(0.99, 6, 1'500'000), several = walked(0.99, 6, 2'200);
  EXPECT_NEAR(several.read, one.read, 0.25 * one.read);
  EXPECT_NEAR(walked(0.99, 6, 1'500'000, 2).read, one.read, 0.25 * one.read);
}

TEST(SpillUses, AreRefusedOutOfOrderAndBeyondTheFrame) {
  const Case c = case_of(1, 1, 1, 256, 64);
  KernelPlan plan = plan_for(c);
  plan.spill_words_per_key_tile = 2;
  const auto refused = [&](const std::vector<SpillUse>& uses, const char* field) {
    int times_refused = 0;
    for (const auto place : {&SpillUses::whole, &SpillUses::masked, &SpillUses::first_whole, &SpillUses::first_masked,
                             &SpillUses::begin, &SpillUses::end}) {
      TileWalkOptions options = times();
      options.spill_uses.resize(1);
      options.spill_uses.front().*place = uses;
      try {
        walk_tiles(c, plan, load_device("h200"), 1, options);
      } catch (const InvalidInput& error) {
        times_refused += error.field() == field ? 1 : 0;
      }
    }
    EXPECT_TRUE(times_refused == 0 || times_refused == 6) << times_refused;
    return times_refused == 6;
  };
  const SpillUse first{0.5, Kind::store, 0, 1};
  EXPECT_FALSE(refused({first}, "spill_uses.at"));
  EXPECT_TRUE(refused({first, {0.4, Kind::load, 0, 1}}, "spill_uses.at"));
  EXPECT_TRUE(refused({{1, Kind::store, 0, 1}}, "spill_uses.at"));
  EXPECT_TRUE(refused({{0, Kind::store, 2, 1}}, "spill_uses.word"));
}

// Of CTAs alone on their SM those of one, of two the others', and of three as of two.
TEST(SpillUses, AreThoseOfAsManyCtasAsAnSmHas) {
  DeviceSpec device = load_device("h200");
  device.l2_bytes = std::int64_t{6} << 20;
  const auto written = [&](std::int64_t nheads, int ctas, const std::vector<int>& words) {
    const Case c = case_of(1, nheads, nheads, 1024, 64);  // 8 CTAs a head
    KernelPlan plan = plan_for(c);
    plan.spill_words_per_key_tile = 40;
    TileWalkOptions options = times();
    options.sampling = 1, options.noise = 0;
    options.cycles_per_key_tile.assign(3, 1000);
    for (const int n : words) options.spill_uses.push_back(untraced_spill_uses(n, {40, 40}, 0, 0));
    const TileWalk walk = walk_tiles(c, plan, device, ctas, options);
    return walk.dram_write_bytes + walk.dirty_bytes_left;
  };
  const double few = written(16, 1, {4}), many = written(16, 1, {40});
  EXPECT_GT(many, 2 * few);
  EXPECT_EQ(written(16, 1, {4, 40}), few);
  EXPECT_EQ(written(33, 2, {4, 40}), written(33, 2, {40}));
  EXPECT_EQ(written(49, 3, {4, 40}), written(49, 3, {4, 40, 40}));
  EXPECT_NE(written(33, 2, {4, 40}), written(33, 2, {4}));
}

TEST(SpillUses, AFrameHasATilesWordsAndNoFewer) {
  const Case c = case_of(1, 1, 1, 256, 64);
  KernelPlan plan = plan_for(c);
  plan.spill_words_per_key_tile = 2, plan.spill_words_per_cta = 3;
  const auto message = [&](LocalFrame frame) -> std::string {
    TileWalkOptions options = times();
    options.frame = frame;
    try {
      walk_tiles(c, plan, load_device("h200"), 1, options);
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({5, 2}), "");
  EXPECT_EQ(message({5, 0}), "frame.of_tile: 0 must be at least 1 where a tile stores");
  EXPECT_EQ(message({5, 6}), "frame.of_tile: 6 must not exceed the frame's words, 5");
  EXPECT_EQ(message({5, 2, 3}), "");
  EXPECT_EQ(message({5, 2, 4}), "frame.in_part: 4 must be 0 to spill_words_per_cta = 3");
}

}  // namespace
}  // namespace attest
