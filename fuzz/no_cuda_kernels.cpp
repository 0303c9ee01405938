// A build without CUDA knows the names of what it lacks.
#include "attest/fuzz/kernels.h"
#include "attest/problem/error.h"
#include "cuda_kernels.h"

namespace attest {

KernelSymbol cuda_symbol(std::string_view /*name*/) { return nullptr; }

std::unique_ptr<RunPlace> make_cuda_place() {
  throw EnvironmentError(
      "kernel: it runs on a GPU, and this attest was built without CUDA; build with cmake --preset cuda where nvcc is, "
      "or "
      "take --kernel cpu");
}

TruthFunction gpu_truth() {
  throw EnvironmentError(
      "truth 'gpu': this attest was built without CUDA; build with cmake --preset cuda where nvcc is, or take --truth "
      "cpu");
}

CudaState cuda_state() { return {"", "this attest was built without CUDA"}; }

}  // namespace attest
