// Where the elements of a dense tensor lie in memory under a Layout.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "attest/problem/case.h"

namespace attest {

/// Offsets in elements from the tensor's first element. Of [batch, seqlen, heads, dim], row s of batch entry a lies at
///   a * batch_stride + s * row_stride                                  plainly
///   (first_row[a] + s) * row_stride                                    packed
///   pages[a][s / page_size] * batch_stride + s % page_size * row_stride    in pages
/// and h * head_stride + d on from there.
struct Placement {
  std::array<std::int64_t, 4> extents{};
  std::int64_t batch_stride = 0;  // of a page, where there are pages; 0 where packed
  std::int64_t row_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t span = 0;                  // elements from the first one to the end of the last gap
  std::vector<std::int64_t> lengths{};    // rows of each batch entry that exist; empty: all
  std::vector<std::int64_t> first_row{};  // empty: not packed
  std::int64_t page_size = 0;             // 0: no pages
  std::vector<std::vector<std::int64_t>> pages{};
  bool heads_before_rows = false;  // the dense tensor is [batch, heads, seqlen, dim], as LSE is

  std::int64_t rows(std::int64_t a) const { return lengths.empty() ? seqlen() : lengths[static_cast<std::size_t>(a)]; }
  std::int64_t seqlen() const { return extents[heads_before_rows ? 2 : 1]; }
  std::int64_t heads() const { return extents[heads_before_rows ? 1 : 2]; }

  std::int64_t offset(std::int64_t a, std::int64_t s, std::int64_t h) const {
    const auto entry = static_cast<std::size_t>(a);
    if (page_size > 0)
      return pages[entry][static_cast<std::size_t>(s / page_size)] * batch_stride + s % page_size * row_stride +
             h * head_stride;
    const std::int64_t first = first_row.empty() ? a * batch_stride : first_row[entry] * row_stride;
    return first + s * row_stride + h * head_stride;
  }
  /// Of the dense tensor's values.
  std::int64_t index(std::int64_t a, std::int64_t s, std::int64_t h) const {
    const std::int64_t row = heads_before_rows ? (a * heads() + h) * seqlen() + s : (a * seqlen() + s) * heads() + h;
    return row * extents[3];
  }
};

/// bshd: a token's heads side by side, row_gap elements after each, seq_gap tokens after each sequence.
/// bhsd: a head's rows one after the other, row_gap elements after each, seq_gap rows after each sequence of each head.
Placement place(const std::array<std::int64_t, 4>& extents, const Layout& layout);

/// Queries, outputs and their gradients: packed where the case has varlen_q. `dim` values a row.
Placement place_queries(const Case& c, std::int64_t dim);

/// LSE, always dense: [batch, nheads, seqlen_q], packed [nheads, total_q].
Placement place_lse(const Case& c);

/// Which pages hold the keys of each batch entry.
struct PageTable {
  std::vector<std::vector<std::int64_t>>
      rows{};  // of pages_per_sequence each; past an entry's keys: a page without any
  std::int64_t pages_per_sequence = 0;
  std::int64_t num_pages = 0;
};

/// The layout's own table, or one that is shuffled by the case's seed.
PageTable page_table_of(const Case& c);

/// Keys or values: packed where the case has varlen_k, in pages where it has a page_size. Their gradients are never in
/// pages. `dim` values a row.
Placement place_keys(const Case& c, std::int64_t dim);

/// Running sums of `lengths` from 0, one more than there are lengths.
std::vector<std::int64_t> cumulative(const std::vector<std::int64_t>& lengths);

}  // namespace attest
