#include "attest/gpu/placement.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

namespace attest {
namespace {

// Packed: one sequence of all rows, in which every batch entry has its share.
Placement place_packed(std::array<std::int64_t, 4> extents, const Layout& layout,
                       const std::vector<std::int64_t>& lengths) {
  const std::vector<std::int64_t> sums = cumulative(lengths);
  Placement p = place({1, sums.back(), extents[2], extents[3]}, layout);
  p.extents = extents;
  p.batch_stride = 0;
  p.lengths = lengths;
  p.first_row.assign(sums.begin(), sums.end() - 1);
  return p;
}

std::int64_t num_keys(const Problem& p, std::int64_t b) {
  const auto entry = static_cast<std::size_t>(b);
  if (!p.seqused_k.empty()) return p.seqused_k[entry];
  return p.varlen_k.empty() ? p.seqlen_k : p.varlen_k[entry];
}

}  // namespace

std::vector<std::int64_t> cumulative(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> sums(lengths.size() + 1);
  std::partial_sum(lengths.begin(), lengths.end(), sums.begin() + 1);
  return sums;
}

Placement place(const std::array<std::int64_t, 4>& extents, const Layout& layout) {
  const auto [batch, seqlen, heads, dim] = extents;
  Placement p;
  p.extents = extents;
  const std::int64_t row = dim + layout.row_gap;
  if (layout.order == Layout::Order::bshd) {
    p.head_stride = row;
    p.row_stride = heads * row;
    p.batch_stride = (seqlen + layout.seq_gap) * p.row_stride;
  } else {
    p.row_stride = row;
    p.head_stride = (seqlen + layout.seq_gap) * row;
    p.batch_stride = heads * p.head_stride;
  }
  p.span = batch * p.batch_stride;
  return p;
}

Placement place_queries(const Case& c, std::int64_t dim) {
  const Problem& p = c.problem;
  const std::array<std::int64_t, 4> extents{p.batch, p.seqlen_q, p.nheads, dim};
  return p.varlen_q.empty() ? place(extents, c.layout) : place_packed(extents, c.layout, p.varlen_q);
}

Placement place_lse(const Case& c) {
  Layout dense;
  dense.order = Layout::Order::bhsd;
  Case unpadded = c;
  unpadded.layout = dense;
  Placement place = place_queries(unpadded, 1);
  place.heads_before_rows = true;
  std::swap(place.extents[1], place.extents[2]);
  return place;
}

PageTable page_table_of(const Case& c) {
  const Problem& p = c.problem;
  const Layout& layout = c.layout;
  const auto pages_of = [&](std::int64_t b) { return (num_keys(p, b) + layout.page_size - 1) / layout.page_size; };
  PageTable table;
  table.rows.resize(static_cast<std::size_t>(p.batch));
  std::int64_t needed = 0, largest = -1;
  for (std::int64_t b = 0; b < p.batch; ++b) needed += pages_of(b);
  for (const auto& row : layout.page_table)
    for (const std::int64_t page : row) largest = std::max(largest, page);
  const std::int64_t spare = needed / 8 + 1;
  table.num_pages = layout.num_pages != 0 ? layout.num_pages : std::max(needed + spare, largest + 1);
  table.pages_per_sequence = (p.seqlen_k + layout.page_size - 1) / layout.page_size;
  for (const auto& row : layout.page_table)
    table.pages_per_sequence = std::max<std::int64_t>(table.pages_per_sequence, std::ssize(row));

  std::vector<std::int64_t> free(static_cast<std::size_t>(table.num_pages));
  std::iota(free.begin(), free.end(), std::int64_t{0});
  if (layout.page_table.empty()) {
    std::mt19937_64 random(c.seed);  // Fisher and Yates; std::shuffle is not the same everywhere
    for (std::size_t i = free.size(); i > 1; --i) std::swap(free[i - 1], free[random() % i]);
  }
  std::size_t next = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    auto& row = table.rows[static_cast<std::size_t>(b)];
    if (!layout.page_table.empty()) row = layout.page_table[static_cast<std::size_t>(b)];
    while (layout.page_table.empty() && std::ssize(row) < pages_of(b)) row.push_back(free[next++]);
  }
  // What lies past an entry's keys may be loaded by a right kernel, though not followed: it exists, and holds no key.
  std::vector<bool> used(static_cast<std::size_t>(table.num_pages));
  for (const auto& row : table.rows)
    for (const std::int64_t page : row) used[static_cast<std::size_t>(page)] = true;
  const auto unused = std::find(used.begin(), used.end(), false);
  const std::int64_t filler = unused == used.end() ? table.num_pages - 1 : unused - used.begin();
  for (auto& row : table.rows) row.resize(static_cast<std::size_t>(table.pages_per_sequence), filler);
  return table;
}

Placement place_keys(const Case& c, std::int64_t dim) {
  const Problem& p = c.problem;
  const std::array<std::int64_t, 4> extents{p.batch, p.seqlen_k, p.nheads_k, dim};
  Placement placed;
  if (c.layout.page_size > 0) {
    PageTable table = page_table_of(c);
    placed = place({table.num_pages, c.layout.page_size, p.nheads_k, dim}, c.layout);
    placed.extents = extents;
    placed.page_size = c.layout.page_size;
    placed.pages = std::move(table.rows);
  } else {
    placed = p.varlen_k.empty() ? place(extents, c.layout) : place_packed(extents, c.layout, p.varlen_k);
  }
  if (!p.seqused_k.empty()) placed.lengths = p.seqused_k;
  return placed;
}

}  // namespace attest
