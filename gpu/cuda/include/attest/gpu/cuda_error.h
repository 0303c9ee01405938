// Every CUDA call's status is looked at, and a bad one becomes an exception that says which call it was.
#pragma once
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace attest {

/// A CUDA call that failed: "<call>: <error name>: <what CUDA says of it>".
class CudaError : public std::runtime_error {
 public:
  CudaError(std::string_view call, cudaError_t error);
  cudaError_t error() const { return error_; }

 private:
  cudaError_t error_;
};

/// Throws CudaError where `status` is an error, which it takes out of CUDA's last error. `call` is the function's name,
/// and what it was called for where that helps.
void cuda_check(cudaError_t status, std::string_view call);

/// What follows every <<<launch>>>: throws CudaError where `kernel` could not be launched, for too much shared memory,
/// a grid that is too large or code for another architecture. Does not wait.
inline void cuda_check_launch(std::string_view kernel) { cuda_check(cudaGetLastError(), kernel); }

}  // namespace attest
