// Where a tensor's bytes lie in memory, and which of their cache lines a sampled L2 follows.
#pragma once
#include <cstdint>

#include "attest/problem/case.h"
#include "attest/problem/splitmix64.h"
#include "attest/simulator/device.h"
#include "attest/simulator/l2_cache.h"

namespace attest {

/// Byte addresses of one of Q, K, V, O: [batch, rows, heads, columns] in the case's layout.
struct TensorAddress {
  std::int64_t base = 0, batch_stride = 0, row_stride = 0, head_stride = 0;  // bytes
  std::int64_t row_bytes = 0;                                                // of one row of one head
  std::int64_t row(std::int64_t batch, std::int64_t head, std::int64_t row_index) const {
    return base + batch * batch_stride + head * head_stride + row_index * row_stride;
  }
  std::int64_t end = 0;  // first byte past the tensor
};

inline TensorAddress make_address(const Layout& layout, int element_bytes, std::int64_t base, std::int64_t batch,
                                  std::int64_t rows, std::int64_t heads, std::int64_t columns) {
  const std::int64_t pitch = (columns + layout.row_gap) * element_bytes, padded_rows = rows + layout.seq_gap;
  TensorAddress a;
  a.base = base + layout.base_offset * element_bytes;
  a.row_bytes = columns * element_bytes;
  a.batch_stride = padded_rows * heads * pitch;
  a.row_stride = layout.order == Layout::Order::bshd ? heads * pitch : pitch;
  a.head_stride = layout.order == Layout::Order::bshd ? pitch : padded_rows * pitch;
  a.end = a.base + batch * a.batch_stride;
  return a;
}

/// Maps lines to sets and homes, and keeps one set in `sampling`. The policy of the sets that are kept is exact.
class LineSampler {
 public:
  static constexpr int line_bytes = 128, sector_bytes = 32;

  LineSampler(const DeviceSpec& device, int sampling)
      : partitions_(static_cast<int>(device.l2_partitions)),
        sets_(static_cast<int>(device.l2_bytes / (device.l2_partitions * device.l2_ways * line_bytes * sampling))),
        keep_below_(~0u / static_cast<std::uint32_t>(sampling)) {}

  int sets() const { return sets_; }

  /// Calls f(CachedLine) for each sampled line of bytes [first, last).
  template <class F>
  void for_lines(std::int64_t first, std::int64_t last, F&& f) const {
    for (std::int64_t line = first / line_bytes; line * line_bytes < last; ++line) {
      const std::uint64_t h = mix(static_cast<std::uint64_t>(line));
      const auto place = static_cast<std::uint32_t>(h >> 32);
      if (place > keep_below_) continue;
      const std::int64_t begin = first > line * line_bytes ? first : line * line_bytes;
      const std::int64_t end = last < (line + 1) * line_bytes ? last : (line + 1) * line_bytes;
      const std::int64_t sectors = (end + sector_bytes - 1) / sector_bytes - begin / sector_bytes;
      const auto set =
          static_cast<std::uint64_t>(place) * static_cast<std::uint64_t>(sets_) / (std::uint64_t{keep_below_} + 1);
      f(CachedLine{static_cast<std::uint32_t>(h), static_cast<std::uint16_t>(set), home(line),
                   static_cast<std::uint8_t>(sectors)});
    }
  }

 private:
  /// Measured on an H200: a page of 4 KiB has one home, by the parity of address bits 12, 13, 15, 17, 19 and a constant
  /// of each 2 MiB.
  std::uint8_t home(std::int64_t line) const {
    if (partitions_ == 1) return 0;
    const auto address = static_cast<std::uint64_t>(line) * line_bytes;
    const std::uint64_t parity =
        (address >> 12) ^ (address >> 13) ^ (address >> 15) ^ (address >> 17) ^ (address >> 19) ^ mix(address >> 21);
    return static_cast<std::uint8_t>(parity & 1);
  }

  int partitions_;
  int sets_;
  std::uint32_t keep_below_;
};

}  // namespace attest
