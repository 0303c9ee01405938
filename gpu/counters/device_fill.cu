#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <stdexcept>

#include "attest/gpu/cuda_error.h"
#include "device_fill.h"

namespace attest {
namespace {

constexpr int threads = 256, blocks = 1024;

__device__ std::uint64_t mixed(std::uint64_t x) {  // splitmix64's finalizer
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

template <class T>
__global__ void fill(T* data, std::int64_t count, std::uint64_t seed) {
  const std::int64_t stride = std::int64_t{1} * blockDim.x * gridDim.x;
  for (std::int64_t i = std::int64_t{1} * blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    const std::uint64_t bits = mixed(seed + static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15);
    const float u = (static_cast<float>(bits >> 40) + 0.5f) * 0x1p-24f;
    const float angle = static_cast<float>(bits & 0xffffff) * 0x1p-23f;
    data[i] = static_cast<T>(sqrtf(-2 * logf(u)) * cospif(angle));  // Box and Muller
  }
}

__global__ void read_all(const uint4* data, std::int64_t count, unsigned* never) {
  unsigned sum = 0;
  const std::int64_t stride = std::int64_t{1} * blockDim.x * gridDim.x;
  for (std::int64_t i = std::int64_t{1} * blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    const uint4 x = data[i];
    sum += x.x ^ x.y ^ x.z ^ x.w;
  }
  if (sum == 0x9e3779b9 && never != nullptr) *never = sum;  // so that the loads stay
}

}  // namespace

extern "C" __global__ void attest_measure_mark() {}

void fill_normal(void* data, std::int64_t count, Dtype dtype, std::uint64_t seed, cudaStream_t stream) {
  if (count == 0) return;
  if (dtype == Dtype::fp16)
    fill<<<blocks, threads, 0, stream>>>(static_cast<__half*>(data), count, seed);
  else if (dtype == Dtype::bf16)
    fill<<<blocks, threads, 0, stream>>>(static_cast<__nv_bfloat16*>(data), count, seed);
  else if (dtype == Dtype::fp32)
    fill<<<blocks, threads, 0, stream>>>(static_cast<float*>(data), count, seed);
  else
    throw std::logic_error("fill_normal: a dtype that no CUDA kernel takes");
  cuda_check_launch("fill_normal");
}

void read_through(const void* data, std::size_t bytes, cudaStream_t stream) {
  read_all<<<blocks, threads, 0, stream>>>(static_cast<const uint4*>(data), static_cast<std::int64_t>(bytes / 16),
                                           nullptr);
  cuda_check_launch("read_through");
}

void launch_mark(cudaStream_t stream) {
  attest_measure_mark<<<1, 1, 0, stream>>>();
  cuda_check_launch("launch_mark");
}

}  // namespace attest
