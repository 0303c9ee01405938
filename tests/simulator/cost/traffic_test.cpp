#include "traffic.h"

#include <gtest/gtest.h>

#include <limits>

#include "attest/plan/catalog.h"
#include "attest/plan/launch.h"
#include "attest/simulator/report.h"
#include "grid.h"
#include "schedule.h"
#include "tile_walks.h"

namespace attest {
namespace {

/// What combine() did with parts that no L2 holds.
struct Combined {
  double missed = 0, crossed = 0, written_back = 0;
  std::int64_t completed = 0;
};
Combined combined(const Grid& grid, const DeviceSpec& device, std::int64_t max_rows) {
  const Schedule schedule(grid, device, 2);
  const TileWalkOptions options = times();
  Traffic traffic(grid, schedule, device, 1, options);
  traffic.leave_dirty_lines(options.dirty_bytes_at_start);
  traffic.combine(max_rows);
  return {traffic.count().partials.of(1), static_cast<double>(traffic.count().crossed_in_combine),
          static_cast<double>(traffic.written_back_sectors()), traffic.completed_sectors()};
}

// Half of all rows and a tile's are not whole numbers of them, nor are the rows of a head one of tiles.
TEST(Traffic, PartsOfSplitsThatAreManyTimesL2AreCombinedAsTheyBegin) {
  for (const char* name : {"h200", "orin-agx"}) {
    const DeviceSpec device = load_device(name);
    Case c = case_of(2, 8, 8, 3000, 128);
    c.problem.seqlen_k = 17, c.num_splits = name[0] == 'h' ? 64 : 8;
    const KernelPlan plan = with_features(plan_for(c), c);
    const Grid grid(c, plan);
    const std::int64_t rows = choose_resolution(grid, device, 1000, 264, times()).combined_rows;
    EXPECT_LT(static_cast<double>(rows * grid.splits), 0.5 * grid.partial_rows) << name;
    const Combined part = combined(grid, device, rows),
                   whole = combined(grid, device, std::numeric_limits<std::int64_t>::max());
    EXPECT_NEAR(part.missed / whole.missed, 1, 0.01) << name;
    EXPECT_NEAR(part.written_back / whole.written_back, 1, 0.04) << name;
    EXPECT_EQ(part.completed, whole.completed) << name;
    if (device.l2_partitions > 1) {
      EXPECT_NEAR(part.crossed / whole.crossed, 1, 0.01) << name;
    }
  }
}

// A word crosses where its line's home is not its SM's side, and spilled words are most of what crosses in these calls.
TEST(Traffic, WhatIsFollowedOfFramesCrossesAsAllOfItDoes) {
  const DeviceSpec device = load_device("h200");
  for (const int headdim : {64, 128}) {
    Case c = case_of(1, 4, 4, 8192, headdim);
    c.problem.causal = headdim == 128 ? Causal::bottom_right : Causal::none;
    const auto crossed = [&](int sampling) {
      TileWalkOptions options;
      options.sampling = sampling;
      return simulate(c, plan_named("fa2", c, device), device, "fa2", options).l2_crossing_bytes;
    };
    const double all = crossed(1);
    for (const int sampling : {4, 8, 16})
      EXPECT_NEAR(crossed(sampling) / all, 1, 0.02) << headdim << ", one set in " << sampling;
  }
}

// Four heads of 24,576 keys fill a partition; where heads are before rows each lies in one piece, and many short heads
// lie as one.
TEST(Traffic, OfHeadsThatLieApartMoreSetsAreFollowed) {
  const DeviceSpec device = load_device("h200");
  const auto sampling = [&](int heads, int keys, Layout::Order order) {
    Case c = case_of(1, heads, heads, keys, 96);
    c.layout.order = order;
    const KernelPlan plan = plan_named("fa2", c, device);
    const Grid grid(c, plan);
    const Schedule schedule(grid, device, 2);
    return choose_resolution(grid, device, schedule.tasks(), schedule.slots(), times()).sampling;
  };
  EXPECT_EQ(sampling(8, 24576, Layout::Order::bshd), 8);
  EXPECT_EQ(sampling(8, 24576, Layout::Order::bhsd), 32);
  EXPECT_EQ(sampling(72, 8192, Layout::Order::bshd), 32);
}

// Where a few heads fill L2 three times as many key tiles are walked.
TEST(Traffic, MoreIsWalkedWhereAFewHeadsFillL2) {
  const DeviceSpec device = load_device("h200");
  const auto walked = [&](int heads, int keys) {
    const Case c = case_of(1, heads, heads, keys, 96);
    const KernelPlan plan = plan_named("fa2", c, device);
    const Grid grid(c, plan);
    const Schedule schedule(grid, device, 2);
    const Resolution r = choose_resolution(grid, device, schedule.tasks(), schedule.slots(), TileWalkOptions{});
    EXPECT_LT(r.tasks, schedule.tasks());
    return static_cast<double>(r.tasks) * grid.key_tiles_a_cta() / static_cast<double>(TileWalkOptions{}.max_events);
  };
  EXPECT_NEAR(walked(1000, 24576), 3, 0.1);
  EXPECT_NEAR(walked(9000, 8192), 1, 0.1);
}

}  // namespace
}  // namespace attest
