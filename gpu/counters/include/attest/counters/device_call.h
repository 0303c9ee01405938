// A call of a CUDA forward whose tensors lie on the device, to be made again and again under a profiler.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attest/counters/counted_work.h"
#include "attest/gpu/device.h"
#include "attest/gpu/device_kernel.h"

namespace attest {

class DeviceCall : public CountedWork {
 public:
  /// Why there can be none of a case: the kernel refuses it on the current device, or it has what is not laid out here
  /// (a bias, 8-bit inputs, a backward) or takes more than the device's memory. None: it can be made.
  static std::optional<std::string> unsupported(const DeviceForward& forward, const Case& c);

  /// Of device memory that it takes, with what empties L2. Throws as the constructor.
  static std::size_t bytes(const DeviceForward& forward, const Case& c);

  /// Lays the case's tensors out as its layout says, from the begin of `memory` on, which grows if need be: Q, K, V, O,
  /// LSE and the kernel's workspace one after the other at multiples of 2 MiB, as a prediction has them (but for pages,
  /// of which there are more here), then its lists and what empties L2. One call at a time has a memory, which outlives
  /// it. Their values are standard normal, whatever the case's recipe: no counter but those of time depends on them.
  /// Throws CudaError, EnvironmentError where there is no device.
  DeviceCall(std::unique_ptr<DeviceForward> forward, const Case& c, DeviceMemory& memory);
  ~DeviceCall() override;
  DeviceCall(const DeviceCall&) = delete;
  DeviceCall& operator=(const DeviceCall&) = delete;

  void launch() override;
  void wait() override;
  /// Reads twice as much as L2 holds.
  void empty_l2() override;
  /// An empty kernel of the name `measure_mark_name`, for a profiler's list of launches.
  void mark();

 private:
  struct Tensors;
  std::unique_ptr<DeviceForward> forward_;
  Case case_;
  Stream stream_;
  std::unique_ptr<Tensors> tensors_;
};

inline constexpr const char* measure_mark_name = "attest_measure_mark";

}  // namespace attest
