// What a CTA of a split leaves in the workspace, run on the host: partial O in pairs, its rows in whole sectors.
#include <gtest/gtest.h>

#include <vector>

#include "forward_ops.cuh"
#include "launch_config.h"

namespace attest {
namespace {

constexpr float untouched = -1;
float number(std::int64_t row, int column) { return static_cast<float>(row * 1000 + column); }

/// The second query tile of the last split, of the middle head of the last batch entry.
template <class Cfg>
void check_partial(int headdim_v, int rows_missing) {
  sm80::ForwardParams params;
  params.headdim = params.headdim_v = headdim_v;
  params.num_splits = 3, params.num_batches = 2, params.nheads = params.nheads_k = 3;
  params.launch.seqlen_q = 2 * Cfg::plan.tile_m - rows_missing;
  const CtaIndex at{.q_tile = 1, .split = 2, .batch = 1, .head = 1};
  const int columns = static_cast<int>(partial_columns(headdim_v)), limit = params.launch.seqlen_q;
  std::vector<float> workspace(std::size_t(3 * 2 * 3 * limit * columns), untouched);
  params.partial_o = workspace.data();
  const typename Cfg::Plan plan(Cfg::plan, params);
  Work work;
  work.q_tile = static_cast<int>(at.q_tile), work.split = static_cast<int>(at.split), work.seqlen_q = limit;
  for (threadIdx.x = 0; threadIdx.x < static_cast<unsigned>(plan.threads()); ++threadIdx.x) {
    typename sm80::Registers<Cfg>::Output o;
    for (int m = 0; m < sm80::Registers<Cfg>::m_blocks; ++m)
      for (int d = 0; d < sm80::Registers<Cfg>::d_blocks; ++d)
        for (int e = 0; e < 4; ++e) {
          const Element of = accumulator(sm80::lane_id(), e);
          const int row = work.q_tile * plan.tile_m + sm80::warp_id() * plan.rows_per_warp() + 16 * m + of.row;
          o.x[m][d][e] = number(row, 8 * d + of.col);
        }
    sm80::ForwardOps<Cfg>(plan, work, params, at, 0).store_partial(o, limit);
  }
  const std::int64_t row0 = ((at.split * 2 + at.batch) * 3 + at.head) * limit;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(workspace.size()); ++i) {
    const std::int64_t row = i / columns - row0;
    const int column = static_cast<int>(i % columns);
    const bool stored = row >= plan.tile_m && row < limit && column / 2 * 2 < headdim_v;
    EXPECT_EQ(workspace[static_cast<std::size_t>(i)], stored ? number(row, column) : untouched)
        << "headdim_v " << headdim_v << ", row " << row << " of the head, column " << column;
    if (testing::Test::HasFailure()) return;
  }
}

TEST(DevicePartialO, TakesThePairsOfItsRowsAndNoOthers) {
  for (const int headdim_v : {1, 7, 8, 33, 100, 127, 128})
    for (const int rows_missing : {0, 5, 15}) {
      check_partial<test::HostConfig<Sm80Tile::d128_short, Sm80Kind::general>>(headdim_v, rows_missing);
      check_partial<test::HostConfig<Sm80Tile::d128, Sm80Kind::fast>>(headdim_v, rows_missing);
    }
}

TEST(DevicePartialO, RowsAreWholeSectors) {
  constexpr int sector = 32 / sizeof(float);
  for (int headdim_v = 1; headdim_v <= 256; ++headdim_v) {
    EXPECT_EQ(partial_columns(headdim_v) % sector, 0);
    EXPECT_GE(partial_columns(headdim_v), headdim_v);
    EXPECT_LT(partial_columns(headdim_v), headdim_v + sector);
  }
}

}  // namespace
}  // namespace attest
