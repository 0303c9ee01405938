// Stretches of memory side by side in one allocation elsewhere, with checked zones between them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attest/plan/args.h"

namespace attest {

/// Each range keeps its address modulo 256. Zones hold 0xFF, a NaN in every dtype.
///     end zone | range | zone | range | ... | range | end zone
class StagedRanges {
 public:
  static constexpr std::size_t alignment = 256;
  // Wider at the ends, where what overruns by a tile meets no other tensor.
  static constexpr std::size_t zone_bytes = 16 << 10, end_zone_bytes = 128 << 10;
  static constexpr int poison = 0xFF;

  /// Bytes of all, whole alignments.
  std::size_t lay_out(std::span<const MemoryRange> ranges);
  std::size_t bytes() const { return bytes_; }
  void copy_in(std::byte* staged) const;
  /// Of a byte of one of the ranges, or of its end. Throws std::logic_error for any other.
  std::size_t offset_of(const void* host) const;
  /// Copies the ranges back, and counts the bytes of zones that changed.
  std::int64_t copy_out(const std::byte* staged) const;

  static std::int64_t count_unpoisoned(const std::byte* begin, const std::byte* end);
  static std::size_t round_up(std::size_t n) { return (n + alignment - 1) / alignment * alignment; }

 private:
  std::vector<MemoryRange> ranges_;
  std::vector<std::size_t> offsets_;
  std::size_t bytes_ = 0;
};

}  // namespace attest
