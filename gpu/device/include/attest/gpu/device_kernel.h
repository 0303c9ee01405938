// A forward of attest's own that runs on a GPU, and the place where kernels run there.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "attest/gpu/built_in.h"
#include "attest/gpu/device.h"
#include "attest/gpu/kernel.h"
#include "attest/gpu/run_place.h"

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
  /// As Kernel::plan; "": none.
  virtual std::string plan(const Case& /*c*/) const { return {}; }
  /// Enqueues the whole forward of a case that is supported and does not wait. Every pointer of `args` is the device's,
  /// laid out as c says; `memory` is null. `workspace`: workspace_bytes(), aligned to 256, whatever it holds (NaN under
  /// test); null where that is 0. Throws CudaError where a launch fails: cuda_check_launch() after every one.
  virtual void launch(const Case& c, const ForwardArgs& args, void* workspace, cudaStream_t stream) = 0;
};

/// The current device's memory, for a kernel that runs there. What the arguments point into, poison included, is taken
/// to the device and back whole, so whoever poisoned it sees what the kernel did there. Throws EnvironmentError, with
/// what to do about it, where no device, driver or code for it is there. Its run throws KernelLost where the device
/// refuses all further work in this process.
std::unique_ptr<RunPlace> make_device_place();

/// `forward` behind a table of kernel_api.h, in such a place.
std::unique_ptr<Kernel> make_device_kernel(std::unique_ptr<DeviceForward> forward);

/// The other way about: the kernel of a table, such as a plug-in's, on tensors that lie on the device already, with
/// nothing copied around its calls. Its workspace is its own. Throws InvalidInput naming `kernel` where the record says
/// that it runs on the host, and as make_table_kernel() does.
std::unique_ptr<DeviceForward> make_table_forward(const attest_kernel_api* api, const std::string& options);

/// Of what `forward` declares, as its table has it. Points into `declared`.
attest_capability device_capability(const Capability& declared, attest_arithmetic arithmetic);
/// What the table's create() gives. Throws plugin::NoEnvironment where no GPU can run it.
plugin::Kernel* make_device_forward_kernel(std::unique_ptr<DeviceForward> forward);

/// The table of a forward that is part of attest. Takes no GPU before create().
template <std::unique_ptr<DeviceForward> (*make)(), attest_arithmetic arithmetic>
const attest_kernel_api* device_api(std::uint32_t /*host_abi_version*/) {
  static const std::unique_ptr<DeviceForward> model = make();
  static const attest_capability capability = device_capability(model->capability(), arithmetic);
  static const attest_kernel_api table =
      plugin::table_of(&capability, [](const char* options, void** self, attest_text* message) {
        return plugin::create(self, message, [&] {
          plugin::take_no_options(options);
          return make_device_forward_kernel(make());
        });
      });
  return &table;
}

}  // namespace attest
