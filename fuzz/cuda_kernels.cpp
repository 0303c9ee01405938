#include "cuda_kernels.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "attest/fuzz/device_forwards.h"
#include "attest/fuzz/kernels.h"
#include "attest/gpu/device_kernel.h"
#include "attest/gpu/reference64.h"
#include "attest/gpu/unfused.h"
#include "attest/problem/error.h"
#include "attest/sm80/sm80_forward.h"

namespace attest {
namespace {

std::unique_ptr<DeviceForward> make_without_spec(std::string_view name, std::string_view spec,
                                                 std::unique_ptr<DeviceForward> (*make)()) {
  if (!spec.empty()) throw InvalidInput("kernel", fmt::format("'{}:{}'", name, spec), "takes nothing after its name");
  return make();
}

std::unique_ptr<DeviceForward> make_forward(std::string_view name, std::string_view spec) {
  if (name == "sm80") return make_without_spec(name, spec, make_sm80_forward);
  if (name == "unfused") return make_without_spec(name, spec, make_unfused);
  throw InvalidInput("kernel", fmt::format("'{}'", name),
                     fmt::format("runs on no GPU; {} do", fmt::join(cuda_kernel_names, " and ")));
}

}  // namespace

std::unique_ptr<DeviceForward> make_device_forward(std::string_view kernel) {
  const std::size_t colon = kernel.find(':');
  return make_forward(kernel.substr(0, colon), colon == std::string_view::npos ? "" : kernel.substr(colon + 1));
}

std::unique_ptr<Kernel> make_cuda_kernel(std::string_view name, std::string_view spec) {
  return make_device_kernel(make_forward(name, spec));
}

std::optional<Capability> cuda_capability(std::string_view name) { return make_forward(name, {})->capability(); }

TruthFunction gpu_truth() {
  open_device();
  return forward_with_budget_on_gpu;
}

CudaState cuda_state() {
  CudaState state;
  state.runtime = fmt::format("{}.{}", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  try {
    open_device();
  } catch (const EnvironmentError& error) {
    state.unavailable = error.what();
  }
  return state;
}

}  // namespace attest
