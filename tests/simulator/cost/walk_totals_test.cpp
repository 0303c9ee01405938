#include "walk_totals.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <string>

#include "attest/plan/launch.h"
#include "attest/problem/error.h"
#include "tile_walks.h"

namespace attest {
namespace {

Case decode(std::int64_t nheads, std::int64_t keys) {
  Case c = case_of(1, nheads, nheads, keys, 128);
  c.problem.seqlen_q = 1;
  return c;
}

TEST(WalkTotals, SamplingSetsCostsLittleAccuracy) {
  const DeviceSpec device = load_device("h200");
  std::printf("   seqlen causal | DRAM read MB, every set | one in 8  one in 32  one in 128\n");
  for (const bool causal : {false, true}) {
    const Case c = case_of(1, 16, 16, 8192, 128, causal ? Causal::bottom_right : Causal::none);
    TileWalkOptions options = times();
    options.sampling = 1;
    const double exact = walk_tiles(c, plan_for(c), device, 2, options).dram_read_bytes;
    std::printf("%9d %6d | %23.1f |", 8192, causal, exact / 1e6);
    for (const int sampling : {8, 32, 128}) {
      options.sampling = sampling;
      const double sampled = walk_tiles(c, plan_for(c), device, 2, options).dram_read_bytes;
      std::printf(" %+8.2f%%", 100 * (sampled / exact - 1));
      EXPECT_NEAR(sampled / exact, 1, sampling == 128 ? 0.04 : 0.02);
    }
    std::printf("\n");
  }
}

TEST(WalkTotals, ExtrapolationAgreesWithTheWholeWalk) {
  const DeviceSpec device = load_device("h200");
  for (const bool causal : {false, true}) {
    const Case c = case_of(2, 64, 64, 4096, 128, causal ? Causal::bottom_right : Causal::none);
    TileWalkOptions options = times();
    const TileWalk whole = walk_tiles(c, plan_for(c), device, 2, options);
    ASSERT_EQ(whole.simulated_fraction, 1);
    options.max_events = whole.key_tiles / 3;
    const TileWalk part = walk_tiles(c, plan_for(c), device, 2, options);
    EXPECT_LT(part.simulated_fraction, 0.5);
    EXPECT_NEAR(part.dram_read_bytes / whole.dram_read_bytes, 1, 0.04);
    EXPECT_NEAR(part.cycles / whole.cycles, 1, 0.04);
    EXPECT_NEAR(part.l2_read_bytes / whole.l2_read_bytes, 1, 0.04);
    options.max_events = whole.key_tiles / 50;  // several key tiles an event as well
    const TileWalk coarse = walk_tiles(c, plan_for(c), device, 2, options);
    EXPECT_GT(coarse.key_tiles_per_event, 1);
    EXPECT_NEAR(coarse.cycles / whole.cycles, 1, 0.06);
  }
}

// Each CTA has keys of its own, whose lines it takes the time to find; some waves, one, and five of which two are
// walked.
TEST(WalkTotals, KeysThatAreReadOnceGoOnAsTheyBegin) {
  struct Shape {
    std::int64_t nheads, keys, splits;
  };
  const DeviceSpec device = load_device("h200");
  for (const auto& [nheads, keys, splits] :
       {Shape{600, 1 << 15, 1}, Shape{40, 1 << 18, 16}, Shape{20, 1 << 19, 1}, Shape{1320, 1 << 14, 1}}) {
    Case c = decode(nheads, keys);
    c.num_splits = splits;
    const KernelPlan plan = with_features(plan_for(c), c);
    TileWalkOptions options = times();
    const TileWalk part = walk_tiles(c, plan, device, 2, options);
    EXPECT_LT(part.simulated_fraction, 0.5) << nheads;
    options.max_rows_found = std::numeric_limits<std::int64_t>::max();
    const TileWalk whole = walk_tiles(c, plan, device, 2, options);
    ASSERT_EQ(whole.simulated_fraction, 1);
    EXPECT_NEAR(part.dram_read_bytes / whole.dram_read_bytes, 1, 0.01) << nheads;
    EXPECT_NEAR(part.l2_read_bytes / whole.l2_read_bytes, 1, 0.01) << nheads;
    EXPECT_NEAR(part.l2_crossing_bytes / whole.l2_crossing_bytes, 1, 0.01) << nheads;
    EXPECT_NEAR(part.cycles / whole.cycles, 1, 0.02) << nheads;
    std::printf("%ld heads: cycles %.4f of those of the whole walk\n", static_cast<long>(nheads),
                part.cycles / whole.cycles);
  }
}

// What goes through L2 at a CTA's start and end, and in combine(), does not repeat with the key tiles.
TEST(WalkTotals, CrossingsOfCutWalksAreThoseOfTheirTilesAndOfAllCtas) {
  Case c = decode(40, 1 << 18);
  c.problem.seqlen_q = 128, c.num_splits = 16;
  const KernelPlan plan = with_features(plan_for(c), c);
  TileWalkOptions options = times();
  options.max_rows_found = 1 << 20;
  const TileWalk part = walk_tiles(c, plan, load_device("h200"), 2, options);
  EXPECT_LT(part.simulated_fraction, 0.06);
  options.max_rows_found = std::numeric_limits<std::int64_t>::max();
  const TileWalk whole = walk_tiles(c, plan, load_device("h200"), 2, options);
  ASSERT_EQ(whole.simulated_fraction, 1);
  EXPECT_NEAR(part.l2_crossing_bytes / whole.l2_crossing_bytes, 1, 0.01);
}

// Partial O and LSE that L2 would still hold are read from DRAM by a second kernel that begins with an empty one.
TEST(WalkTotals, SplitsOfAnL2ThatIsEmptiedBetweenLaunchesComeFromDram) {
  Case c = decode(16, 1 << 13);
  c.problem.seqlen_q = 512, c.num_splits = 4;
  const KernelPlan plan = with_features(plan_for(c), c);
  TileWalkOptions options = times();
  const TileWalk kept = walk_tiles(c, plan, load_device("h200"), 2, options);
  options.empties_between = true;
  const TileWalk emptied = walk_tiles(c, plan, load_device("h200"), 2, options);
  const double partials = kept.partial_bytes + kept.partial_lse_bytes;
  EXPECT_LT(kept.partial_missed_bytes, 0.05 * partials);
  EXPECT_NEAR(emptied.partial_missed_bytes, partials, 0.01 * partials);
  EXPECT_NEAR(emptied.dram_read_bytes - kept.dram_read_bytes, emptied.partial_missed_bytes - kept.partial_missed_bytes,
              0.01 * partials);
  EXPECT_LT(emptied.dram_write_bytes, kept.dram_write_bytes);  // what the first had left dirty is nobody's
}

// Of 1.5 waves two thirds of the CTAs run two an SM, and the rest alone; of half a wave all are alone, and of 100 waves
// few.
TEST(WalkTotals, KeyTilesAreSharedByAsManyCtasAsAnSmHas) {
  const DeviceSpec device = load_device("h200");
  const auto shared = [&](std::int64_t nheads, std::int64_t max_events) {
    const Case c = case_of(1, nheads, nheads, 66 * 128, 128);
    TileWalkOptions options = times();
    options.max_events = max_events;
    const TileWalk walk = walk_tiles(c, plan_for(c), device, 2, options);
    EXPECT_NEAR(std::accumulate(walk.shared.begin(), walk.shared.end(), 0.0), 1, 1e-9);
    return walk.shared;
  };
  EXPECT_EQ(shared(2, 1'500'000).size(), 1U);
  EXPECT_NEAR(shared(6, 1'500'000).at(0), 1.0 / 3, 0.02);
  EXPECT_NEAR(shared(6, 30'000).at(0), 1.0 / 3, 0.02);  // several key tiles an event
  EXPECT_LT(shared(400, 1'500'000).at(0), 0.01);        // of which two waves are walked
}

// Of its one CTA 12 times L2 are walked at most.
TEST(WalkTotals, KeysOfASingleWaveTakeTheirTimeHoweverManyTheyAre) {
  const DeviceSpec device = load_device("h100");
  double before = 0;
  for (const std::int64_t keys : {1 << 20, 1 << 24, 1 << 26}) {
    const Case c = decode(1, keys);
    const double a_key = walk_tiles(c, plan_for(c), device, 2, times()).cycles / static_cast<double>(keys);
    if (before != 0) {
      EXPECT_NEAR(a_key / before, 1, 0.01) << keys;
    }
    before = a_key;
  }
}

// Its first query tiles see few keys, so that a simulated key tile stores far more than one of the others.
TEST(WalkTotals, ExtrapolationWritesNoMoreThanIsStored) {
  for (const char* device : {"h100", "orin-agx"}) {
    const Case c = case_of(1, 2, 2, 1 << 18, 128, Causal::bottom_right);
    TileWalkOptions options = times();
    options.max_events = 20'000;
    const TileWalk w = walk_tiles(c, plan_for(c), load_device(device), 2, options);
    ASSERT_LT(w.simulated_fraction, 0.2);
    const double stored = 2.0 * (1 << 18) * (128 * 2 + 4);
    EXPECT_LE(w.dram_write_bytes, stored + static_cast<double>(options.dirty_bytes_at_start)) << device;
    EXPECT_GE(w.dram_write_bytes, 0.5 * stored) << device;
  }
}

TEST(WalkTotals, DirtyLinesThatDoNotFitL2AreNotTheKernels) {
  DeviceSpec device = load_device("orin-agx");  // keeps 7 of 16 ways of 4 MiB dirty
  const Case c = case_of(1, 1, 1, 64, 128);
  const double stored = 64 * (128 * 2 + 4);
  EXPECT_LE(walk_tiles(c, plan_for(c), device, 1, times()).dram_write_bytes, 1.5 * stored);
}

// Causal with few keys: only the last query tile sees any, and a walk of the first ones meets none.
TEST(WalkTotals, WhatIsReadPassesL2AlsoWhereNoneOfItIsSimulated) {
  Case c = case_of(1, 1, 1, 1 << 22, 64, Causal::bottom_right);
  c.problem.seqlen_k = 1;
  TileWalkOptions options = times();
  options.max_events = 10'000;
  const TileWalk w = walk_tiles(c, plan_for(c), load_device("h100"), 2, options);
  ASSERT_GT(w.dram_read_bytes, 0);
  EXPECT_GE(w.l2_read_bytes, w.dram_read_bytes);
}

TEST(WalkTotals, ExtrapolationKnowsOfHeadsThatReadTheSameKeysMuchLater) {
  const DeviceSpec device = load_device("h200");
  const Case c = case_of(64, 16, 2, 1024, 128);
  KernelPlan plan = plan_for(c);
  for (const GridOrder order : {GridOrder::tiles_batch_heads, GridOrder::tiles_heads_batch}) {
    plan.grid_order = order;
    TileWalkOptions options = times();
    const TileWalk whole = walk_tiles(c, plan, device, 2, options);
    options.max_events = whole.key_tiles / 4;
    const TileWalk part = walk_tiles(c, plan, device, 2, options);
    EXPECT_LT(part.simulated_fraction, 0.5);
    EXPECT_NEAR(part.dram_read_bytes / whole.dram_read_bytes, 1, 0.05) << static_cast<int>(order);
  }
}

// Of one key head L2 keeps what the call before has read, which the part's CTAs all read, and nothing of the queries.
TEST(WalkTotals, ExtrapolationReadsQueriesAtTheirOwnRate) {
  const DeviceSpec device = load_device("h200");
  Case c = case_of(16, 32, 1, 2048, 64);
  c.problem.seqlen_k = 4096;
  TileWalkOptions options = times();
  options.warm = true;
  const TileWalk whole = walk_tiles(c, plan_for(c), device, 2, options);
  ASSERT_EQ(whole.simulated_fraction, 1);
  options.max_events = whole.key_tiles / 3;
  const TileWalk part = walk_tiles(c, plan_for(c), device, 2, options);
  EXPECT_LT(part.simulated_fraction, 0.3);
  EXPECT_NEAR(part.dram_read_bytes / whole.dram_read_bytes, 1, 0.05);  // 0.78 at one rate; by where tensors lie
}

// What bounds the time of an answer; simulator_bench has the time itself.
TEST(WalkTotals, HugeCasesSimulateNoMoreThanTheyMay) {
  const DeviceSpec device = load_device("h100");
  for (const Case& c : {case_of(1, 8, 8, 1 << 20, 128), case_of(4096, 64, 8, 2048, 128, Causal::bottom_right),
                        case_of(1 << 20, 16, 16, 64, 64), case_of(1, 1, 1, 1 << 20, 128, Causal::bottom_right),
                        case_of(1, 1, 1, 1 << 26, 64), decode(64, 1 << 26)}) {
    const KernelPlan plan = plan_for(c);
    const TileWalkOptions options = times();
    const TileWalk w = walk_tiles(c, plan, device, 2, options);
    const auto walked = w.simulated_fraction * static_cast<double>(w.key_tiles);
    EXPECT_LE(walked / w.key_tiles_per_event, 3.3 * static_cast<double>(options.max_events));
    EXPECT_LE(walked, 4e7);  // each key tile costs something, however few of its lines are followed
    if (c.problem.seqlen_q == 1) {
      EXPECT_LE(walked * plan.tile_n * 2, 1.1 * static_cast<double>(options.max_rows_found));
    }
    const double lines_a_tile = plan.tile_n * 2.0 * static_cast<double>(c.problem.headdim) * 2 / 128;
    EXPECT_LE(walked * lines_a_tile / w.sampling, 6.6 * static_cast<double>(options.max_line_accesses));
    EXPECT_LT(w.simulated_fraction, 1);
    EXPECT_GE(w.dram_read_bytes, w.first_read_bytes);
    EXPECT_LE(w.dram_read_bytes, 1.01 * w.sm_read_bytes);
  }
}

// Of 16 to 256 sets, which are hardly sampled, all accesses would be followed for minutes; of a short case they are
// few.
TEST(WalkTotals, AnL2OfFewSetsIsRefusedWhereTooMuchOfItWouldBeFollowed) {
  DeviceSpec device = load_device("h100");
  const auto walked = [&](std::int64_t seqlen) {
    const Case c = case_of(1, 64, 64, seqlen, 128);
    KernelPlan plan = plan_for(c);
    plan.spill_words_per_key_tile = 150;
    return walk_tiles(c, plan, device, 2, times()).dram_read_bytes;
  };
  for (const int slices : {1, 4, 16}) {
    device.l2_bytes = slices * 65536, device.l2_slices_per_partition = slices;
    try {
      walked(16384);
      ADD_FAILURE() << slices;
    } catch (const InvalidInput& error) {
      EXPECT_EQ(error.field(), "l2_bytes");
      const std::string begin = fmt::format("l2_bytes: {} makes {} sets", slices * 65536, slices * 16);
      EXPECT_TRUE(std::string(error.what()).starts_with(begin)) << error.what();
      EXPECT_TRUE(std::string(error.what()).ends_with("must not exceed 3.6e+07")) << error.what();
    }
    EXPECT_GT(walked(512), 0);
  }
}

}  // namespace
}  // namespace attest
