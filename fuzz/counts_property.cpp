// Whether the simulator's exact counts are those of a brute-force count from attends() and the tile sizes alone. It
// judges attest's own model of the plans it has names for, not the kernel.
#include <algorithm>

#include "attest/fuzz/properties.h"
#include "attest/plan/catalog.h"
#include "attest/plan/launch.h"
#include "attest/simulator/case_counts.h"
#include "property_parts.h"

namespace attest {
namespace {

struct Expected {
  std::int64_t key_tiles = 0, q_bytes = 0, k_bytes = 0, v_bytes = 0, exponentials = 0;
};

bool any_visible(const Problem& p, std::int64_t b, std::int64_t row0, std::int64_t rows, std::int64_t key0,
                 std::int64_t keys) {
  for (std::int64_t i = row0; i < row0 + rows; ++i)
    for (std::int64_t j = key0; j < key0 + keys; ++j)
      if (attends(p, b, i, j)) return true;
  return false;
}

/// Tiles in which some query sees some key. Bulk copies move whole boxes, others the rows and columns that exist.
Expected expected_counts(const Problem& p, const KernelPlan& plan) {
  Expected e;
  const bool boxes = plan.copy_kind == CopyKind::tma;
  const auto row_bytes = [&](Operand x) {
    return std::int64_t{boxes ? plan.columns(x) : plan.valid_columns(x)} * plan.element_bytes;
  };
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t queries = queries_of(p, b), keys = keys_of(p, b);
    for (std::int64_t row0 = 0; row0 < queries; row0 += plan.tile_m) {
      const std::int64_t rows = std::min<std::int64_t>(plan.tile_m, queries - row0);
      std::int64_t tiles = 0, key_rows = 0;
      for (std::int64_t key0 = 0; key0 < keys; key0 += plan.tile_n) {
        const std::int64_t in_tile = std::min<std::int64_t>(plan.tile_n, keys - key0);
        if (!any_visible(p, b, row0, rows, key0, in_tile)) continue;
        ++tiles;
        key_rows += boxes ? plan.tile_n : in_tile;
      }
      // every split with a share of the tiles reads the queries
      const std::int64_t share = std::max<std::int64_t>(1, (tiles + plan.num_splits - 1) / plan.num_splits);
      const std::int64_t readers = (tiles + share - 1) / share;
      e.key_tiles += tiles * p.nheads;
      e.q_bytes += readers * (boxes ? plan.tile_m : rows) * row_bytes(Operand::q) * p.nheads;
      e.k_bytes += key_rows * row_bytes(Operand::k) * p.nheads;
      e.v_bytes += key_rows * row_bytes(Operand::v) * p.nheads;
    }
  }
  e.exponentials = e.key_tiles * plan.tile_m * plan.tile_n;
  return e;
}

}  // namespace

bool counts_are_exact(const Case& c) {
  const Problem& p = c.problem;
  // next to a prefix or the end of a document a tile may be visited in which nothing is seen
  return p.prefix == 0 && p.documents.empty() && bytes_of(p.dtype) == 2 &&
         p.batch * p.seqlen_q * p.seqlen_k <= std::int64_t{1} << 18;
}

Verdict counts(Trial& trial) {
  const Case& c = trial.the_case();
  Worst worst("counts", {});
  for (const NamedPlan& named : named_plans) {
    const KernelPlan plan = with_features(with_layout(named.make(c.problem, 232448), c), c);
    const Counts counted = count_case(c, plan);
    const Expected expected = expected_counts(c.problem, plan);
    const auto see = [&](const char* what, std::int64_t count, std::int64_t truth) {
      worst.see(what, {}, static_cast<double>(count), static_cast<double>(truth), 0);
    };
    see("key tiles", counted.key_tiles, expected.key_tiles);
    see("bytes of Q", counted.global_bytes[0], expected.q_bytes);
    see("bytes of K", counted.global_bytes[1], expected.k_bytes);
    see("bytes of V", counted.global_bytes[2], expected.v_bytes);
    see("exponentials", counted.exponentials, expected.exponentials);
  }
  return worst.verdict();
}

}  // namespace attest
