#include "l1_frames.h"

#include <algorithm>

#include "address.h"

namespace attest {

int AddressedLines::number(std::int64_t line) {
  const auto [at, first] = number_of_.try_emplace(line / L1Cache::lines_a_row, rows_.size());
  if (first) rows_.push_back(static_cast<std::uint32_t>(line / L1Cache::lines_a_row));
  return static_cast<int>(at->second * L1Cache::lines_a_row + static_cast<std::size_t>(line % L1Cache::lines_a_row));
}

std::int64_t buffer_at_random(std::uint64_t seed) {
  constexpr int bits = 39, aligned_bits = 25;  // of an address that tell L1's sets apart, and of 32 MiB
  return static_cast<std::int64_t>(mix(seed) % (1U << (bits - aligned_bits))) << aligned_bits;
}

Frames::Frames(const FramePlaces& places, int sm, int words, int warps) {
  constexpr std::int64_t row_bytes = std::int64_t{L1Cache::lines_a_row} * L1Cache::line_bytes;
  const int frame = std::max(places.words, words);
  for (int warp = 0; warp < warps && words > 0; ++warp) {
    const std::int64_t begin = places.memory.word(sm, warp, 0, frame),
                       last = places.memory.word(sm, warp, words - 1, frame);
    first_.push_back(lines() + static_cast<int>(begin % row_bytes / L1Cache::line_bytes));
    for (std::int64_t row = begin / row_bytes; row <= last / row_bytes; ++row)
      rows_.push_back(static_cast<std::uint32_t>(row));
  }
}

}  // namespace attest
