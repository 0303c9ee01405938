// What the kernels do to a lane's scores, run on the host: each mask held to attends(), modifiers and the end of a row
// to their formulas.
#include <gtest/gtest.h>

#include <numeric>

#include "attest/plan/launch.h"
#include "attest/reference/attends.h"
#include "forward_ops.cuh"
#include "launch_config.h"

namespace attest {
namespace {

using sm80::infinity;
using test::HostConfig;

using Short = HostConfig<Sm80Tile::d128_short, Sm80Kind::general>;
using General = HostConfig<Sm80Tile::d64, Sm80Kind::general>;
using Fast = HostConfig<Sm80Tile::d64, Sm80Kind::fast>;

/// body(row in the tile, key in the tile, score) for the scores of the lane that threadIdx names.
template <class Cfg, class Body>
void each(typename sm80::Registers<Cfg>::Scores& s, const Body& body) {
  const int lane = sm80::lane_id(), row0 = sm80::warp_id() * Cfg::plan.rows_per_warp();
  for (int m = 0; m < sm80::Registers<Cfg>::m_blocks; ++m)
    for (int n = 0; n < sm80::Registers<Cfg>::n_blocks; ++n)
      for (int e = 0; e < 4; ++e) {
        const Element at = accumulator(lane, e);
        body(row0 + 16 * m + at.row, 8 * n + at.col, s.x[m][n][e]);
      }
}

template <class Cfg, class Body>
void each_thread(const Body& body) {
  for (threadIdx.x = 0; threadIdx.x < static_cast<unsigned>(Cfg::plan.threads()); ++threadIdx.x) body();
}

struct Pairs {
  std::int64_t seen = 0, hidden = 0;
};

/// Every pair of a row and a key, in every tile, whether the kernel would visit and mask it or not.
template <class Cfg>
void check_mask(const Problem& p, int packed_heads, Pairs& pairs) {
  const LengthArrays arrays(p);
  sm80::ForwardParams params;
  params.launch = make_launch(p, arrays.document_ends, packed_heads);
  const typename Cfg::Plan plan(Cfg::plan, params);
  for (int q_tile = 0; q_tile < num_q_tiles(plan, p); ++q_tile) {
    const Work work = make_work(params.launch, arrays.args(), 0, q_tile, 0);
    for (int key0 = 0; key0 < p.seqlen_k; key0 += plan.tile_n)
      each_thread<Cfg>([&] {
        typename sm80::Registers<Cfg>::Scores s;
        each<Cfg>(s, [](int, int, float& x) { x = 1; });
        const int tile_row0 = q_tile * plan.tile_m;
        sm80::mask_scores<Cfg>(plan, work, tile_row0 + sm80::warp_id() * plan.rows_per_warp(), key0, s);
        each<Cfg>(s, [&](int row, int key, const float& x) {
          const int i = tile_row0 + row, j = key0 + key;
          if (i >= work.seqlen_q) return;
          const bool sees = j < p.seqlen_k && attends(p, 0, i / packed_heads, j);
          ++(sees ? pairs.seen : pairs.hidden);
          if (x != (sees ? 1 : -infinity))
            ADD_FAILURE() << to_string(p.causal) << " window " << p.window_left << "," << p.window_right << " prefix "
                          << p.prefix << ", " << p.documents.size() << " documents, row " << i << " key " << j
                          << (sees ? " is hidden" : " is seen");
        });
      });
    if (testing::Test::HasFailure()) return;
  }
}

Problem masked(std::int64_t seqlen_q, std::int64_t seqlen_k, Causal causal, std::int64_t left, std::int64_t right) {
  Problem p;
  p.seqlen_q = seqlen_q, p.seqlen_k = seqlen_k;
  p.causal = causal, p.window_left = left, p.window_right = right;
  return p;
}

constexpr Causal causals[] = {Causal::none, Causal::bottom_right, Causal::top_left};

TEST(DeviceMask, HidesWhatAttendsDoes) {
  Pairs pairs;
  for (const Causal causal : causals)
    for (const std::int64_t left : {-1, 0, 17, 40})
      for (const std::int64_t right : {-1, 3, 16})
        for (const std::int64_t prefix : {0, 1, 50, 500})
          for (const auto& [sq, sk] : {std::pair<std::int64_t, std::int64_t>{50, 130}, {70, 50}, {1, 33}})
            for (const std::vector<std::int64_t>& cuts :
                 {std::vector<std::int64_t>{}, {1, 0, 15}, {40, 0, 0, 3}, {0, 33}}) {
              Problem p = masked(sq, sk, causal, left, right);
              p.prefix = prefix;
              p.documents = cuts;
              const std::int64_t cut = std::accumulate(cuts.begin(), cuts.end(), std::int64_t{0});
              if (cut > std::max(sq, sk)) continue;
              if (!cuts.empty()) p.documents.push_back(std::max(sq, sk) - cut);
              check_mask<Short>(p, 1, pairs);
              if (HasFailure()) return;
            }
  EXPECT_GT(pairs.seen, 1'000'000);
  EXPECT_GT(pairs.hidden, 1'000'000);
}

TEST(DeviceMask, OfTheFastKindAndOfPackedRowsLikewise) {
  Pairs fast, packed;
  for (const Causal causal : causals)
    for (const std::int64_t left : {-1, 0, 17})
      for (const std::int64_t right : {-1, 16}) {
        check_mask<Fast>(masked(150, 100, causal, left, right), 1, fast);
        check_mask<Fast>(masked(60, 170, causal, left, right), 1, fast);
        for (const int group : {1, 4, 7}) {
          Problem p = masked(20, 90, causal, left, right);
          check_mask<General>(p, group, packed);
          p.prefix = 30;
          check_mask<General>(p, group, packed);
        }
        if (HasFailure()) return;
      }
  EXPECT_GT(std::min(fast.seen, fast.hidden), 20'000);
  EXPECT_GT(std::min(packed.seen, packed.hidden), 20'000);
}

// scale q.k, softcap, ALiBi and bias in float64; rows and keys past the last have no bias.
TEST(DeviceModifiers, AreTheFormulasTermByTerm) {
  constexpr int queries = 40, keys = 100, stride = 103, q_tile = 0, key0 = 64;
  const Problem p = masked(queries, keys, Causal::none, -1, -1);
  std::vector<float> bias(std::size_t{128} * stride);
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 8;
  for (int terms = 0; terms < 8; ++terms) {
    sm80::ForwardParams params;
    params.launch = make_launch(p, {});
    params.modified = true;
    params.softcap = terms & 1, params.alibi = terms & 2, params.bias = terms & 4;
    const General::Plan plan(General::plan, params);
    const Work work = make_work(params.launch, {}, 0, q_tile, 0);
    const ScoreNumbers numbers{0.3f, 5.0f, 0.25f, 0.0f, bias.data(), stride};
    each_thread<General>([&] {
      const auto dot = [](int row, int key) { return static_cast<float>((row * 31 + key * 17) % 61 - 30); };
      typename sm80::Registers<General>::Scores s;
      each<General>(s, [&](int row, int key, float& x) { x = dot(row, key); });
      sm80::modify_scores<General>(plan, work, numbers, sm80::warp_id() * plan.rows_per_warp(), key0, queries, s);
      each<General>(s, [&](int row, int key, const float& x) {
        const int j = key0 + key;
        double expected = 0.3 * dot(row, key);
        if (params.softcap) expected = 5 * std::tanh(expected / 5);
        if (params.alibi) expected -= 0.25 * std::abs(row + (keys - queries) - j);
        if (params.bias && row < queries && j < keys)
          expected += static_cast<double>(bias[static_cast<std::size_t>(row * stride + j)]);
        EXPECT_NEAR(x, expected, 1e-5) << "terms " << terms << ", row " << row << " key " << j;
      });
    });
    if (HasFailure()) return;
  }
}

// P relative to the row's maximum, and a row's LSE and factor of O, with a sink and without.
template <class Cfg>
void check_row(const typename Cfg::Plan& plan, double scale) {
  const float scale_log2 = plan.scale_log2(static_cast<float>(scale));
  threadIdx.x = 5;
  for (const float max : {-30.0f, 0.0f, 3.0f, 40.0f}) {
    typename sm80::Registers<Cfg>::Scores s;
    typename sm80::Registers<Cfg>::Rows rows{};
    for (auto& m : rows.max)
      for (float& x : m) x = max;
    const auto score = [&](int row, int key) { return key % 5 == 4 ? -infinity : max - float((row + key) % 23) / 4; };
    double sum = 0;
    each<Cfg>(s, [&](int row, int key, float& x) {
      x = score(row, key);
      if (row == accumulator(5, 0).row) sum += std::exp(scale * (double(x) - double(max)));
    });
    sm80::exponentiate<Cfg>(plan, scale_log2, s, rows);
    each<Cfg>(s, [&](int row, int key, const float& x) {
      EXPECT_NEAR(x, std::exp(scale * (double(score(row, key)) - double(max))), 1e-5);
    });
    EXPECT_NEAR(rows.sum[0][0], sum, 1e-5 * sum);
    for (const bool has_sink : {false, true})
      for (const float sink : {-40.0f, 0.5f, 60.0f}) {
        const double m = scale * double(max), largest = has_sink ? std::max(m, double(sink)) : m;
        const double total = sum * std::exp(m - largest) + (has_sink ? std::exp(double(sink) - largest) : 0);
        const auto [lse, inverse] = sm80::end_row(plan, scale_log2, max, rows.sum[0][0], has_sink, sink);
        EXPECT_NEAR(lse, largest + std::log(total), 1e-4) << "max " << max << " sink " << has_sink << " " << sink;
        const double expected = std::exp(m - largest) / total;
        EXPECT_NEAR(inverse, expected, 1e-4 * expected + 0x1p-126)
            << "max " << max << " sink " << has_sink << " " << sink;
      }
  }
  const sm80::RowEnd nothing = sm80::end_row(plan, scale_log2, -infinity, 0.0f, false, 0.0f);
  EXPECT_EQ(nothing.lse, -infinity);
  EXPECT_EQ(nothing.inverse, 0);
  for (int i = -100; i < 100; ++i) {  // exactly, where no key is seen
    const float sink = 0.37f * static_cast<float>(i);
    const sm80::RowEnd sink_alone = sm80::end_row(plan, scale_log2, -infinity, 0.0f, true, sink);
    EXPECT_EQ(sink_alone.lse, sink);
    EXPECT_TRUE(std::isfinite(sink_alone.inverse));
  }
}

TEST(DeviceRow, EndsAsItsExponentialsSay) {
  sm80::ForwardParams params;
  check_row<Fast>({Fast::plan, params}, 0.125);
  check_row<General>({General::plan, params}, 0.125);
  params.modified = true;
  check_row<General>({General::plan, params}, 1);
}

}  // namespace
}  // namespace attest
