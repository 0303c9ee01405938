#include <cuda_runtime.h>

#include "attest/hardware/device.h"
#include "attest/hardware/random_numbers.h"

namespace attest::hardware {
namespace {

__global__ void fill(std::uint32_t* pairs, std::int64_t count, std::int64_t first) {
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x)
    pairs[i] = random_pair(static_cast<std::uint32_t>(first + i));
}

}  // namespace

void fill_with_random_pairs(std::uint32_t* pairs, std::int64_t count, std::int64_t first) {
  fill<<<1024, 256>>>(pairs, count, first);
  check(cudaGetLastError());
}

}  // namespace attest::hardware
