#include "attest/simulator/unified_buffer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "attest/problem/error.h"
#include "attest/simulator/compulsory.h"

namespace attest {
namespace {

Case case_of(std::int64_t heads, std::int64_t seqlen, int headdim) {
  Case c;
  c.problem.nheads = c.problem.nheads_k = heads;
  c.problem.seqlen_q = c.problem.seqlen_k = seqlen;
  c.problem.headdim = c.problem.headdim_v = headdim;
  return c;
}

KernelPlan plan_of(int headdim, int tile_m, int tile_n) {
  KernelPlan plan;
  plan.headdim = plan.headdim_v = headdim;
  plan.tile_m = tile_m, plan.tile_n = tile_n;
  return plan;
}

// By hand: 64 of 128 rows a vector core; S 64 x 64 fp32, P 64 x 64 and O and P V 64 x 128 fp32, two fp32 a row.
TEST(UnifiedBuffer, FootprintByHand) {
  const BufferFootprint f = buffer_footprint(plan_of(128, 128, 64), load_device("ascend910b"));
  EXPECT_EQ(f.unified_buffer, 16384 + 8192 + 2 * 32768 + 512);
  EXPECT_EQ(f.l1, 128 * 256 + 2 * 64 * 256 + 128 * 64 * 2);
  EXPECT_EQ(f.l0a, 128 * 32);
  EXPECT_EQ(f.l0b, 128 * 32);
  EXPECT_EQ(f.l0c, 128 * 128 * 4);
  DeviceSpec three = load_device("ascend910b");
  three.num_vector_cores = 3 * three.num_cube_cores;  // the first has 43 of 128 rows
  EXPECT_EQ(buffer_footprint(plan_of(128, 128, 64), three).unified_buffer, 43 * (f.unified_buffer / 64));
}

// 4 heads of 8 query tiles by 16 key tiles. Q once, K and V for each query tile; S in fp32, P in 16 bits and P V in
// fp32 are written once and read once.
TEST(UnifiedBuffer, TrafficByHand) {
  const DeviceSpec device = load_device("ascend910b");
  const Case c = case_of(4, 1024, 128);
  const SimulationReport r = simulate(c, plan_of(128, 128, 64), device);
  const double tiles = 4 * 8 * 16, exchanged = tiles * (128 * 64 * 4 + 128 * 64 * 2 + 128 * 128 * 4);
  EXPECT_EQ(exchange_bytes(r.plan, device, r.walk.key_tiles), exchanged);
  EXPECT_EQ(r.sm_read_bytes, 4 * 1024 * 256 + tiles * 2 * 64 * 256 + exchanged);
  EXPECT_EQ(r.sm_write_bytes, 4 * 1024 * (256 + 4) + exchanged);
  EXPECT_EQ(r.dram_read_bytes + r.dram_write_bytes, static_cast<double>(compulsory_bytes(c.problem).total()));
  EXPECT_GT(r.time_us, 0);
  EXPECT_EQ(to_json(r).at("buffers").at("exchange_bytes"), static_cast<std::int64_t>(exchanged));
  EXPECT_NE(to_table(r).find("through L2"), std::string::npos);
}

TEST(UnifiedBuffer, CoresThatExchangeWithoutGlobalMemoryMoveLess) {
  DeviceSpec device = load_device("ascend910b");
  const Case c = case_of(4, 1024, 128);
  const SimulationReport crossing = simulate(c, plan_of(128, 128, 64), device);
  device.scores_through_global_memory = 0;
  const SimulationReport staying = simulate(c, plan_of(128, 128, 64), device);
  EXPECT_EQ(staying.sm_read_bytes, 4 * 1024 * 256 + 4 * 8 * 16 * 2 * 64 * 256);
  EXPECT_LT(staying.cycles, crossing.cycles);
  EXPECT_EQ(staying.dram_read_bytes, crossing.dram_read_bytes);
}

TEST(UnifiedBuffer, KeysThatDoNotFitL2AreReadAgain) {
  DeviceSpec device = load_device("ascend910b");
  const Case c = case_of(1, 65536, 128);  // 32 MiB of K and V, 512 query tiles over 24 cores: 22 turns
  const SimulationReport fits = simulate(c, plan_of(128, 128, 64), device);
  EXPECT_EQ(fits.dram_read_bytes, 3.0 * 65536 * 256);
  device.l2_bytes = 16 << 20;
  EXPECT_EQ(simulate(c, plan_of(128, 128, 64), device).dram_read_bytes, (1 + 2.0 * 22) * 65536 * 256);
}

TEST(UnifiedBuffer, WhatIsExchangedGoesToDramWhereItDoesNotFitL2) {
  DeviceSpec device = load_device("ascend910b");
  const Case c = case_of(24, 1024, 128);
  const KernelPlan plan = plan_of(128, 128, 64);
  const double before = simulate(c, plan, device).dram_write_bytes;
  device.l2_bytes = 2 << 20;  // less than 24 cores' two tiles of 112 KiB
  const SimulationReport r = simulate(c, plan, device);
  EXPECT_EQ(r.dram_write_bytes, before + exchange_bytes(plan, device, r.walk.key_tiles));
}

TEST(UnifiedBuffer, ATileThatDoesNotFitIsRefusedByTheBuffer) {
  const DeviceSpec device = load_device("ascend910b");
  const auto refusal = [&](const KernelPlan& plan, const DeviceSpec& d) -> std::string {
    try {
      simulate(case_of(1, 1024, plan.headdim), plan, d);
    } catch (const InvalidInput& error) {
      EXPECT_EQ(error.field(), "tile_m");
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(plan_of(64, 128, 256), device), "");
  EXPECT_NE(refusal(plan_of(64, 256, 512), device).find("unified_buffer_bytes = 196608"), std::string::npos);
  EXPECT_NE(refusal(plan_of(64, 128, 512), device).find("unified_buffer_bytes"), std::string::npos);
  EXPECT_NE(refusal(plan_of(64, 64, 512 - 32),
                    [&] {
                      DeviceSpec d = device;
                      d.l0c_bytes = 65536;
                      return d;
                    }())
                .find("l0c_bytes = 65536"),
            std::string::npos);
}

TEST(UnifiedBuffer, NothingToDo) {
  const SimulationReport r = simulate(case_of(1, 0, 64), plan_of(64, 64, 64), load_device("ascend910b"));
  EXPECT_EQ(r.time_us, 0);
  EXPECT_EQ(r.bound, "nothing to do");
  EXPECT_FALSE(to_table(r).empty());
}

}  // namespace
}  // namespace attest
