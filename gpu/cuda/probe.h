#pragma once
#include <cuda_runtime_api.h>

namespace attest {

/// cudaSuccess where the current device runs code of this build: of the architectures that everything here is built
/// for.
cudaError_t find_code_for_device();

}  // namespace attest
