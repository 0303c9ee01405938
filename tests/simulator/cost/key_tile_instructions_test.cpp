#include "attest/simulator/key_tile_instructions.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "attest/plan/catalog.h"
#include "attest/plan/sm80_tiles.h"
#include "attest/simulator/step_time.h"
#include "measured_rows.h"

namespace attest {
namespace {

// From the tile alone: 64 keys, rows of a warp, 16-byte chunks of K and V over the CTA's threads.
TEST(KeyTileInstructions, AreThoseOfTheTile) {
  for (const Sm80Tile tile : all_sm80_tiles) {
    const KernelPlan plan = sm80_plan(tile);
    const int blocks = plan.tile_m / 16 / plan.num_warps, keys = plan.tile_n, d = plan.headdim, d_v = plan.headdim_v;
    const KeyTileInstructions each = key_tile_instructions(plan);
    EXPECT_EQ(each.multiply, 2 * blocks * (keys / 16) * (d / 16 + d_v / 16));
    const int of_q = plan.q_in_registers ? 0 : blocks * d / 16;
    EXPECT_EQ(each.load_matrix, of_q + keys / 16 * d / 16 + keys / 16 * d_v / 16);
    EXPECT_EQ(each.copies, keys * (d + d_v) * 2 / 16 / 32 / plan.num_warps);
    EXPECT_EQ(each.exponentials, 16 * blocks * keys / 32 + 2 * blocks);
    EXPECT_EQ(each.barriers, plan.merged_wait ? 1 : 2);
    EXPECT_EQ(each.multiply_warpgroup, 0);
  }
}

TEST(KeyTileInstructions, OfFlashAttention3AreOfWarpgroups) {
  Problem p;
  p.headdim = p.headdim_v = 128;
  const KernelPlan plan = fa3_plan(p, 227 * 1024);
  const KeyTileInstructions each = key_tile_instructions(plan);
  // 64 rows a warpgroup: a step of 16 of the head dimension for S, of 16 keys for O
  EXPECT_EQ(each.multiply_warpgroup, 128 / 16 + plan.tile_n / 16);
  EXPECT_EQ(each.exponentials, 64 * plan.tile_n / 128 + 2);
  EXPECT_EQ(each.multiply, 0);
}

// What the forced spill's whole key tile executes beyond that of a kernel with the same key tiles and registers enough.
TEST(KeyTileInstructions, ASpilledWordIsThreeInstructions) {
  std::map<std::string, double> instructions;
  double words = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_MEASURED "/turn_instructions.csv")) {
    if (row.at("arch") != "90" || row.at("loop") != "whole") continue;
    instructions[row.at("plan")] = std::stod(row.at("instructions"));
    if (row.at("plan") == "sm80-spill") words = std::stod(row.at("words_stored"));
  }
  Counts counts;
  counts.key_tiles = 1;
  const DeviceSpec h200 = load_device("h200");
  const auto issued = [&](int spilled) { return step_demand({}, h200, counts, spilled).issue; };
  const double word = (instructions.at("sm80-spill") - instructions.at("sm80-no-skip")) / words;
  EXPECT_NEAR(issued(1) - issued(0), word, 0.05);
}

}  // namespace
}  // namespace attest
