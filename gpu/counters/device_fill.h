// Kernels that prepare a call: values for its inputs, and reads that displace what L2 holds.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "attest/problem/dtype.h"

namespace attest {

/// `count` standard normal values of a dtype (fp16, bf16, fp32), a pure function of `seed`. Throws CudaError, as all.
void fill_normal(void* data, std::int64_t count, Dtype dtype, std::uint64_t seed, cudaStream_t stream);
/// Reads `bytes` bytes, a multiple of 16, once.
void read_through(const void* data, std::size_t bytes, cudaStream_t stream);
void launch_mark(cudaStream_t stream);

}  // namespace attest
