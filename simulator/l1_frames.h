// Where frames of local memory, and lines beside them, lie for L1: a word of a warp is a line of 128 bytes.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "l1_cache.h"
#include "memory_map.h"

namespace attest {

/// Where a kernel's frames lie, of so many words a thread.
struct FramePlaces {
  MemoryMap memory;
  int words = 0;
};

/// The first `words` of the frames of the warps in an SM's lowest places: each word of a warp is a line.
class Frames {
 public:
  Frames(const FramePlaces& places, int sm, int words, int warps);
  const std::vector<std::uint32_t>& rows() const { return rows_; }
  int line(int warp, int word) const { return first_[static_cast<std::size_t>(warp)] + word; }
  int lines() const { return static_cast<int>(rows_.size()) * L1Cache::lines_a_row; }

 private:
  std::vector<std::uint32_t> rows_;
  std::vector<int> first_;  // by warp
};

/// SMs whose L1 is gone through. The frames of such whose numbers are a multiple of eight apart lie alike: of a CTA
/// alone .272 of the forced spill's loads miss on 16 of those and .264 on all.
struct SampledSms {
  static constexpr int n = 16, apart = 7;
};

/// Lines beside frames, by their virtual addresses: numbered as L1Cache has those of rows().
class AddressedLines {
 public:
  explicit AddressedLines(std::vector<std::uint32_t> frames) : rows_(std::move(frames)) {}
  /// Of `bytes` from `first` on, each line.
  template <class F>
  void for_lines(std::int64_t first, std::int64_t bytes, F&& f) {
    constexpr std::int64_t line_bytes = L1Cache::line_bytes;
    for (std::int64_t line = first / line_bytes; line * line_bytes < first + bytes; ++line) f(number(line));
  }
  const std::vector<std::uint32_t>& rows() const { return rows_; }

 private:
  int number(std::int64_t line);

  std::vector<std::uint32_t> rows_;
  std::unordered_map<std::int64_t, std::size_t> number_of_;
};

/// Where a buffer begins that lies nobody knows where: large ones do at multiples of 32 MiB.
std::int64_t buffer_at_random(std::uint64_t seed);

}  // namespace attest
