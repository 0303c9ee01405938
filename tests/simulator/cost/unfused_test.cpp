#include "attest/simulator/unfused.h"

#include <gtest/gtest.h>

namespace attest {
namespace {

TEST(Unfused, ALongSequenceMovesItsMatrixFourTimes) {
  Problem p{4, 32, 32, 2048, 2048, 64, 64, Dtype::fp16, {}, Causal::bottom_right, -1, -1};
  const UnfusedCost cost = unfused_cost(p, load_device("a100"));
  const double matrix = 4.0 * 32 * 2048 * 2048 * 2, tensor = 4.0 * 32 * 2048 * 64 * 2;
  EXPECT_DOUBLE_EQ(cost.matrix_bytes, matrix);
  EXPECT_DOUBLE_EQ(cost.dram_read_bytes, 2 * matrix + 3 * tensor);
  EXPECT_DOUBLE_EQ(cost.dram_write_bytes, 2 * matrix + tensor);
  EXPECT_DOUBLE_EQ(cost.flops, 4.0 * 4 * 32 * 2048 * 2048 * 64);
  EXPECT_DOUBLE_EQ(cost.steps[1].dram_read_bytes, matrix);
  EXPECT_DOUBLE_EQ(cost.steps[1].flops, 0);
  EXPECT_DOUBLE_EQ(cost.steps[2].dram_write_bytes, tensor);
  EXPECT_DOUBLE_EQ(cost.steps[0].time_us + cost.steps[1].time_us + cost.steps[2].time_us, cost.time_us);
}

TEST(Unfused, AMatrixThatFitsIsFoundInL2) {
  Problem p{1, 8, 8, 512, 512, 64, 64, Dtype::fp16, {}, Causal::none, -1, -1};
  const UnfusedCost cost = unfused_cost(p, load_device("h100"));
  EXPECT_DOUBLE_EQ(cost.dram_read_bytes, 3.0 * 8 * 512 * 64 * 2);
}

TEST(Unfused, NeverFasterThanItsBytesOrItsLaunches) {
  const DeviceSpec device = load_device("h200");
  for (const std::int64_t s : {1, 64, 1024, 8192}) {
    Problem p{1, 16, 16, s, s, 128, 128, Dtype::bf16, {}, Causal::none, -1, -1};
    const UnfusedCost cost = unfused_cost(p, device);
    EXPECT_GE(cost.time_us, 3e6 * device.launch_overhead_seconds);
    if (s == 8192) {
      EXPECT_GE(cost.time_us, 1e6 * (cost.dram_read_bytes + cost.dram_write_bytes) / device.dram_bytes_per_second);
    }
  }
}

}  // namespace
}  // namespace attest
