// A forward that runs on a GPU, as its author writes it, and the adapter that makes a Kernel under test of it.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "attest/gpu/device.h"
#include "attest/gpu/kernel.h"

namespace attest {

/// O and LSE by CUDA kernels. capability() and numerics() work where there is no GPU.
class DeviceForward {
 public:
  virtual ~DeviceForward() = default;
  virtual const Capability& capability() const = 0;
  /// As Kernel::numerics.
  virtual Numerics numerics(const Case& c) const = 0;
  /// Why this case is refused on such a device, by the field's name; none if launch() takes it. Whatever launch() would
  /// fail at for its size stands here: shared memory, grid extents, alignment of a base or a stride.
  virtual std::optional<std::string> unsupported(const Case& c, const DeviceLimits& device) const = 0;
  /// Bytes of global memory that launch() wants beside the tensors, such as the splits' partial O; 0: none.
  virtual std::size_t workspace_bytes(const Case& /*c*/, const DeviceLimits& /*device*/) const { return 0; }
  /// Enqueues the whole forward of a case that is supported and does not wait. Every pointer of `args` is the device's,
  /// laid out as c says; `memory` is null. `workspace`: workspace_bytes(), aligned to 256, whatever it holds (NaN under
  /// test); null where that is 0. Throws CudaError where a launch fails: cuda_check_launch() after every one.
  virtual void launch(const Case& c, const ForwardArgs& args, void* workspace, cudaStream_t stream) = 0;
};

/// Runs `forward` on the current device. What the arguments point into, poison included, is taken to the device and
/// back whole, so whoever poisoned it sees what the kernel did there; a write beyond even that is a hazard of the
/// report. Throws EnvironmentError, with what to do about it, where no device, driver or code for it is there. Its run
/// throws CudaError, and KernelLost where the device refuses all further work in this process.
std::unique_ptr<Kernel> make_device_kernel(std::unique_ptr<DeviceForward> forward);

}  // namespace attest
