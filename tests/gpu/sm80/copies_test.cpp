// Where the kernels' copies put and take each byte, held to the plan's layout of shared memory.
#include <gtest/gtest.h>

#include "attest/plan/sm80_tiles.h"
#include "copy_probe.h"

namespace attest {
namespace {

using test::CopyWay;

class Copies : public testing::TestWithParam<Sm80Tile> {
 protected:
  void SetUp() override {
    if (const std::string why = test::unavailable(sm80_plan(GetParam())); !why.empty()) GTEST_SKIP() << why;
  }
};

std::vector<std::uint8_t> pattern(std::size_t bytes) {
  std::vector<std::uint8_t> x(bytes);
  for (std::size_t i = 0; i < bytes; ++i) x[i] = static_cast<std::uint8_t>((i * 2654435761u) >> 13);
  return x;
}

struct Variant {
  CopyWay way;
  int granule, columns_less, limit_less;  // head dimension and limit below the tile's
};
constexpr Variant variants[] = {{CopyWay::none, 16, 0, 0},   {CopyWay::whole, 16, 0, 0},  {CopyWay::whole, 16, 8, 0},
                                {CopyWay::ragged, 16, 8, 5}, {CopyWay::ragged, 16, 0, 1}, {CopyWay::general, 16, 8, 3},
                                {CopyWay::general, 8, 4, 5}, {CopyWay::general, 4, 2, 0}, {CopyWay::general, 2, 3, 7}};

std::string name_of(const testing::TestParamInfo<Sm80Tile>& info) {
  const KernelPlan plan = sm80_plan(info.param);
  return "d" + std::to_string(plan.headdim) + "v" + std::to_string(plan.headdim_v) + "m" + std::to_string(plan.tile_m);
}

void check_copy(KernelPlan plan, const Variant& variant, Operand x) {
  plan.headdim -= variant.columns_less;
  plan.headdim_v -= variant.columns_less;
  plan.copy_bytes_q = plan.copy_bytes_k = plan.copy_bytes_v = variant.granule;
  const int slot = x == Operand::q ? 0 : plan.stages - 1, row0 = 3, limit = row0 + plan.rows(x) - variant.limit_less;
  const int row_bytes = plan.columns(x) * 2 + 32, valid = plan.valid_columns(x) * 2;
  const auto from = pattern(std::size_t(row_bytes) * std::size_t(limit + 8));
  const auto got = test::run_tile_copy(plan, variant.way, x, slot, row0, limit, from, row_bytes);
  std::vector<std::uint8_t> expected(plan.smem_bytes(), 0xee);
  for (int row = 0; variant.way != CopyWay::none && row < plan.rows(x); ++row)
    for (int byte = 0; byte < plan.columns(x) * 2; ++byte) {
      const auto at = plan.base(x, slot) + plan.layout(x).offset({row, byte / 16}) + std::uint32_t(byte % 16);
      const bool there = row0 + row < limit && byte < valid;
      expected[at] = there ? from[std::size_t((row0 + row) * row_bytes + byte)] : std::uint8_t{0};
    }
  ASSERT_EQ(got, expected) << to_string(x) << " by " << variant.granule << " bytes";
}

TEST_P(Copies, PutEveryByteWhereThePlanSaysAndNoOther) {
  for (const Variant& variant : variants)
    for (const Operand x : {Operand::q, Operand::k, Operand::v}) check_copy(sm80_plan(GetParam()), variant, x);
}

// A pass of 32 rows, of a tile of 16: half of the threads have no row.
TEST(CopiesOfOtherTiles, LeaveAloneWhatLiesPastTheTile) {
  KernelPlan plan;
  plan.headdim = plan.headdim_v = 32;
  plan.tile_n = 16;
  if (const std::string why = test::unavailable(plan); !why.empty()) GTEST_SKIP() << why;
  ASSERT_GT(plan.copy_rows(Operand::k), plan.tile_n);
  for (plan.stages = 1; plan.stages <= 2; ++plan.stages)
    for (const int limit_less : {0, 5})
      for (const Operand x : {Operand::k, Operand::v}) check_copy(plan, {CopyWay::general, 16, 0, limit_less}, x);
}

TEST_P(Copies, StoreRowsOfOBelowTheLimitAndNothingElse) {
  for (const Variant& variant : variants) {
    KernelPlan plan = sm80_plan(GetParam());
    plan.headdim_v -= variant.columns_less;
    plan.copy_bytes_o = variant.granule;
    const int row0 = 3, limit = row0 + plan.tile_m - variant.limit_less;
    const int row_bytes = plan.columns(Operand::o) * 2 + 32;
    const auto shared = pattern(plan.smem_bytes());
    const std::size_t bytes = std::size_t(row_bytes) * std::size_t(row0 + plan.tile_m + 1);
    const auto got = test::run_tile_store(plan, row0, limit, shared, bytes, row_bytes);
    std::vector<std::uint8_t> expected(bytes, 0xee);
    for (int row = 0; row0 + row < limit; ++row)
      for (int byte = 0; byte < plan.headdim_v * 2; ++byte)
        expected[std::size_t((row0 + row) * row_bytes + byte)] =
            shared[plan.layout(Operand::o).offset({row, byte / 16}) + std::uint32_t(byte % 16)];
    ASSERT_EQ(got, expected) << variant.granule << " bytes";
  }
}

INSTANTIATE_TEST_SUITE_P(Tiles, Copies, testing::ValuesIn(all_sm80_tiles), name_of);

}  // namespace
}  // namespace attest
