#include "traffic.h"

#include <gtest/gtest.h>

#include <limits>

#include "attest/plan/launch.h"
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

}  // namespace
}  // namespace attest
