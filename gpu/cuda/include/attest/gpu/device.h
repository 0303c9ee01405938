// The GPU in use, and what is held of it.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace attest {

/// What a launch has to live within, read from the device.
struct DeviceLimits {
  std::string name;
  int compute_capability = 0;  // 10 * major + minor: 80, 90
  int num_sms = 0;
  std::int64_t smem_bytes_per_block = 0;  // of dynamic shared memory, opted in to
  std::int64_t smem_bytes_per_sm = 0;     // all of it, 1 KiB a block included
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;  // of the device
};

/// Opens the current device, the first of CUDA_VISIBLE_DEVICES. Throws EnvironmentError, in one line with what to do,
/// where there is no driver or too old a one, no GPU (`otherwise`: what to do without), or none that this build has
/// code for.
DeviceLimits open_device(std::string_view otherwise = "take --kernel cpu");

/// A stretch of device memory, or of host memory that the device copies from and to directly (pinned). Grows, and keeps
/// what it has; what it held is gone when it grows. Throws CudaError.
class DeviceMemory {
 public:
  enum class Where : bool { device, pinned_host };
  explicit DeviceMemory(Where where = Where::device) : where_(where) {}
  ~DeviceMemory() { release(); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// Makes room for `bytes` bytes, aligned to 256.
  void reserve(std::size_t bytes);
  std::byte* data() const { return data_; }
  std::size_t capacity() const { return capacity_; }

 private:
  void release() noexcept;
  Where where_;
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
};

/// A stream of its own, which does not wait for the default one.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace attest
