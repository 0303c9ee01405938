// The kernels that run on a GPU, as what a profiler runs. Only in builds with CUDA.
#pragma once
#include <memory>
#include <string_view>

#include "attest/gpu/device_kernel.h"

namespace attest {

/// "NAME" of a CUDA kernel of kernel_names(), or a plug-in, "PATH" or "PATH:OPTIONS", which is loaded into this
/// process. Throws InvalidInput naming `kernel` for any other and for what follows a name, and what loading and making
/// a plug-in throws.
std::unique_ptr<DeviceForward> make_device_forward(std::string_view kernel);

}  // namespace attest
