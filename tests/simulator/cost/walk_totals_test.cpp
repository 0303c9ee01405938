#include "walk_totals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tile_walks.h"

namespace attest {
namespace {

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
  EXPECT_NEAR(part.dram_read_bytes / whole.dram_read_bytes, 1, 0.03);  // 0.78 at one rate
}

// What bounds the time of an answer; simulator_bench has the time itself.
TEST(WalkTotals, HugeCasesSimulateNoMoreThanTheyMay) {
  const DeviceSpec device = load_device("h100");
  for (const Case& c : {case_of(1, 8, 8, 1 << 20, 128), case_of(4096, 64, 8, 2048, 128, Causal::bottom_right),
                        case_of(1 << 20, 16, 16, 64, 64), case_of(1, 1, 1, 1 << 20, 128, Causal::bottom_right),
                        case_of(1, 1, 1, 1 << 26, 64)}) {
    const KernelPlan plan = plan_for(c);
    const TileWalkOptions options = times();
    const TileWalk w = walk_tiles(c, plan, device, 2, options);
    const auto walked = w.simulated_fraction * static_cast<double>(w.key_tiles);
    EXPECT_LE(walked / w.key_tiles_per_event, 1.1 * static_cast<double>(options.max_events));
    EXPECT_LE(walked, 4e7);  // each key tile costs something, however few of its lines are followed
    const double lines_a_tile = plan.tile_n * 2.0 * static_cast<double>(c.problem.headdim) * 2 / 128;
    EXPECT_LE(walked * lines_a_tile / w.sampling, 4.4 * static_cast<double>(options.max_line_accesses));
    EXPECT_LT(w.simulated_fraction, 1);
    EXPECT_GE(w.dram_read_bytes, w.first_read_bytes);
    EXPECT_LE(w.dram_read_bytes, 1.01 * w.sm_read_bytes);
  }
}

}  // namespace
}  // namespace attest
