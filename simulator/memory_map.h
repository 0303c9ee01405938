// Where in memory a process's frames of local memory and its buffers lie: on an H200 and on an H100 under driver 580
// (memory_places in docs/results/h200-l2.md). Other GPUs are taken to be like them.
#pragma once
#include <algorithm>
#include <cstdint>

#include "attest/simulator/device.h"

namespace attest {

/// What a context has at its begin lies in one piece: each SM's places for warps, one SM after the other, each with
/// room for so many bytes of its threads' stack and more behind it, a line for each word. A stack limit that is set
/// later, a frame that is larger, or Nsight Compute, which runs the process, has all of it moved to where it ends.
class MemoryMap {
 public:
  static constexpr std::int64_t own_stack_bytes = 1024;  // a thread's, of a process that sets no limit
  static constexpr std::int64_t page_bytes = 2 << 20;    // buffers begin at its multiples

  explicit MemoryMap(const DeviceSpec& device, bool through_ncu = false, std::int64_t stack_bytes = own_stack_bytes)
      : warps_(device.num_sms * device.max_warps_per_sm),
        warps_an_sm_(device.max_warps_per_sm),
        stack_words_(std::max(own_stack_bytes, stack_bytes) / word_bytes),
        words_behind_(through_ncu ? words_behind_through_ncu : own_words_behind),
        frames_(through_ncu || stack_words_ * word_bytes > own_stack_bytes
                    ? end_of_frames(first_byte, own_stack_bytes / word_bytes + own_words_behind)
                    : first_byte),
        buffers_(end_of_frames(frames_, stack_words_ + words_behind_) + (through_ncu ? page_bytes : 0)) {}

  /// Byte address of a word's line, of frames of so many words, of the warp in that place (%warpid) of an SM. The words
  /// are the last ones of a stack that is no smaller.
  std::int64_t word(std::int64_t sm, std::int64_t warp, std::int64_t word, std::int64_t words) const {
    return frames_ +
           ((sm * warps_an_sm_ + warp) * (stack_words_ + words_behind_) + stack_words_ - words + word) * line_bytes;
  }
  /// Where a process's first buffer begins, of half a GiB or more (a smaller one goes before frames that were moved, if
  /// it fits there). What it asks for next begins where that ends.
  std::int64_t buffers() const { return buffers_; }

  static std::int64_t next_page(std::int64_t address) { return (address + page_bytes - 1) / page_bytes * page_bytes; }

 private:
  static constexpr std::int64_t line_bytes = 128, word_bytes = 4;
  static constexpr std::int64_t first_byte = std::int64_t{114} << 20;
  static constexpr std::int64_t own_words_behind = 576 / word_bytes, words_behind_through_ncu = 1104 / word_bytes;

  std::int64_t end_of_frames(std::int64_t first, std::int64_t words) const {
    return next_page(first + warps_ * words * line_bytes);
  }

  std::int64_t warps_, warps_an_sm_, stack_words_, words_behind_, frames_, buffers_;
};

}  // namespace attest
