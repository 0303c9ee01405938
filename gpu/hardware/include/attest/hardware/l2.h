// Launches on a buffer that is larger than L2, for a profiler to count what DRAM moves: from that follows how much of a
// walk L2 keeps.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

namespace attest::hardware {

class L2Buffer {
 public:
  /// Throws std::runtime_error with CUDA's words where there is no room.
  explicit L2Buffer(std::int64_t bytes);
  ~L2Buffer();
  L2Buffer(const L2Buffer&) = delete;
  L2Buffer& operator=(const L2Buffer&) = delete;

  enum class Pages { contiguous, scattered };  ///< the buffer's first ones, or 4 KiB here and there; always the same
  /// Every SM reads all of `bytes`, past L1. These return at once: what goes wrong while a launch runs is thrown by who
  /// waits for the stream.
  void read(std::int64_t bytes, Pages pages, cudaStream_t stream) const;
  /// The SMs together read, or write, `bytes` once, from byte `first` on.
  void read_once(std::int64_t first, std::int64_t bytes, cudaStream_t stream) const;
  void write_once(std::int64_t first, std::int64_t bytes, cudaStream_t stream) const;

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

}  // namespace attest::hardware
