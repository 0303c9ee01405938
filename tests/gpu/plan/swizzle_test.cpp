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

}  // namespace
}  // namespace attest
