// What a bulk tensor copy asks of L2 for columns that its box has and the tensor has not.
#pragma once
#include <cstdint>

#include "address.h"

namespace attest {

struct ByteRange {
  std::int64_t first = 0, last = 0;
};

/// For a row of `row_bytes` at byte `begin`, row number `row` of its head, in boxes of a line's width: nothing where
/// the boxes end with the row. The columns beyond are zeros in shared memory, but L2 is asked for their sectors all the
/// same, in another line of the page: the one in which the last box's row begins, with address bits 8, 10 and 11
/// replaced by bits 0, 1 and 2 of row + 1 (docs/results/h200-l2.md, head_boxes and beyond_columns).
inline ByteRange asked_beyond(std::int64_t begin, std::int64_t row_bytes, std::int64_t row) {
  constexpr std::int64_t line = LineSampler::line_bytes, sector = LineSampler::sector_bytes, replaced = 0xD00;
  const std::int64_t within = row_bytes % line, number = row + 1;
  if (within == 0) return {};
  const std::int64_t box = (begin + row_bytes - within) / line * line;
  const std::int64_t at = (box & ~replaced) | (number & 1) << 8 | (number & 6) << 9;
  return {at + (within + sector - 1) / sector * sector, at + line};
}

}  // namespace attest
