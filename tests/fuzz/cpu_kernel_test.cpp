#include "attest/cpu/cpu_kernel.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attest/cpu/mutants.h"
#include "attest/fuzz/generators.h"
#include "attest/fuzz/properties.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

TEST(CpuPlan, IsValidForEveryCase) {
  for (std::uint64_t k = 0; k < 20000; ++k) {
    const Case c = generate_case(17, k);
    ASSERT_EQ(cpu_plan({}, c).invalid(), nullptr) << command_line(c);
  }
}

TEST(CpuPlan, VariesWithTheSeedAndWithNothingElse) {
  Case c;
  std::set<std::tuple<int, int, int, int>> tiles;
  for (c.seed = 0; c.seed < 200; ++c.seed) {
    const KernelPlan plan = cpu_plan({}, c);
    tiles.insert({plan.tile_m, plan.tile_n, plan.num_warps, plan.stages});
    Case longer = c;
    longer.problem.seqlen_k = 4096, longer.problem.causal = Causal::top_left;
    EXPECT_EQ(cpu_plan({}, longer), plan) << "a shrunk case would run another kernel";
  }
  EXPECT_GT(tiles.size(), 30u);
}

TEST(CpuPlan, TakesWhatTheSpecFixes) {
  const CpuPlanSpec spec = parse_cpu_plan_spec(
      "tile_m=64,tile_n=48,warps=2,stages=3,q_in_registers=1,lazy_rescale=0,merged_wait=1,"
      "order=ascending,grid=tiles-batch-heads");
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Case c;
    c.seed = seed;
    const KernelPlan plan = cpu_plan(spec, c);
    EXPECT_EQ(std::tuple(plan.tile_m, plan.tile_n, plan.num_warps, plan.stages), std::tuple(64, 48, 2, 3));
    EXPECT_TRUE(plan.q_in_registers && !plan.lazy_rescale && plan.merged_wait);
    EXPECT_EQ(plan.key_order, KeyOrder::ascending);
    EXPECT_EQ(plan.grid_order, GridOrder::tiles_batch_heads);
  }
}

TEST(CpuPlan, RefusesByFieldValueAndLimit) {
  const auto message = [](std::string_view text) -> std::string {
    try {
      cpu_plan(parse_cpu_plan_spec(text), Case{});
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message("tile_m=0"), "tile_m: '0' is no integer of 1 to 512");
  EXPECT_EQ(message("tile_m=99999999999"), "tile_m: '99999999999' is no integer of 1 to 512");
  EXPECT_EQ(message("warps="), "warps: '' is no integer of 1 to 512");
  EXPECT_EQ(message("lazy_rescale=2"), "lazy_rescale: '2' is neither 0 nor 1");
  EXPECT_THAT(message("tile=3"), testing::StartsWith("kernel: 'tile=3' sets none of tile_m"));
  EXPECT_EQ(message("tile_m=64,tile_m=64"), "kernel: 'tile_m=64' sets tile_m again");
  EXPECT_EQ(message("order=up"), "order: 'up' is neither descending nor ascending");
  EXPECT_THAT(message("tile_m=72,warps=4"),
              testing::HasSubstr("makes no kernel: tile_m 72 is no multiple of 16, the rows of a matrix step"));
  EXPECT_THAT(message("merged_wait=1,stages=1"), testing::HasSubstr("merged_wait true needs stages >= 2, not 1"));
}

// Scores far apart: one or two keys a row decide, and what is off in them is off in every column.
TEST(CpuKernelScale, LargeScalesAreNotAccused) {
  CpuKernel kernel;
  ForwardBuffers buffers;
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16, Dtype::fp32})
    for (const double scale : {1.0, 8.0, 200.0, 512.0, 4096.0, 65536.0, 1048576.0})
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        Case c;
        c.problem.seqlen_q = 64, c.problem.seqlen_k = 500, c.problem.dtype = dtype, c.problem.softmax_scale = scale;
        c.seed = seed;
        Trial trial(kernel, buffers, c);
        const Verdict verdict = judge(property_named("reference"), trial);
        EXPECT_EQ(verdict.status, Status::passed) << verdict.detail << "\n" << command_line(c);
      }
}

// ALiBi alone makes the scores: rows round P alike, whatever the slope.
TEST(CpuKernelScale, AlibiAtScaleZeroIsNotAccused) {
  CpuKernel kernel;
  ForwardBuffers buffers;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Case c;
    Problem& p = c.problem;
    p.batch = 4, p.nheads = 2, p.nheads_k = 1, p.seqlen_q = 28, p.seqlen_k = 4, p.headdim = 1, p.headdim_v = 18;
    p.dtype = Dtype::bf16, p.softmax_scale = 0, p.alibi = true;
    c.seed = seed;
    Trial trial(kernel, buffers, c);
    const Verdict verdict = judge(property_named("reference"), trial);
    EXPECT_EQ(verdict.status, Status::passed) << verdict.detail << "\n" << command_line(c);
  }
}

// What a case is told may not depend on the cases that the kernel ran before: the line that repeats it runs it alone.
TEST(CpuKernelHazards, AreThoseOfAFreshKernel) {
  const auto mutant = std::find_if(forward_mutants().begin(), forward_mutants().end(),
                                   [](const Mutant& m) { return m.id == "53-no-barrier-before-refill"; });
  ASSERT_NE(mutant, forward_mutants().end());
  const auto used = mutant->make({});
  ForwardBuffers buffers;
  int hazards = 0;
  for (std::uint64_t k = 0; k < 200; ++k) {
    const Case c = generate_case(29, k, {1 << 12, 1 << 18, 4096});
    const auto fresh = mutant->make({});
    Trial again(*used, buffers, c), alone(*fresh, buffers, c);
    const std::vector<std::string> told = again.run().report.hazards;
    EXPECT_EQ(told, alone.run().report.hazards) << command_line(c);
    hazards += !told.empty();
  }
  EXPECT_GT(hazards, 20);
}

// Every schedule, with tiles of every shape, on cases of every kind.
class CpuSchedule : public testing::TestWithParam<const char*> {};

TEST_P(CpuSchedule, AgreesWithTheReferenceAndHasNoHazards) {
  CpuKernel kernel(parse_cpu_plan_spec(GetParam()));
  ForwardBuffers buffers;
  for (std::uint64_t k = 0; k < 150; ++k) {
    const Case c = generate_case(23, k, {64, 1 << 18, 2048});
    if (const auto why = kernel.unsupported(c)) {  // tiles of 16 or 48 keys
      ASSERT_TRUE(is_fp8(c.problem.dtype)) << *why;
      continue;
    }
    Trial trial(kernel, buffers, c);
    for (const char* name : {"hazards", "reference"}) {
      const Verdict verdict = judge(property_named(name), trial);
      ASSERT_EQ(verdict.status, Status::passed) << verdict.detail << "\n" << command_line(c);
    }
  }
}

// Rows of packed heads, wherever heads may share tiles: with splits, lengths of their own and pages. Not bit for bit
// what they give unpacked: the CPU's matrix products depend on how many rows they have.
TEST(CpuKernelPacked, AgreesWithTheReferenceAndHasNoHazards) {
  const CpuPlanSpec spec =
      parse_cpu_plan_spec("stages=2,warps=4,tile_m=128,tile_n=32,merged_wait=1,lazy_rescale=1,packed_heads=1");
  CpuKernel kernel(spec);
  ForwardBuffers buffers;
  int cases = 0, splits = 0, packed_rows = 0, pages = 0;
  for (std::uint64_t k = 0; k < 3000; ++k) {
    Case c = generate_case(31, k, {64, 1 << 18, 2048});
    c.backward = false;
    if (cpu_plan(spec, c).packed_heads == 1) continue;
    Trial trial(kernel, buffers, c);
    for (const char* name : {"hazards", "reference"}) {
      const Verdict verdict = judge(property_named(name), trial);
      ASSERT_EQ(verdict.status, Status::passed) << verdict.detail << "\n" << command_line(c);
    }
    ++cases;
    splits += c.num_splits > 1, packed_rows += !c.problem.varlen_q.empty(), pages += c.layout.page_size > 0;
  }
  EXPECT_GT(cases, 40);
  EXPECT_GT(splits, 4);
  EXPECT_GT(packed_rows, 4);
  EXPECT_GT(pages, 4);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, CpuSchedule,
    testing::Values("stages=1,warps=1,tile_m=16,tile_n=16,order=ascending",
                    "stages=1,warps=4,tile_m=128,tile_n=64,lazy_rescale=1",
                    "stages=1,warps=4,tile_m=64,tile_n=128,q_in_registers=1",
                    "stages=2,warps=4,tile_m=128,tile_n=32,merged_wait=1,lazy_rescale=1,order=ascending",
                    "stages=2,warps=2,tile_m=32,tile_n=48,merged_wait=0",
                    "stages=2,warps=4,tile_m=128,tile_n=64,merged_wait=1,packed_heads=1",
                    "stages=3,warps=3,tile_m=96,tile_n=16,merged_wait=1",
                    "stages=4,warps=8,tile_m=256,tile_n=64,merged_wait=0,q_in_registers=1"));

}  // namespace
}  // namespace attest
