// A build without CUDA knows the names of what it lacks.
#include <fmt/format.h>

#include "attest/fuzz/kernels.h"
#include "attest/problem/error.h"
#include "cuda_kernels.h"

namespace attest {

std::unique_ptr<Kernel> make_cuda_kernel(std::string_view name, std::string_view /*spec*/) {
  throw EnvironmentError(fmt::format(
      "kernel '{}' runs on a GPU, and this attest was built without CUDA; build with cmake --preset cuda where nvcc is",
      name));
}

std::optional<Capability> cuda_capability(std::string_view /*name*/) { return std::nullopt; }

TruthFunction gpu_truth() {
  throw EnvironmentError(
      "truth 'gpu': this attest was built without CUDA; build with cmake --preset cuda where nvcc is");
}

CudaState cuda_state() { return {"", "this attest was built without CUDA"}; }

}  // namespace attest
