#include "attest/simulator/tile_walk.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "tile_walks.h"

namespace attest {
namespace {

TEST(TileWalk, WhatFitsL2IsReadOnce) {
  const Case c = case_of(2, 8, 4, 1024, 64);
  const TileWalk w = walk_tiles(c, plan_for(c), load_device("h200"), 2, times());
  const double q = 2.0 * 8 * 1024 * 64 * 2, kv = 2.0 * 2 * 4 * 1024 * 64 * 2;
  EXPECT_DOUBLE_EQ(w.first_read_bytes, q + kv);
  EXPECT_DOUBLE_EQ(w.dram_read_bytes, q + kv);
  EXPECT_DOUBLE_EQ(w.sm_read_bytes, q + kv * 2 * 8);  // 2 query heads a key head, 8 query tiles
  EXPECT_EQ(w.ctas, 2 * 8 * 8);
}

TEST(TileWalk, OneSmWithoutAnL2ReadsEverythingEachTime) {
  DeviceSpec device = load_device("h200");
  device.num_sms = 1;
  device.l2_bytes = 64 << 10;
  device.l2_slices_per_partition = 1;
  const Case c = case_of(1, 2, 2, 2048, 128);
  const TileWalk w = walk_tiles(c, plan_for(c), device, 1, times());
  EXPECT_GT(w.dram_read_bytes, 0.97 * w.sm_read_bytes);
  EXPECT_LE(w.dram_read_bytes, 1.02 * w.sm_read_bytes);
}

TEST(TileWalk, TilesThatAreNotWalkedTakeNoMemory) {
  DeviceSpec device = load_device("h200");
  device.l2_bytes = 1 << 20;  // a CTA goes through 12 times that
  device.l2_slices_per_partition = 1;
  Case c = case_of(1, 32, 32, 64 << 20, 64);
  c.problem.seqlen_q = 1;
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  const TileWalk w = walk_tiles(c, plan_for(c), device, 2, times());
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_EQ(w.ctas, 32);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 256 << 10);  // KiB; the heads have half a million tiles each
}

TEST(TileWalk, ALargerL2NeverReadsMore) {
  const Case c = case_of(1, 16, 16, 8192, 128);
  double last = 1e300;
  for (const std::int64_t megabytes : {4, 8, 16, 32, 64, 128}) {
    DeviceSpec device = load_device("h200");
    device.l2_bytes = megabytes << 20;
    const TileWalk w = walk_tiles(c, plan_for(c), device, 2, times());
    EXPECT_LE(w.dram_read_bytes, 1.01 * last) << megabytes;
    EXPECT_GE(w.dram_read_bytes, w.first_read_bytes);
    last = w.dram_read_bytes;
  }
}

TEST(TileWalk, MoreKeysCostMore) {
  const DeviceSpec device = load_device("h100");
  TileWalk last;
  for (std::int64_t s = 512; s <= 16384; s *= 2) {
    const Case c = case_of(1, 8, 8, s, 128, Causal::bottom_right);
    const TileWalk w = walk_tiles(c, plan_for(c), device, 2, times());
    EXPECT_GT(w.dram_read_bytes, last.dram_read_bytes);
    EXPECT_GT(w.cycles, last.cycles);
    EXPECT_GT(w.sm_read_bytes, last.sm_read_bytes);
    last = w;
  }
}

TEST(TileWalk, WavesAreWhole) {
  DeviceSpec device = load_device("h100");
  std::ranges::fill(device.gpc_clocks, 1);
  TileWalkOptions options = times();
  options.noise = 0;
  const auto cycles = [&](std::int64_t batch) {
    const Case c = case_of(batch, 1, 1, 128, 64);  // one CTA a batch entry, one key tile
    return walk_tiles(c, plan_for(c), device, 1, options).cycles;
  };
  EXPECT_DOUBLE_EQ(cycles(1), 7000);
  EXPECT_DOUBLE_EQ(cycles(132), 7000);
  EXPECT_DOUBLE_EQ(cycles(133), 14000);
}

TEST(TileWalk, TheSlowestClockOfTheGpcsEndsLast) {
  DeviceSpec device = load_device("h100");
  TileWalkOptions options = times();
  options.noise = 0;
  const Case c = case_of(132, 1, 1, 128, 64);
  device.gpc_clocks = {1.01, 1, 1, 1.02, 1, 0.97, 1, 1};
  device.gpc_clock_spread_mma_sync_over_wgmma = 0.5;
  KernelPlan plan = plan_for(c);
  EXPECT_DOUBLE_EQ(walk_tiles(c, plan, device, 1, options).cycles, 7000 / 0.985);
  plan.matrix_kind = MatrixKind::wgmma;
  EXPECT_DOUBLE_EQ(walk_tiles(c, plan, device, 1, options).cycles, 7000 / 0.97);
}

// Two kernels whose key tiles take as long: CTAs of the one with more warpgroups drift apart sooner, and merge less.
TEST(TileWalk, CtasDriftApartAsTheirMatrixInstructionsDo) {
  DeviceSpec device = load_device("h200");
  const Case c = case_of(1, 32, 32, 4096, 64);
  const auto l2_share = [&](int warps) {
    KernelPlan plan = plan_named("fa3", c, device);
    plan.num_warps = warps, plan.tile_m = 16 * warps;
    const TileWalk w = walk_tiles(c, plan, device, 1, times());
    return w.l2_read_bytes / w.sm_read_bytes;
  };
  const double two = l2_share(8), three = l2_share(12);
  EXPECT_GT(three, two + 0.02);
  device.step_deviation_wgmma_3 = device.step_deviation_wgmma;
  EXPECT_LT(l2_share(12), three - 0.02);
}

TEST(TileWalk, CausalHalvesTheTiles) {
  const Case full = case_of(1, 8, 8, 8192, 128), causal = case_of(1, 8, 8, 8192, 128, Causal::bottom_right);
  const DeviceSpec device = load_device("h100");
  const TileWalk f = walk_tiles(full, plan_for(full), device, 2, times()),
                 c = walk_tiles(causal, plan_for(causal), device, 2, times());
  EXPECT_EQ(f.key_tiles, 8 * 64 * 128);
  EXPECT_EQ(c.key_tiles, 8 * 64 * 65);  // 2, 4, ..., 128
}

// CTAs that wait for their loads one by one, all of one head: the first has its keys from DRAM, and none passes it.
TEST(TileWalk, CtasOfAHeadGoAtThePaceOfTheFirstThatWaitsForDram) {
  DeviceSpec device = load_device("h200");
  std::fill(device.gpc_clocks.begin(), device.gpc_clocks.end(), 1.0);
  const Case c = case_of(1, 1, 1, 2048, 128);
  TileWalkOptions options = times();
  options.noise = 0;
  const auto cycles = [&](double loads, bool warm) {
    options.waited_loads = loads;
    options.warm = warm;
    return walk_tiles(c, plan_for(c), device, 2, options);
  };
  const TileWalk plain = cycles(0, false), waiting = cycles(2, false), warm = cycles(2, true);
  const double tiles = static_cast<double>(waiting.key_tiles) / static_cast<double>(waiting.ctas);
  const double each = 2 * (device.dram_latency_cycles - device.l2_latency_cycles);
  EXPECT_NEAR(waiting.cycles - plain.cycles, each * tiles, 1e-6 * plain.cycles);
  EXPECT_NEAR(warm.cycles, plain.cycles, 1e-6 * plain.cycles);
  EXPECT_LE(waiting.l2_read_bytes, 1.001 * plain.l2_read_bytes);  // in step, they merge as well as before
}

// A CTA on each SM, all of one head: who asks for a tile that is under way waits for it as who asked first does.
TEST(TileWalk, CtasAloneOnTheirSmsWaitForDramTogether) {
  DeviceSpec device = load_device("h200");
  const DeviceSpec clocks = device;
  std::fill(device.gpc_clocks.begin(), device.gpc_clocks.end(), 1.0);
  TileWalkOptions options = times();
  options.noise = 0;
  for (const std::int64_t queries : {64, 2048}) {
    Case c = case_of(1, 1, 1, 2048, 128);
    c.problem.seqlen_q = queries;
    const auto walked = [&](double longer, bool warm) {
      options.longer_from_dram = longer, options.warm = warm;
      return walk_tiles(c, plan_for(c), device, 1, options);
    };
    const TileWalk plain = walked(0, false), cold = walked(300, false), warm = walked(300, true);
    const double tiles = static_cast<double>(cold.key_tiles) / static_cast<double>(cold.ctas);
    EXPECT_NEAR(cold.cycles - plain.cycles, 300 * tiles, 1e-6 * plain.cycles) << queries;
    EXPECT_NEAR(warm.cycles, plain.cycles, 1e-6 * plain.cycles) << queries;
  }
  // what L2 has nobody waits for, who comes behind an SM of a slower clock neither
  const Case c = case_of(1, 1, 1, 8192, 128);
  options.warm = true, options.noise = 1;
  const auto by_clock = [&](double longer) {
    options.longer_from_dram = longer;
    return walk_tiles(c, plan_for(c), clocks, 1, options);
  };
  EXPECT_DOUBLE_EQ(by_clock(300).busy_fraction, by_clock(0).busy_fraction);
  EXPECT_DOUBLE_EQ(by_clock(300).l2_read_bytes, by_clock(0).l2_read_bytes);
}

TEST(TileWalk, AWarmStartFindsWhatFitsAndNoMore) {
  const DeviceSpec device = load_device("h200");
  for (const std::int64_t seqlen : {512, 2048, 8192}) {
    const Case c = case_of(1, 16, 16, seqlen, 128);
    TileWalkOptions options = times();
    const TileWalk cold = walk_tiles(c, plan_for(c), device, 2, options);
    options.warm = true;
    const TileWalk warm = walk_tiles(c, plan_for(c), device, 2, options);
    // partitions whose copies age apart are no LRU stack: what is there already may cost a little
    EXPECT_LE(warm.dram_read_bytes, 1.001 * cold.dram_read_bytes);
    if (seqlen == 512) {  // 8 MiB in all
      EXPECT_EQ(warm.dram_read_bytes, 0);
    }
    if (seqlen == 8192) {  // 128 MiB go round: least recently used is what comes next
      EXPECT_GT(warm.dram_read_bytes, 0.95 * cold.dram_read_bytes);
      EXPECT_GT(warm.dram_write_bytes, cold.dram_write_bytes);  // the first call's output has to go
    }
    EXPECT_EQ(warm.key_tiles, cold.key_tiles);
    EXPECT_EQ(warm.sm_read_bytes, cold.sm_read_bytes);
    EXPECT_DOUBLE_EQ(warm.cycles, cold.cycles);
  }
}

TEST(TileWalk, NothingToDo) {
  for (const auto& [sq, sk] : {std::pair<std::int64_t, std::int64_t>{0, 64}, {64, 0}, {0, 0}}) {
    Case c = case_of(1, 1, 1, 64, 64);
    c.problem.seqlen_q = sq, c.problem.seqlen_k = sk;
    const TileWalk w = walk_tiles(c, plan_for(c), load_device("h100"), 2, times());
    EXPECT_EQ(w.dram_read_bytes, 0);
    EXPECT_EQ(w.sm_read_bytes, 0);
  }
}

// 132 SMs have room for two CTAs each: 66 CTAs are one on each of 66 SMs, 264 two on each, and of 396 the last 132 have
// theirs for themselves, 7000 cycles behind 10,000 of two.
TEST(TileWalk, AnSmsCtasAreThoseOfTheTimeInWhichItHasAny) {
  const DeviceSpec device = load_device("h200");
  const auto resident = [&](std::int64_t ctas) {
    const Case c = case_of(1, ctas, ctas, 128, 64);
    TileWalkOptions options = times();
    options.noise = 0;
    return walk_tiles(c, plan_for(c), device, 2, options).resident_ctas;
  };
  EXPECT_NEAR(resident(66), 1, 1e-9);
  EXPECT_NEAR(resident(264), 2, 0.05);
  EXPECT_NEAR(resident(396), (2 * 10000 + 7000) / 17000.0, 0.03);
}

TEST(TileWalk, NothingIsBusyWhereNothingTakesTime) {
  Case c = case_of(1, 1, 1, 64, 64);
  c.problem.seqlen_k = 0;
  TileWalkOptions options = times(0);
  options.cycles_per_cta = 0;
  EXPECT_EQ(walk_tiles(c, plan_for(c), load_device("h200"), 1, options).busy_fraction, 0);
}

// Lines that were dirty before are displaced first, so a kernel that turns L2 over writes them as well.
TEST(TileWalk, DirtyLinesAtTheStartAreWrittenOnceWhenSomethingDisplacesThem) {
  const DeviceSpec device = load_device("h200");
  TileWalkOptions options = times();
  options.sampling = 1;
  const auto walk = [&](const Case& c, std::int64_t dirty) {
    options.dirty_bytes_at_start = dirty;
    return walk_tiles(c, plan_for(c), device, 2, options);
  };
  const Case large = case_of(1, 16, 16, 4096, 128), small = case_of(1, 2, 2, 1024, 128);
  constexpr std::int64_t two_mib = 2 << 20;
  const TileWalk before = walk(large, 0), after = walk(large, two_mib);
  EXPECT_NEAR(after.dram_write_bytes - before.dram_write_bytes, two_mib, 0.02 * two_mib);
  EXPECT_NEAR(after.dirty_bytes_left / before.dirty_bytes_left, 1, 0.02);
  const TileWalk kept = walk(small, two_mib), output = walk(small, 0);
  EXPECT_EQ(kept.dram_write_bytes, 0) << "nothing displaces them";
  EXPECT_EQ(kept.dirty_bytes_left - output.dirty_bytes_left, two_mib);
}

// `park`: what a CTA stores in each key tile stays in L2, where the next CTA of its slot stores it too; what it stores
// once has left when the next one comes.
TEST(TileWalk, LocalMemoryIsOnePlaceASlot) {
  const Case c = case_of(1, 16, 16, 8192, 128);
  const auto written = [&](int each_tile, int once, std::optional<LocalFrame> frame = {}) {
    KernelPlan plan = plan_for(c);
    plan.spill_words_per_key_tile = each_tile, plan.spill_words_per_cta = once;
    TileWalkOptions options = times();
    options.frame = frame;
    return walk_tiles(c, plan, load_device("h200"), 2, options);
  };
  const TileWalk none = written(0, 0), each_tile = written(14, 0), both = written(14, 14);
  const double once = 14.0 * 4 * 128 * static_cast<double>(none.ctas);
  EXPECT_NEAR(each_tile.dram_write_bytes, none.dram_write_bytes, 0.25 * once);
  const double parked = both.dram_write_bytes - each_tile.dram_write_bytes;
  EXPECT_GT(parked, 0.6 * once);  // of sets that few lines of frames fall into the next CTA finds some dirty still
  EXPECT_LT(parked, 1.1 * once);
  EXPECT_NEAR(written(14, 14, {{14, 14}}).dram_write_bytes, each_tile.dram_write_bytes, 0.02 * once);
  // words that a frame has no room for are stored where others were
  EXPECT_NEAR(written(14, 42, {{28, 14}}).dram_write_bytes, both.dram_write_bytes, 0.05 * once);
  const TileWalk two_places = written(200, 0), one_place = written(200, 0, {{100, 100}}), half = written(100, 0);
  EXPECT_GT(two_places.dram_write_bytes, 4 * half.dram_write_bytes);
  EXPECT_LT(one_place.dram_write_bytes, 2 * half.dram_write_bytes);  // as often as the words are stored
  // half of the words have other homes
  EXPECT_NEAR(one_place.l2_crossing_bytes, two_places.l2_crossing_bytes, 0.02 * two_places.l2_crossing_bytes);
}

// Each slot's first CTA loads the sectors that not all of its lanes stored, those that come after it have them in L1.
TEST(TileWalk, WordsThatAreStoredInPartAreReadOnceASlot) {
  const DeviceSpec device = load_device("h200");
  const auto walked = [&](std::int64_t heads, int in_part) {
    const Case c = case_of(1, heads, heads, 2048, 64);
    KernelPlan plan = plan_for(c);
    plan.spill_words_per_cta = 16;
    TileWalkOptions options = times();
    options.frame = {16, 0, in_part};
    options.sampling = 1;
    return walk_tiles(c, plan, device, 2, options);
  };
  for (const std::int64_t heads : {4, 64}) {
    const TileWalk none = walked(heads, 0), some = walked(heads, 12);
    const double slots = std::min(static_cast<double>(none.ctas), 2.0 * 132), bytes = slots * 4 * 12 * 128;
    EXPECT_EQ(none.in_part_bytes, 0);
    EXPECT_EQ(some.in_part_bytes, bytes);
    EXPECT_NEAR(some.dram_read_bytes - none.dram_read_bytes, bytes, 0.005 * none.dram_read_bytes);
  }
}

// What ends in DRAM or is dirty in L2 at the end, with the words and without.
TEST(TileWalk, WordsAreStoredByTheCtasThatTheyAreOf) {
  const DeviceSpec device = load_device("h200");
  const auto stored = [&](const Case& c, const KernelPlan& plan) {
    TileWalkOptions options = times();
    options.sampling = 1, options.dirty_bytes_at_start = 0;
    const TileWalk w = walk_tiles(c, plan, device, 1, options);
    return w.dram_write_bytes + w.dirty_bytes_left;
  };
  constexpr double line = 128, sector = 32;
  for (const std::int64_t heads : {3, 64}) {  // 18 CTAs, and 384 query tiles of 132
    const Case c = case_of(1, heads, heads, 1024, 64);
    KernelPlan plan = fa3_plan(c.problem, 232448);
    plan.spill_words_per_cta = plan.spill_words_at_start = 0;
    const double none = stored(c, plan), ctas = std::min(132.0, 6.0 * static_cast<double>(heads));
    plan.spill_words_at_start = 6;
    EXPECT_DOUBLE_EQ(stored(c, plan) - none, 6 * line * plan.num_warps * ctas);
    plan.spill_words_at_start = 0, plan.producer_spill_sectors = 10;
    EXPECT_DOUBLE_EQ(stored(c, plan) - none, 10 * sector * ctas);
  }
  // query tiles of two key tiles, of which a head's first one sees none without a mask
  for (const std::int64_t queries : {128, 512}) {
    const Case c = case_of(1, 4, 4, queries, 128, Causal::bottom_right);
    KernelPlan plan = plan_for(c);
    const double none = stored(c, plan);
    plan.spill_words_per_cta = plan.spill_words_entering = 2;
    EXPECT_DOUBLE_EQ(stored(c, plan) - none, 2 * line * plan.num_warps * 4 * static_cast<double>(queries / 128 - 1));
  }
}

}  // namespace
}  // namespace attest
