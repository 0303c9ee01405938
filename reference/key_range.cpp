#include "attest/reference/key_range.h"

#include <algorithm>

namespace attest {

KeyRange key_range(const Problem& p, std::int64_t /*b*/, std::int64_t i) {
  const std::int64_t diagonal = i + (p.causal == Causal::top_left ? 0 : p.seqlen_k - p.seqlen_q);
  KeyRange range{0, p.seqlen_k};
  if (p.causal != Causal::none) range.end = std::min(range.end, diagonal + 1);
  if (p.window_right >= 0) range.end = std::min(range.end, diagonal + p.window_right + 1);
  if (p.window_left >= 0) range.begin = std::max(range.begin, diagonal - p.window_left);
  return range.begin < range.end ? range : KeyRange{};
}

KeyRange key_range_of_rows(const Problem& p, std::int64_t b, std::int64_t first, std::int64_t last) {
  KeyRange all;
  for (std::int64_t i = first; i < last; ++i) {
    const KeyRange row = key_range(p, b, i);
    if (row.size() == 0) continue;
    all = all.size() == 0 ? row : KeyRange{std::min(all.begin, row.begin), std::max(all.end, row.end)};
  }
  return all;
}

}  // namespace attest
