// How key tiles vary in a walk, and what CTAs of an SM find in its L1.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "attest/simulator/step_time.h"
#include "attest/simulator/tile_walk.h"

namespace attest {
namespace {

constexpr double cycles = 1e5;  // of a key tile: DRAM, which has it sooner, binds none

DeviceSpec device_of_one_clock() {
  DeviceSpec device = load_device("h200");
  std::fill(device.gpc_clocks.begin(), device.gpc_clocks.end(), 1.0);
  return device;
}

/// One head of 264 query tiles, so that two CTAs an SM walk its 256 key tiles together.
Case one_head() {
  Case c;
  c.problem = {1, 1, 1, 264 * 64, 256 * 64, 128, 128, Dtype::bf16, {}, Causal::none, -1, -1};
  return c;
}

TileWalkOptions options_of(double noise) {
  TileWalkOptions options;
  options.cycles_per_key_tile = {cycles, cycles};
  options.noise = noise;
  return options;
}

/// When the followed SMs' CTAs have done each of their key tiles, by SM and place on it.
std::map<std::pair<int, int>, std::vector<double>> ends_of(const TileWalk& walk) {
  std::map<std::pair<int, int>, std::vector<double>> ends;
  for (const TimelineEvent& e : walk.timeline)
    if (e.kind == TimelineEvent::Kind::key_tile) ends[{e.sm, e.slot}].push_back(e.end);
  return ends;
}

struct Moments {
  double sum = 0, squares = 0;
  int n = 0;
  void add(double x) { sum += x, squares += x * x, ++n; }
  double mean() const { return sum / n; }
  double deviation() const { return std::sqrt(squares / n - mean() * mean()); }
};

Moments key_tiles_of(const TileWalk& walk) {
  Moments all;
  for (const auto& [place, ends] : ends_of(walk))
    for (std::size_t i = 1; i < ends.size(); ++i) all.add(ends[i] - ends[i - 1]);
  return all;
}

TEST(WalkVariation, IsTheStepsOfWhatIsNotWaitedFor) {
  const DeviceSpec device = device_of_one_clock();
  const KernelPlan plan;
  const double step = step_deviation(plan, device, 2);
  ASSERT_GT(step, 0);
  for (const double noise : {0.0, 1.0, 2.0})
    for (const double waits : {0.0, 0.5 * cycles}) {
      TileWalkOptions options = options_of(noise);
      options.waits_per_key_tile.assign(options.cycles_per_key_tile.size(), waits);
      const Moments tiles = key_tiles_of(walk_tiles(one_head(), plan, device, 2, options));
      ASSERT_EQ(tiles.n, 4 * 2 * 255);
      EXPECT_NEAR(tiles.mean() / cycles, 1, 0.002);
      EXPECT_NEAR(tiles.deviation(), noise * step * (cycles - waits), 0.03 * noise * step * cycles + 1e-3);
    }
}

// CTAs in step vary with their SM; what one is ahead of the other does not add up, and waits are in it where L1 lets
// go.
TEST(WalkVariation, CtasInStepStayWithinAKeyTilesOfEachOther) {
  const DeviceSpec device = device_of_one_clock();
  const KernelPlan plan;
  const double step = step_deviation(plan, device, 2), widest = 2 * std::sqrt(3.0);  // of uniform numbers
  for (const bool lets_go : {false, true}) {
    TileWalkOptions options = options_of(1);
    options.in_step = true, options.l1_lets_go = lets_go;
    options.waits_per_key_tile.assign(options.cycles_per_key_tile.size(), 0.5 * cycles);
    const double of_sm = 0.5 * step * cycles, within = lets_go ? 2 * of_sm : of_sm;
    const TileWalk walk = walk_tiles(one_head(), plan, device, 2, options);
    const auto ends = ends_of(walk);
    ASSERT_EQ(ends.size(), 8u);
    Moments apart;
    double farthest = 0, between_sms = 0;
    const std::vector<double>& first = ends.begin()->second;
    for (const auto& [place, mine] : ends) {
      if (place.second != 0) continue;
      const std::vector<double>& other = ends.at({place.first, 1});
      for (std::size_t i = 0; i < mine.size(); ++i) {
        apart.add(mine[i] - other[i]);
        farthest = std::max(farthest, std::abs(mine[i] - other[i]));
        between_sms = std::max(between_sms, std::abs(mine[i] - first[i]));
      }
    }
    EXPECT_NEAR(apart.deviation(), std::sqrt(2.0) * within, 0.05 * within);
    EXPECT_LE(farthest, widest * within * 1.0001);
    EXPECT_GT(between_sms, widest * within);
    EXPECT_NEAR(key_tiles_of(walk).deviation(), std::hypot(of_sm, std::sqrt(2.0) * within), 0.05 * within);
  }
}

// Of two CTAs that walk a head together the second finds what the first has asked for.
TEST(WalkVariation, TheSecondCtaOfAnSmFindsTheFirstsTilesInL1) {
  const DeviceSpec device = device_of_one_clock();
  const KernelPlan plan;
  TileWalkOptions options = options_of(0);
  const TileWalk without = walk_tiles(one_head(), plan, device, 2, options);
  EXPECT_EQ(without.l1_served, 0);
  EXPECT_EQ(without.together, 0);
  options.l1_serves = 0.75;
  const TileWalk walk = walk_tiles(one_head(), plan, device, 2, options);
  EXPECT_NEAR(walk.l1_served, 0.75 / 2, 1e-9);
  EXPECT_NEAR(walk.together, 1, 1 / 256.0);
  EXPECT_EQ(walk_tiles(one_head(), plan, device, 1, options).l1_served, 0);
  Case heads = one_head();
  heads.problem.nheads = heads.problem.nheads_k = 264, heads.problem.seqlen_q = 64;
  EXPECT_EQ(walk_tiles(heads, plan, device, 2, options).l1_served, 0);
  options.cycles_together = {cycles, 0.5 * cycles};
  EXPECT_NEAR(walk_tiles(one_head(), plan, device, 2, options).cycles / walk.cycles, 0.5, 0.005);
}

}  // namespace
}  // namespace attest
