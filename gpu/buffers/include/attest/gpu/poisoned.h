// Memory that remembers what it held: what a tensor lies in while a kernel runs on it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "attest/plan/args.h"

namespace attest {

/// A stretch of memory with a checked margin on either side and slack beyond it, so that a kernel that runs over an
/// edge lands in memory of ours and is reported instead of crashing. The allocation is kept between uses.
///
///     | slack | margin | tensor: rows and gaps | margin | slack |
///                      ^ `offset` bytes off an alignment of 256
class PoisonedMemory {
 public:
  /// A quiet NaN in fp16 and bf16, in fp32 when it stands twice, and in both formats of 8 bits by either half.
  static constexpr std::uint16_t nan_word = 0x7FFF;

  /// Makes room for a tensor of `bytes` bytes. What it holds is unspecified until a fill().
  void reserve(std::size_t bytes, std::size_t offset, std::size_t margin, std::size_t slack);

  /// NaN over margins and tensor.
  void fill_nan();
  /// Word i of the tensor, margins included at their own (negative) i, gets 1 + i mod 126, or, flipped, 126 - i mod
  /// 126. In every dtype these are subnormals: adding 0.0 where subnormals are flushed changes them, and a result
  /// hardly ever is one. No word is the same in both patterns, so what still holds the pattern after one run with each
  /// was not written, whatever the results are.
  void fill_pattern(bool flipped);
  /// Keeps a copy of margins and tensor, which everything below is about.
  void remember();

  std::byte* data() { return data_; }  // the tensor's first byte
  const std::byte* data() const { return data_; }
  MemoryRange range() const {  // margins and tensor
    return {data_ - margin_, static_cast<std::int64_t>(bytes_ + 2 * margin_)};
  }
  const std::byte* remembered() const { return copy_.data() + margin_; }

  /// Bytes of margins and tensor that differ from the copy.
  std::int64_t changed() const;
  /// Puts the copy back.
  void restore();

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t capacity_ = 0, bytes_ = 0, margin_ = 0;
  std::byte* data_ = nullptr;
  std::vector<std::byte> copy_;
};

}  // namespace attest
