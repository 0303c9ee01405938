// What if the kernel did it otherwise: each change of a field of the plan moves what it must, and by how much where
// that is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "attest/plan/catalog.h"
#include "attest/plan/launch.h"
#include "attest/simulator/case_counts.h"
#include "attest/simulator/report.h"

namespace attest {
namespace {

constexpr auto load_matrix = static_cast<std::size_t>(SharedAccess::Kind::load_matrix);

Case square(std::int64_t headdim, std::int64_t seqlen, Causal causal = Causal::none) {
  Case c;
  c.problem.nheads = c.problem.nheads_k = 16;
  c.problem.headdim = c.problem.headdim_v = headdim;
  c.problem.seqlen_q = c.problem.seqlen_k = seqlen;
  c.problem.causal = causal;
  return c;
}

KernelPlan small_plan(std::int64_t headdim) {
  KernelPlan plan;
  plan.headdim = plan.headdim_v = static_cast<int>(headdim);
  plan.tile_n = 32;
  return plan;
}

// ldmatrix on row-major tiles, known by hand: rows of 16-byte chunks meet in a group of banks every gcd(chunks, 8)
// rows.
TEST(WhatIf, RowMajorTilesConflictAsKnownByHandAndPaddingOrSwizzlingRemovesIt) {
  for (const auto& [headdim, ways] :
       {std::tuple{64, 8}, {128, 8}, {192, 8}, {256, 8}, {32, 4}, {96, 4}, {80, 2}, {16, 2}}) {
    KernelPlan plan = small_plan(headdim);
    plan.swizzled = false;
    const Case c = square(headdim, 128);
    const Counts row_major = count_case(c, plan);
    EXPECT_EQ(row_major.wavefronts_by_kind[load_matrix], ways * row_major.ideal_by_kind[load_matrix]) << headdim;
    plan.pad_chunks = 1;
    const Counts padded = count_case(c, plan);
    EXPECT_EQ(padded.wavefronts_by_kind[load_matrix], row_major.ideal_by_kind[load_matrix]) << headdim;
    EXPECT_EQ(padded.global_bytes, row_major.global_bytes);
    plan.pad_chunks = 0, plan.swizzled = true;
    EXPECT_EQ(count_case(c, plan).wavefronts_by_kind[load_matrix], row_major.ideal_by_kind[load_matrix]) << headdim;
  }
}

TEST(WhatIf, RowsOf72ElementsDoNotConflict) {  // 64 and one chunk of padding, or a tile of 9 chunks
  KernelPlan plan = small_plan(64);
  plan.swizzled = false, plan.pad_chunks = 1;
  EXPECT_EQ(plan.layout(Operand::k).row_bytes(), 72u * 2);
  const Counts c = count_case(square(64, 256), plan);
  EXPECT_EQ(c.wavefronts_by_kind[load_matrix], c.ideal_by_kind[load_matrix]);
}

TEST(WhatIf, PaddingCostsSharedMemory) {
  KernelPlan plan = small_plan(128);
  const std::uint32_t before = plan.smem_bytes();
  plan.pad_chunks = 1;
  EXPECT_EQ(plan.smem_bytes(), before + 16 * (64 + 2 * 32));  // Q's rows, and K's and V's
}

TEST(WhatIf, WithoutSwizzleEverythingElseStaysAndTimeGrows) {
  const DeviceSpec device = load_device("h200");
  const Case c = square(128, 2048);
  KernelPlan plan = plan_named("fa2", c, device);
  const SimulationReport with = simulate(c, plan, device);
  plan.swizzled = false;
  const SimulationReport without = simulate(c, plan, device);
  EXPECT_EQ(with.smem_wavefronts, with.smem_wavefronts_ideal);
  EXPECT_EQ(without.smem_wavefronts_ideal, with.smem_wavefronts_ideal);
  EXPECT_GT(without.smem_wavefronts, 6 * with.smem_wavefronts);
  EXPECT_EQ(without.sm_read_bytes, with.sm_read_bytes);
  EXPECT_EQ(without.smem_bytes_per_cta, with.smem_bytes_per_cta);
  EXPECT_GT(without.time_us, 2 * with.time_us);
  EXPECT_EQ(without.bound, "shared memory");
}

// Half of a causal square is masked: in tiles of 64, 128 * 129 / 2 of 128 * 128 are visited if some are skipped.
TEST(WhatIf, WithoutSkippingEveryKeyTileIsVisited) {
  const DeviceSpec device = load_device("h200");
  const Case c = square(64, 8192, Causal::bottom_right);
  KernelPlan plan = plan_named("attest", c, device);
  plan.tile_m = 64;
  const SimulationReport skipping = simulate(c, plan, device);
  plan.skips_tiles = false;
  const SimulationReport visiting = simulate(c, plan, device);
  EXPECT_EQ(skipping.walk.key_tiles, 16 * 128 * 129 / 2);
  EXPECT_EQ(visiting.walk.key_tiles, 16 * 128 * 128);
  EXPECT_EQ(skipping.flops, visiting.flops);
  EXPECT_DOUBLE_EQ(visiting.flops_executed, skipping.flops_executed * 256 / 129);
  EXPECT_DOUBLE_EQ(visiting.exp_count, skipping.exp_count * 256 / 129);
  EXPECT_GT(visiting.time_us, 1.7 * skipping.time_us);
  EXPECT_LT(visiting.time_us, 2.1 * skipping.time_us);
}

// Two instructions a score, whatever multiplies; what is read, written and exponentiated stays.
TEST(WhatIf, MasksOfFullTilesTakeTimeAlone) {
  const DeviceSpec device = load_device("h200");
  const Case c = square(128, 2048);
  for (const char* name : {"attest", "fa3", "cudnn"}) {
    KernelPlan plan = plan_named(name, c, device);
    const Counts before = count_case(c, plan);
    const double cycles = simulate(c, plan, device).cycles;
    plan.masks_full_tiles = true;
    Counts after = count_case(c, plan);
    EXPECT_LT(before.masked_key_tiles, before.key_tiles) << name;
    EXPECT_EQ(after.masked_key_tiles, after.key_tiles) << name;
    after.masked_key_tiles = before.masked_key_tiles;
    EXPECT_EQ(after, before) << name;
    EXPECT_GT(simulate(c, plan, device).cycles, 1.02 * cycles) << name;
  }
}

// A tile of K or V, 64 x 64 x 2 bytes over 64 threads, waits in 32 registers each: fewer CTAs an SM, or spill.
TEST(WhatIf, SynchronousCopiesTakeRegisters) {
  const DeviceSpec device = load_device("a100");
  KernelPlan plan;
  plan.tile_m = 32, plan.num_warps = 2;
  const RegisterEstimate with = estimate_registers(plan, device);
  plan.copy_kind = CopyKind::synchronous;
  const RegisterEstimate without = estimate_registers(plan, device);
  EXPECT_EQ(with.copies, 0);
  EXPECT_EQ(without.copies, 32);
  EXPECT_EQ(without.demand, with.demand + 32);
  EXPECT_LT(occupancy(plan, without.registers_per_thread, device).by_registers,
            occupancy(plan, with.registers_per_thread, device).by_registers);

  KernelPlan wide;  // 32 rows a warp of headdim 128 leave no room
  wide.headdim = wide.headdim_v = 128, wide.tile_m = 128;
  const Counts asynchronous = count_case(square(128, 512), wide);
  EXPECT_EQ(estimate_registers(wide, device).spill_words, 0);
  wide.copy_kind = CopyKind::synchronous;
  EXPECT_GT(estimate_registers(wide, device).spill_words, 0);
  EXPECT_EQ(count_case(square(128, 512), wide).smem_wavefronts, asynchronous.smem_wavefronts);
}

// 4 bytes a word, 128 threads, every key tile of every CTA: at the SM's side exactly, and never read from DRAM.
TEST(WhatIf, ForcedSpillIsWritten) {
  const DeviceSpec device = load_device("h200");
  const Case c = square(128, 2048);
  KernelPlan plan = plan_named("fa2", c, device);
  plan.spill_words_per_key_tile = plan.spill_words_per_cta = 0;
  const SimulationReport without = simulate(c, plan, device);
  plan.spill_words_per_key_tile = 20;
  const SimulationReport with = simulate(c, plan, device);
  EXPECT_EQ(with.sm_write_bytes - without.sm_write_bytes, 4.0 * 128 * 20 * (16 * 16 * 32));
  EXPECT_EQ(with.spill_bytes_per_thread, 80);
  EXPECT_EQ(with.parked_bytes_per_thread, 0);
  EXPECT_THAT(to_table(with), testing::HasSubstr("80 B spilled; "));
  plan.spill_words_per_key_tile = 0, plan.spill_words_per_cta = 10;
  const SimulationReport parked = simulate(c, plan, device);
  EXPECT_EQ(parked.sm_write_bytes - without.sm_write_bytes, 4.0 * 128 * 10 * (16 * 16));
  EXPECT_EQ(parked.parked_bytes_per_thread, 40);
  EXPECT_THAT(to_table(parked), testing::HasSubstr("0 B spilled a key tile, 40 B once; "));
  EXPECT_THAT(to_table(parked), testing::HasSubstr("spill included"));
  EXPECT_GT(with.time_us, without.time_us);
  EXPECT_EQ(with.smem_wavefronts, without.smem_wavefronts);
}

}  // namespace
}  // namespace attest
