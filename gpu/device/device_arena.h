// Host memory that lies in pieces, mirrored on the device in one allocation.
#pragma once
#include <span>

#include "attest/gpu/device.h"
#include "attest/gpu/staged_ranges.h"

namespace attest {

/// Where each range of host memory lies in the mirror, and what stands between: NaN in every format, or -1.
///
///     | zone | range 0 | zone | range 1 | ... | zone | workspace | zone |
///
/// Each range keeps its address modulo 256. One copy takes everything before the workspace to the device, one copy
/// brings it back. Keeps its allocations. Not thread safe.
class DeviceArena {
 public:
  /// Lays `ranges` and `workspace_bytes` out and takes what they hold to the device, on `stream`.
  void upload(std::span<const MemoryRange> ranges, std::size_t workspace_bytes, cudaStream_t stream);
  /// The device's address of what lies at `host` in one of the ranges. Throws std::logic_error where it lies in none.
  void* on_device(const void* host) const;
  /// Null where none was asked for.
  void* workspace() const;

  /// Asks for everything back, on `stream`.
  void start_download(cudaStream_t stream);
  /// Once the stream has been waited for: puts it where it came from. Gives the bytes that changed in the zones.
  std::int64_t finish_download();

 private:
  StagedRanges ranges_;  // all that travels
  std::size_t workspace_ = 0, workspace_bytes_ = 0, last_zone_ = 0;
  DeviceMemory device_{DeviceMemory::Where::device};
  DeviceMemory staging_{DeviceMemory::Where::pinned_host};
};

}  // namespace attest
