// Where the tensors lie: orders, gaps, offsets, pages.
#include <numeric>

#include "attest/reference/attends.h"
#include "generator_parts.h"

namespace attest {
namespace {

constexpr std::int64_t most_listed_pages = 24;  // more would make a repro line unreadable

// A table in so many words: pages ascending, descending, or by a stride through all; rows of different lengths.
void draw_table(Draw& draw, const Problem& p, Layout& layout) {
  std::vector<std::int64_t> counts;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t pages = (keys_of(p, b) + layout.page_size - 1) / layout.page_size;
    counts.push_back(pages + (draw.chance(25) ? draw.in_range(1, 2) : 0));
  }
  const std::int64_t listed = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (listed > most_listed_pages || listed == 0) return;
  const std::int64_t spare = draw.in_range(0, 2), pages = listed + spare;
  layout.num_pages = pages;
  const std::int64_t kind = draw.in_range(0, 2);
  std::int64_t stride = kind == 0 ? 1 : kind == 1 ? pages - 1 : draw.in_range(1, pages);
  while (std::gcd(stride, pages) != 1) ++stride;
  std::int64_t page = draw.in_range(0, pages - 1);
  for (const std::int64_t count : counts) {
    std::vector<std::int64_t> row;
    for (std::int64_t n = 0; n < count; ++n, page = (page + stride) % pages) row.push_back(page);
    layout.page_table.push_back(row);
  }
}

void draw_pages(Draw& draw, const Problem& p, Layout& layout) {
  constexpr std::int64_t sizes[] = {1, 7, 16, 16, 24, 32, 64, 64, 128, 256};
  layout.page_size = draw.one_of(sizes);
  if (draw.chance(20)) {  // no page to spare
    for (std::int64_t b = 0; b < p.batch; ++b)
      layout.num_pages += (keys_of(p, b) + layout.page_size - 1) / layout.page_size;
  } else if (draw.chance(30)) {
    draw_table(draw, p, layout);
  }
}

}  // namespace

Layout draw_layout(Draw& draw, const Wanted& wanted, const Problem& p) {
  Layout layout;
  if (draw.chance(50)) {
    constexpr std::int64_t row_gaps[] = {1, 2, 3, 4, 8, 16, 56};
    constexpr std::int64_t seq_gaps[] = {1, 2, 3, 16, 64};
    constexpr std::int64_t offsets[] = {1, 2, 4, 7, 8, 16, 64};
    if (draw.chance(50)) layout.order = Layout::Order::bhsd;
    if (draw.chance(45)) layout.row_gap = draw.one_of(row_gaps);
    if (draw.chance(45)) layout.seq_gap = draw.one_of(seq_gaps);
    if (draw.chance(40)) layout.base_offset = draw.one_of(offsets);
  }
  if (wanted[Wanted::pages] && p.varlen_k.empty()) draw_pages(draw, p, layout);
  return layout;
}

}  // namespace attest
