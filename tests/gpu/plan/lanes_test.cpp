// Every plan's copies, fragment loads, matrix steps and stores, lane by lane, give the tile product that they stand
// for.
#include <gtest/gtest.h>

#include <random>

#include "attest/plan/catalog.h"
#include "lane_machine.h"

namespace attest {
namespace {

using test::LaneMachine;

struct Ints {  // a tile in global memory
  int rows, columns, element_bytes;
  std::vector<std::uint8_t> bytes;
  Ints(int r, int c, int e) : rows(r), columns(c), element_bytes(e), bytes(static_cast<std::size_t>(r * c * e)) {}
  void set(int r, int c, long x) {
    std::memcpy(&bytes[static_cast<std::size_t>((r * columns + c) * element_bytes)], &x,
                static_cast<std::size_t>(element_bytes));
  }
  long at(int r, int c) const {
    if (r >= rows || c >= columns) return 0;
    const auto* from = &bytes[static_cast<std::size_t>((r * columns + c) * element_bytes)];
    if (element_bytes == 1) return static_cast<std::int8_t>(*from);
    if (element_bytes == 2) {
      std::int16_t x;
      std::memcpy(&x, from, 2);
      return x;
    }
    std::int32_t x;
    std::memcpy(&x, from, 4);
    return x;
  }
};

Ints random_tile(int rows, int columns, int element_bytes, std::mt19937& random) {
  Ints tile(rows, columns, element_bytes);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) tile.set(r, c, static_cast<long>(random() % 3) - 1);
  return tile;
}

void check_plan(const KernelPlan& plan, int queries, int keys) {
  ASSERT_EQ(plan.invalid(), nullptr);
  std::mt19937 random(7);
  Ints q = random_tile(queries, plan.headdim, plan.element_bytes, random);
  Ints k = random_tile(keys, plan.headdim, plan.element_bytes, random);
  Ints v = random_tile(keys, plan.headdim_v, plan.element_bytes, random);
  Ints o(queries, plan.headdim_v, plan.output_bytes());
  std::fill(o.bytes.begin(), o.bytes.end(), std::uint8_t{0x55});

  std::vector<std::uint8_t> smem(plan.smem_bytes(), 0xee);
  std::vector<int> touched(smem.size(), 0);
  LaneMachine machine{plan.element_bytes, smem};
  machine.touched = &touched;
  const int slot = plan.stages - 1;
  const auto copy = [&](Operand x, Ints& from, int slot_) {
    machine.global = &from.bytes;
    machine.row_pitch = from.columns * from.element_bytes;
    for (machine.warp_index = 0; machine.warp_index < plan.num_warps; ++machine.warp_index)
      emit_copy(plan, machine, copy_lanes(plan, machine, x), x, slot_, 0, from.rows);
  };
  copy(Operand::q, q, 0);
  copy(Operand::k, k, slot);
  copy(Operand::v, v, slot);
  for (const Operand x : {Operand::q, Operand::k, Operand::v})
    for (std::uint32_t b = 0; b < plan.tile_bytes(x); ++b)
      ASSERT_EQ(touched[plan.base(x, x == Operand::q ? 0 : slot) + b], 1) << "byte " << b << " of " << to_string(x);

  std::vector<LaneMachine::Output> outputs(static_cast<std::size_t>(plan.num_warps));
  for (machine.warp_index = 0; machine.warp_index < plan.num_warps; ++machine.warp_index) {
    const auto at = fragment_lanes(plan, machine);
    LaneMachine::Query fragments;
    if (plan.q_in_registers)
      for (int step = 0; step < plan.columns(Operand::q) / plan.k_step(); ++step)
        emit_load_query(plan, machine, at, fragments, step);
    LaneMachine::Scores s;
    emit_scores(plan, machine, at, s, fragments, slot);
    auto& out = outputs[static_cast<std::size_t>(machine.warp_index)];
    emit_output(plan, machine, at, out, s, slot);
  }
  for (machine.warp_index = 0; machine.warp_index < plan.num_warps; ++machine.warp_index)
    emit_stage(plan, machine, fragment_lanes(plan, machine), outputs[static_cast<std::size_t>(machine.warp_index)]);
  machine.global = &o.bytes;
  machine.row_pitch = o.columns * o.element_bytes;
  for (machine.warp_index = 0; machine.warp_index < plan.num_warps; ++machine.warp_index)
    emit_store(plan, machine, 0, queries);

  for (int i = 0; i < queries; ++i) {
    std::vector<long> scores(static_cast<std::size_t>(keys), 0);
    for (int j = 0; j < keys; ++j)
      for (int d = 0; d < plan.headdim; ++d) scores[static_cast<std::size_t>(j)] += q.at(i, d) * k.at(j, d);
    for (int c = 0; c < plan.headdim_v; ++c) {
      long sum = 0;  // of 8-bit scores where inputs are: these stay far below 128
      for (int j = 0; j < keys; ++j) sum += scores[static_cast<std::size_t>(j)] * v.at(j, c);
      ASSERT_EQ(o.at(i, c), plan.output_bytes() == 2 ? static_cast<std::int16_t>(sum) : sum)
          << "row " << i << " column " << c;
    }
  }
}

class Lanes : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(Lanes, GiveTheTileProduct) {
  const auto [headdim, element_bytes] = GetParam();
  for (const int headdim_v : {headdim, 64, 24})
    for (const auto& [tile_m, tile_n, warps] :
         {std::tuple{16, 16, 1}, {64, 32, 4}, {96, 48, 3}, {64, 16, 2}, {32, 96, 1}})
      for (const bool swizzled : {true, false}) {
        if (tile_n % (32 / element_bytes) != 0) continue;
        KernelPlan plan{.headdim = headdim,
                        .headdim_v = headdim_v,
                        .element_bytes = element_bytes,
                        .tile_m = tile_m,
                        .tile_n = tile_n,
                        .num_warps = warps,
                        .stages = warps % 2 + 1,
                        .q_in_registers = warps == 4,
                        .swizzled = swizzled};
        const auto granule = [](int bytes) { return copy_granule(bytes); };
        plan.copy_bytes_q = plan.copy_bytes_k = granule(headdim * element_bytes);
        plan.copy_bytes_v = granule(headdim_v * element_bytes);
        plan.copy_bytes_o = granule(headdim_v * plan.output_bytes());
        SCOPED_TRACE(testing::Message() << "d " << headdim << " dv " << headdim_v << " tile " << tile_m << "x" << tile_n
                                        << " warps " << warps);
        check_plan(plan, tile_m, tile_n);          // whole tiles
        check_plan(plan, tile_m - 3, tile_n - 5);  // ragged ones
      }
}

INSTANTIATE_TEST_SUITE_P(HeadDims, Lanes,
                         testing::Combine(testing::Values(1, 8, 16, 40, 64, 72, 96, 100, 129, 256),
                                          testing::Values(1, 2, 4)));

TEST(Fragment, MapsAreThoseOfTheIsa) {
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane / 4, in_group = lane % 4;  // the ISA's groupID and threadID_in_group
    for (int e = 0; e < 4; ++e) {
      EXPECT_EQ(accumulator(lane, e).row, e < 2 ? group : group + 8);
      EXPECT_EQ(accumulator(lane, e).col, in_group * 2 + (e & 1));
    }
    for (int i = 0; i < 8; ++i) {  // a0..a7 of .bf16 m16n8k16
      EXPECT_EQ(a_element16(lane, i / 2, i % 2).row, (i % 4) < 2 ? group : group + 8);
      EXPECT_EQ(a_element16(lane, i / 2, i % 2).col, in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0));
    }
    for (int i = 0; i < 4; ++i) {  // b0..b3
      EXPECT_EQ(b_element16(lane, i / 2, i % 2).row, in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0));
      EXPECT_EQ(b_element16(lane, i / 2, i % 2).col, group);
      EXPECT_EQ(a_element32(lane, i).row, i % 2 == 0 ? group : group + 8);
      EXPECT_EQ(a_element32(lane, i).col, i < 2 ? in_group : in_group + 4);
    }
    for (int i = 0; i < 16; ++i) {  // a0..a15 of .e4m3 m16n8k32
      EXPECT_EQ(a_element8(lane, i / 4, i % 4).row, (i % 8) < 4 ? group : group + 8);
      EXPECT_EQ(a_element8(lane, i / 4, i % 4).col, in_group * 4 + (i & 3) + (i >= 8 ? 16 : 0));
    }
    for (int i = 0; i < 8; ++i) {  // b0..b7
      EXPECT_EQ(b_element8(lane, i / 4, i % 4).row, in_group * 4 + (i & 3) + (i >= 4 ? 16 : 0));
      EXPECT_EQ(b_element8(lane, i / 4, i % 4).col, group);
    }
    for (int i = 0; i < 2; ++i) EXPECT_EQ(b_element32(lane, i).row, in_group + 4 * i);
  }
}

}  // namespace
}  // namespace attest
