// Where in memory a process's frames of local memory lie: on an H200 and on an H100 under driver 580 (memory_places in
// docs/results/h200-l2.md). Other GPUs are taken to be like them.
#pragma once
#include <algorithm>
#include <cstdint>

#include "attest/simulator/device.h"

namespace attest {

/// What a context has at its begin lies in one piece: each SM's places for warps, one SM after the other, each with
/// room for so many bytes of its threads' stack and 576 behind it, a line for each word. A stack limit that is set
/// later, or a frame that is larger, has all of it moved to where it ends.
class MemoryMap {
 public:
  static constexpr std::int64_t own_stack_bytes = 1024;  // a thread's, of a process that sets no limit

  explicit MemoryMap(const DeviceSpec& device, std::int64_t stack_bytes = own_stack_bytes)
      : warps_an_sm_(device.max_warps_per_sm),
        stack_words_(std::max(own_stack_bytes, stack_bytes) / word_bytes),
        frames_(stack_words_ * word_bytes == own_stack_bytes
                    ? first_byte
                    : end_of_frames(first_byte, own_stack_bytes / word_bytes, device)) {}

  /// Byte address of a word's line, of frames of so many words, of the warp in that place (%warpid) of an SM. The words
  /// are the last ones of a stack that is no smaller.
  std::int64_t word(std::int64_t sm, std::int64_t warp, std::int64_t word, std::int64_t words) const {
    return frames_ +
           ((sm * warps_an_sm_ + warp) * (stack_words_ + words_behind) + stack_words_ - words + word) * line_bytes;
  }

 private:
  static constexpr std::int64_t mib = 1 << 20, line_bytes = 128, word_bytes = 4;
  static constexpr std::int64_t first_byte = 114 * mib, page_bytes = 2 * mib, words_behind = 576 / word_bytes;

  std::int64_t end_of_frames(std::int64_t first, std::int64_t stack_words, const DeviceSpec& device) const {
    const std::int64_t warps = device.num_sms * warps_an_sm_;
    return (first + warps * (stack_words + words_behind) * line_bytes + page_bytes - 1) / page_bytes * page_bytes;
  }

  std::int64_t warps_an_sm_, stack_words_, frames_;
};

}  // namespace attest
