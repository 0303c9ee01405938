#include "attest/gpu/cuda_error.h"

#include <fmt/format.h>

namespace attest {

CudaError::CudaError(std::string_view call, cudaError_t error)
    : std::runtime_error(fmt::format("{}: {}: {}", call, cudaGetErrorName(error), cudaGetErrorString(error))),
      error_(error) {}

void cuda_check(cudaError_t status, std::string_view call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // else the next launch would be blamed for it
  throw CudaError(call, status);
}

}  // namespace attest
