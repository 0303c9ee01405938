// What warps of a CTA wait for that meet at barriers.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "attest/simulator/step_time.h"
#include "measured_rows.h"

namespace attest {
namespace {

KernelPlan warps(int n) {
  KernelPlan plan;
  plan.num_warps = n;
  plan.tile_m = 16 * n;
  return plan;
}

// The largest of two normal variates is 1 / sqrt(pi) above their mean, that of four 1.0294 (Teichroew 1956).
TEST(BarrierTime, WarpsOfACtaWaitForTheSlowest) {
  const DeviceSpec device = load_device("h200");
  StepDemand demand{400, 300, 200, 0};
  demand.waits = 500;
  const auto longer = [&](int n, double barriers) {
    StepDemand meeting = demand;
    meeting.barriers = barriers;
    const double cycle = cycles_per_key_tile(demand, warps(n), device, 1);
    return (cycles_per_key_tile(meeting, warps(n), device, 1) - cycle) / (cycle - 500) / device.step_deviation_mma_sync;
  };
  EXPECT_NEAR(longer(1, 1), 0, 1e-9);
  EXPECT_NEAR(longer(2, 1), 0.5642, 1e-3);
  EXPECT_NEAR(longer(4, 1), 1.0294, 1e-3);
  EXPECT_NEAR(longer(4, 2), 1.0294 * std::sqrt(2.0), 1e-3);  // which each have half of the variance
  Counts counts;
  counts.key_tiles = 2;
  counts.barriers = 8;
  EXPECT_EQ(step_demand(warps(4), device, counts, 0).barriers, 1);
}

// A warp's loads stand behind the copies of all of its CTA, whichever way these go through shared memory.
TEST(BarrierTime, WarpsOfACtaCopyTogether) {
  const DeviceSpec device = load_device("h200");
  const auto longer = [&](int n) {
    StepDemand demand{400, 300, 200, 0}, copying = demand;
    copying.copies = 30;
    return cycles_per_key_tile(copying, warps(n), device, 1) - cycles_per_key_tile(demand, warps(n), device, 1);
  };
  EXPECT_NEAR(longer(1), 0, 1e-9);
  EXPECT_NEAR(longer(4), 3 * 30, 1e-9);
  Counts counts;
  counts.key_tiles = 2;
  counts.wavefronts_by_kind[static_cast<std::size_t>(SharedAccess::Kind::fill_async)] = 80;
  counts.wavefronts_by_kind[static_cast<std::size_t>(SharedAccess::Kind::fill_sync)] = 40;
  counts.wavefronts_by_kind[static_cast<std::size_t>(SharedAccess::Kind::load_matrix)] = 1000;
  EXPECT_NEAR(step_demand(warps(4), device, counts, 0).copies, 120 / (2 * 4.0), 1e-9);
  KernelPlan calls = warps(4);  // of pages, whose granules its warps walk one by one
  calls.refill_call_words = 1;
  EXPECT_EQ(step_demand(calls, device, counts, 0).copies, 15);
  EXPECT_EQ(step_demand(calls, device, counts, 0, {.pages = true}).copies, 0);
}

// So the benchmark has it, where copies last longer than they take to issue: beyond a load alone a warp of 8 waits
// twice as long as one of 4, for the copies of all of them.
TEST(BarrierTime, LoadsStandBehindTheCopiesOfAllWarpsAsMeasured) {
  std::map<std::pair<std::string, std::string>, double> cycles;  // of a stride and warps
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_SM "/in_step.csv"))
    if (row.at("copies") == "16") cycles[{row.at("stride"), row.at("warps")}] = std::stod(row.at("cycles"));
  for (const char* stride : {"128", "144", "192", "240"}) {
    const double four = cycles.at({stride, "4"}), eight = cycles.at({stride, "8"});
    EXPECT_NEAR(eight / four, 2, 0.15) << stride;
  }
}

}  // namespace
}  // namespace attest
