#include "attest/plan/swizzle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

namespace attest {
namespace {

TEST(Swizzle, SendsEightRowsOfAChunkToEightBankGroups) {
  for (int chunks = 1; chunks <= 64; ++chunks) {
    const SmemLayout layout{chunks, Swizzle::for_rows_of(chunks)};
    for (int row0 = 0; row0 < 32; row0 += 8)
      for (int chunk = 0; chunk < chunks; ++chunk) {
        std::set<std::uint32_t> groups;
        for (int r = 0; r < 8; ++r) groups.insert(layout.offset({row0 + r, chunk}) / 16 % 8);
        EXPECT_EQ(groups.size(), 8u) << chunks << " chunks a row, chunk " << chunk;
      }
  }
}

TEST(Swizzle, WithoutItRowMajorTilesConflictAsHardwareDoes) {
  const auto ways = [](int headdim) {  // 16-bit elements
    const SmemLayout layout{headdim / 8, Swizzle{0, 0}};
    std::array<int, 8> rows{};
    int worst = 0;
    for (int r = 0; r < 8; ++r) worst = std::max(worst, ++rows[layout.offset({r, 0}) / 16 % 8]);
    return worst;
  };
  for (const int headdim : {64, 128, 192, 256}) EXPECT_EQ(ways(headdim), 8);
  for (const int headdim : {32, 96}) EXPECT_EQ(ways(headdim), 4);
  EXPECT_EQ(ways(80), 2);
  EXPECT_EQ(ways(72), 1);
}

TEST(SmemLayout, IsAPermutationOfTheTile) {
  for (int chunks = 1; chunks <= 64; ++chunks) {
    const SmemLayout layout{chunks, Swizzle::for_rows_of(chunks)};
    std::set<std::uint32_t> seen;
    for (int row = 0; row < 16; ++row)
      for (int chunk = 0; chunk < chunks; ++chunk) seen.insert(layout.offset({row, chunk}));
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(16 * chunks));
    EXPECT_EQ(*seen.rbegin(), layout.bytes(16) - 16);
  }
}

TEST(SmemLayout, SplitsIntoALanePartAndConstants) {
  for (int chunks = 2; chunks <= 64; chunks += 2) {
    const SmemLayout layout{chunks, Swizzle::for_rows_of(chunks)};
    for (int row0 = 0; row0 < 64; row0 += 8)
      for (int chunk0 = 0; chunk0 + 1 < chunks; chunk0 += 2)
        for (int r = 0; r < 16; ++r)
          for (int c = 0; c < 2; ++c)
            ASSERT_EQ(layout.offset({row0 + r, chunk0 + c}),
                      (layout.lane_part({r, c}) ^ layout.step_xor(chunk0)) + layout.step_add(row0, chunk0))
                << chunks << " chunks, row " << row0 << "+" << r << ", chunk " << chunk0 << "+" << c;
  }
}

// PTX ISA, Tensor Maps, swizzling modes, on byte addresses: 128 B: bits 4-6 ^= bits 7-9; 64 B: 4-5 ^= 7-8; 32 B: 4
// ^= 7.
std::uint32_t swizzled_address(std::uint32_t address, int panel_bytes) {
  const auto bit = [&](int i) { return address >> i & 1; };
  std::uint32_t result = address;
  result ^= bit(7) << 4;
  if (panel_bytes >= 64) result ^= bit(8) << 5;
  if (panel_bytes >= 128) result ^= bit(9) << 6;
  return result;
}

TEST(PanelLayout, IsTheSwizzleOfByteAddressesInPanels) {
  for (int chunks = 2; chunks <= 32; chunks += 2)
    for (const int rows : {64, 80, 112, 128, 176, 192}) {
      const PanelLayout layout{rows, chunks, true}, linear{rows, chunks, false};
      const int row_bytes = chunks * 16, panel = row_bytes % 128 == 0 ? 128 : row_bytes % 64 == 0 ? 64 : 32;
      ASSERT_EQ(layout.panel_chunks() * 16, panel);
      std::set<std::uint32_t> taken;
      for (int row = 0; row < rows; ++row)
        for (int chunk = 0; chunk < chunks; ++chunk) {
          const int at = chunk * 16 / panel * rows * panel + row * panel + chunk * 16 % panel;
          const auto address = static_cast<std::uint32_t>(at);
          ASSERT_EQ(linear.offset({row, chunk}), address) << chunks << " chunks, row " << row << ", chunk " << chunk;
          ASSERT_EQ(layout.offset({row, chunk}), swizzled_address(address, panel))
              << chunks << " chunks, row " << row << ", chunk " << chunk;
          taken.insert(layout.offset({row, chunk}));
        }
      ASSERT_EQ(taken.size(), static_cast<std::size_t>(rows * chunks));
      ASSERT_EQ(*taken.rbegin(), static_cast<std::uint32_t>((rows * chunks - 1) * 16));
    }
}

// wgmma reads 8 rows of a chunk at a time.
TEST(PanelLayout, EightRowsOfAChunkLieInEightBankGroups) {
  const auto most_rows_in_a_group = [](const PanelLayout& layout) {
    int worst = 0;
    for (int row0 = 0; row0 < layout.rows; row0 += 8)
      for (int chunk = 0; chunk < layout.row_chunks; ++chunk) {
        std::array<int, 8> rows{};
        for (int r = 0; r < 8; ++r) worst = std::max(worst, ++rows[layout.offset({row0 + r, chunk}) / 16 % 8]);
      }
    return worst;
  };
  for (int headdim = 32; headdim <= 256; headdim += 16) {  // 16-bit elements
    EXPECT_EQ(most_rows_in_a_group({128, headdim / 8, true}), 1) << headdim;
    EXPECT_EQ(most_rows_in_a_group({128, headdim / 8, false}), headdim % 64 == 0   ? 8
                                                               : headdim % 32 == 0 ? 4
                                                                                   : 2)
        << headdim;
  }
}

}  // namespace
}  // namespace attest
