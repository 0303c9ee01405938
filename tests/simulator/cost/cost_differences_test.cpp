#include "cost_differences.h"

#include <gmock/gmock.h>

namespace attest {
namespace {

using testing::ElementsAre, testing::HasSubstr;

/// 100 us, with a tenth of it at DRAM and of its slots empty.
SimulationReport of_100_us() {
  SimulationReport r;
  r.time_us = 100;
  r.walk.busy_fraction = 0.9;
  r.dram_read_bytes = 1e9;
  r.utilisation = {{"DRAM", 0.1}};
  return r;
}

TEST(CostDifferences, TheNarrowestCopyCounts) {
  SimulationReport base = of_100_us(), other = base;
  base.plan.copy_bytes_q = base.plan.copy_bytes_k = base.plan.copy_bytes_v = 16;
  other.plan = base.plan;
  EXPECT_THAT(extra_costs(base, other), ElementsAre());
  other.plan.copy_bytes_v = 2;
  EXPECT_THAT(extra_costs(base, other), ElementsAre("copies of 2 instead of 16 bytes"));
  EXPECT_THAT(extra_costs(other, base), ElementsAre());
}

// Of a case twice as large: 125 us more than twice at DRAM, 120 or, were idle slots not twice as many too, 130 empty.
TEST(CostDifferences, OfALargerCaseAreThoseBesideItsGrowth) {
  const SimulationReport base = of_100_us();
  SimulationReport other = base;
  other.time_us = 200;
  other.walk.busy_fraction = 0.3;
  other.dram_read_bytes = 3e9;
  other.utilisation = {{"DRAM", 0.725}};
  EXPECT_THAT(extra_costs(base, other, 2),
              ElementsAre(HasSubstr("50% more DRAM bytes"), HasSubstr("CTA slots in use")));
  other.dram_read_bytes = 2e9;
  EXPECT_THAT(extra_costs(base, other, 2), ElementsAre(HasSubstr("CTA slots in use")));
}

}  // namespace
}  // namespace attest
