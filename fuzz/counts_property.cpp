// It judges attest's own model of the plans it has names for, not the kernel under test.
#include "attest/fuzz/counts_property.h"

#include <algorithm>
#include <vector>

#include "attest/fuzz/properties.h"
#include "attest/plan/catalog.h"
#include "attest/plan/launch.h"
#include "attest/problem/dtype.h"
#include "attest/simulator/case_counts.h"
#include "enumerated_wavefronts.h"
#include "property_parts.h"

namespace attest {
namespace {

struct Expected {
  std::int64_t key_tiles = 0, q_bytes = 0, k_bytes = 0, v_bytes = 0, exponentials = 0;
  std::int64_t unseen_pairs = 0;  // tiles that are not visited, in which some query sees some key
};

/// First and past the last key that each query of a batch entry sees of a problem; `keys` and 0 where it sees none.
struct Seen {
  std::vector<std::int64_t> first, end;
  Seen(const Problem& p, std::int64_t b) {
    const std::int64_t queries = queries_of(p, b), keys = keys_of(p, b);
    for (std::int64_t i = 0; i < queries; ++i) {
      std::int64_t low = keys, high = 0;
      for (std::int64_t j = 0; j < keys; ++j)
        if (attends(p, b, i, j)) low = std::min(low, j), high = j + 1;
      first.push_back(low), end.push_back(high);
    }
  }
  std::int64_t first_from(std::int64_t row) const {  // of all queries from `row` on
    return *std::min_element(first.begin() + row, first.end());
  }
  std::int64_t end_up_to(std::int64_t row) const { return *std::max_element(end.begin(), end.begin() + row + 1); }
};

/// What a batch entry's queries see, and what they would see of their documents alone and of the band alone that causal
/// and windows leave: a tile of queries walks all key tiles from the first key that its first query's document and the
/// band allow to the last that its last query's do, and likewise within the prefix, though next to a prefix or the end
/// of a document nothing may be seen in one of them.
struct Entry {
  Seen all, documents, band;
  std::int64_t prefix;

  Entry(const Problem& p, std::int64_t b)
      : all(p, b), documents(of_documents(p), b), band(of_band(p), b), prefix(p.prefix) {}
  bool visits(std::int64_t row0, std::int64_t rows, std::int64_t key0, std::int64_t keys) const {
    const std::int64_t last = row0 + rows - 1;
    const std::int64_t begin = documents.first[static_cast<std::size_t>(row0)], end = documents.end_up_to(last);
    const auto touches = [&](std::int64_t from, std::int64_t to) {
      return from < to && key0 < to && from < key0 + keys;
    };
    return touches(std::max(begin, band.first_from(row0)), std::min(end, band.end_up_to(last))) ||
           touches(begin, std::min(end, prefix));
  }
  bool sees(std::int64_t row0, std::int64_t rows, std::int64_t key0, std::int64_t keys, const Problem& p,
            std::int64_t b) const {
    for (std::int64_t i = row0; i < row0 + rows; ++i)
      for (std::int64_t j = std::max(key0, all.first[static_cast<std::size_t>(i)]); j < key0 + keys; ++j)
        if (attends(p, b, i, j)) return true;
    return false;
  }

 private:
  static Problem of_documents(Problem p) {
    p.prefix = 0, p.causal = Causal::none, p.window_left = p.window_right = -1;
    return p;
  }
  static Problem of_band(Problem p) {
    p.prefix = 0, p.documents.clear();
    return p;
  }
};

/// Bulk copies move whole boxes, others the rows and columns that exist. Packed heads take a query's rows in turn.
Expected expected_counts(const Problem& p, const KernelPlan& plan, const std::vector<Entry>& entries) {
  Expected e;
  const bool boxes = plan.copy_kind == CopyKind::tma;
  const std::int64_t pack = plan.packed_heads, heads = p.nheads / pack;
  const auto row_bytes = [&](Operand x) {
    return std::int64_t{boxes ? plan.columns(x) : plan.valid_columns(x)} * plan.element_bytes;
  };
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t queries = queries_of(p, b), keys = keys_of(p, b);
    const Entry& entry = entries[static_cast<std::size_t>(b)];
    for (std::int64_t row0 = 0; row0 < queries * pack; row0 += plan.tile_m) {
      const std::int64_t rows = std::min<std::int64_t>(plan.tile_m, queries * pack - row0);
      const std::int64_t query0 = row0 / pack, num_queries = (row0 + rows - 1) / pack + 1 - query0;
      std::int64_t tiles = 0, key_rows = 0;
      for (std::int64_t key0 = 0; key0 < keys; key0 += plan.tile_n) {
        const std::int64_t in_tile = std::min<std::int64_t>(plan.tile_n, keys - key0);
        if (!entry.visits(query0, num_queries, key0, in_tile)) {
          e.unseen_pairs += entry.sees(query0, num_queries, key0, in_tile, p, b);
          continue;
        }
        ++tiles;
        key_rows += boxes ? plan.tile_n : in_tile;
      }
      // every split with a share of the tiles reads the queries
      const std::int64_t share = std::max<std::int64_t>(1, (tiles + plan.num_splits - 1) / plan.num_splits);
      const std::int64_t readers = (tiles + share - 1) / share;
      e.key_tiles += tiles * heads;
      e.q_bytes += readers * (boxes ? plan.tile_m : rows) * row_bytes(Operand::q) * heads;
      e.k_bytes += key_rows * row_bytes(Operand::k) * heads;
      e.v_bytes += key_rows * row_bytes(Operand::v) * heads;
    }
  }
  e.exponentials = e.key_tiles * plan.tile_m * plan.tile_n;
  return e;
}

}  // namespace

bool counts_are_exact(const Case& c) {
  const Problem& p = c.problem;
  return !is_fp8(p.dtype) && p.batch * p.seqlen_q * p.seqlen_k <= std::int64_t{1} << 18;
}

Verdict judge_counts(const Case& c, const CountedKernel& kernel) {
  Worst worst("counts", {});
  std::vector<Entry> entries;
  for (std::int64_t b = 0; b < c.problem.batch; ++b) entries.emplace_back(c.problem, b);
  for (const NamedPlan& named : named_plans) {
    const KernelPlan plan = with_features(with_layout(named.make(c, {}), c), c);
    const Counts counted = count_case(c, *kernel(plan));
    const Expected expected = expected_counts(c.problem, plan, entries);
    const auto see = [&](const char* what, std::int64_t count, std::int64_t truth) {
      worst.see(what, {}, static_cast<double>(count), static_cast<double>(truth), 0);
    };
    see("tiles with visible keys that are not visited", expected.unseen_pairs, 0);
    see("key tiles", counted.key_tiles, expected.key_tiles);
    see("bytes of Q", counted.global_bytes[0], expected.q_bytes);
    see("bytes of K", counted.global_bytes[1], expected.k_bytes);
    see("bytes of V", counted.global_bytes[2], expected.v_bytes);
    see("exponentials", counted.exponentials, expected.exponentials);
    if (const auto enumerated = enumerated_wavefronts(c, plan, expected.key_tiles)) {
      see("wavefronts", counted.smem_wavefronts, enumerated->wavefronts);
      see("ideal wavefronts", counted.smem_wavefronts_ideal, enumerated->ideal);
    }
  }
  return worst.verdict();
}

Verdict counts(Trial& trial) { return judge_counts(trial.the_case()); }

}  // namespace attest
