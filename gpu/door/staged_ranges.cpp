#include "attest/gpu/staged_ranges.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace attest {

std::int64_t StagedRanges::count_unpoisoned(const std::byte* begin, const std::byte* end) {
  return std::count_if(begin, end, [](std::byte b) { return b != std::byte{poison}; });
}

std::size_t StagedRanges::lay_out(std::span<const MemoryRange> ranges) {
  ranges_.assign(ranges.begin(), ranges.end());
  offsets_.clear();
  std::size_t at = end_zone_bytes;
  for (const MemoryRange& range : ranges_) {
    const std::size_t off_alignment = reinterpret_cast<std::uintptr_t>(range.begin) % alignment;
    offsets_.push_back(round_up(at) + off_alignment);
    at = offsets_.back() + static_cast<std::size_t>(range.bytes) + zone_bytes;
  }
  bytes_ = round_up(at - zone_bytes + end_zone_bytes);
  return bytes_;
}

void StagedRanges::copy_in(std::byte* staged) const {
  std::size_t done = 0;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    std::memset(staged + done, poison, offsets_[i] - done);
    std::memcpy(staged + offsets_[i], ranges_[i].begin, static_cast<std::size_t>(ranges_[i].bytes));
    done = offsets_[i] + static_cast<std::size_t>(ranges_[i].bytes);
  }
  std::memset(staged + done, poison, bytes_ - done);
}

std::size_t StagedRanges::offset_of(const void* host) const {
  const auto address = reinterpret_cast<std::uintptr_t>(host);
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    const auto begin = reinterpret_cast<std::uintptr_t>(ranges_[i].begin);
    if (address >= begin && address - begin <= static_cast<std::uintptr_t>(ranges_[i].bytes))
      return offsets_[i] + (address - begin);
  }
  throw std::logic_error("StagedRanges: a pointer of the arguments lies in none of their memory ranges");
}

std::int64_t StagedRanges::copy_out(const std::byte* staged) const {
  std::int64_t changed = 0;
  std::size_t done = 0;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    changed += count_unpoisoned(staged + done, staged + offsets_[i]);
    std::memcpy(ranges_[i].begin, staged + offsets_[i], static_cast<std::size_t>(ranges_[i].bytes));
    done = offsets_[i] + static_cast<std::size_t>(ranges_[i].bytes);
  }
  return changed + count_unpoisoned(staged + done, staged + bytes_);
}

}  // namespace attest
