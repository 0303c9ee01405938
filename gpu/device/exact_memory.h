// Tensors in allocations of exactly their size, so that compute-sanitizer sees what reaches past one.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "attest/gpu/device.h"
#include "attest/plan/args.h"

namespace attest {

/// Whether the environment asks for this in place of a DeviceArena: ATTEST_DEVICE_MEMORY is "exact". The margins then
/// stay behind, so nothing judges them but the sanitizer; and the workspace is left as cudaMalloc gives it.
bool wants_exact_memory();

/// As DeviceArena, without margins and zones: of each range, whose margins are alike on both sides, the tensor between.
/// For one run.
class ExactMemory {
 public:
  /// Throws CudaError, as all of it.
  ExactMemory(std::span<const MemoryRange> ranges, std::size_t workspace_bytes, cudaStream_t stream);
  /// Takes the tensor that begins at `host` to the device. Throws std::logic_error where it lies in no range.
  void* on_device(const void* host);
  void* workspace() const { return workspace_.get(); }
  /// Brings every tensor back, and waits for the stream.
  void download();

 private:
  struct Free {
    void operator()(std::byte* memory) const { cudaFree(memory); }
  };
  using Memory = std::unique_ptr<std::byte, Free>;
  static Memory allocate(std::size_t bytes);

  struct Piece {
    std::byte *host, *device;  // a tensor's first byte
    std::size_t bytes;
    Memory memory;  // begins as far before the tensor as the host's alignment of 256 does
  };
  std::span<const MemoryRange> ranges_;
  cudaStream_t stream_;
  std::vector<Piece> pieces_;
  Memory workspace_;
};

}  // namespace attest
