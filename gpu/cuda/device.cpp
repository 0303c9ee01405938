#include "attest/gpu/device.h"

#include <fmt/format.h>

#include <algorithm>

#include "attest/gpu/cuda_error.h"
#include "attest/problem/error.h"
#include "probe.h"

namespace attest {
namespace {

constexpr int oldest_compute_capability = 80;

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string why_no_device(cudaError_t status, std::string_view otherwise) {
  int driver = 0, runtime = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    return fmt::format("no NVIDIA driver is loaded here; run on a machine with a GPU, or {}", otherwise);
  cudaRuntimeGetVersion(&runtime);
  switch (status) {
    case cudaErrorInsufficientDriver:
      return fmt::format("the driver takes CUDA {}, this build needs {}; update the driver, or build with that toolkit",
                         version_text(driver), version_text(runtime));
    case cudaErrorNoDevice:
    case cudaSuccess:
      return fmt::format("no GPU is visible; look at nvidia-smi and CUDA_VISIBLE_DEVICES, or {}", otherwise);
    default:
      return fmt::format("the GPU cannot be opened ({}: {}); look at nvidia-smi, or {}", cudaGetErrorName(status),
                         cudaGetErrorString(status), otherwise);
  }
}

}  // namespace

DeviceLimits open_device(std::string_view otherwise) {
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    cudaGetLastError();
    throw EnvironmentError(why_no_device(status, otherwise));
  }
  int device = 0;
  cudaDeviceProp properties{};
  status = cudaGetDevice(&device);
  if (status == cudaSuccess) status = cudaGetDeviceProperties(&properties, device);
  if (status == cudaSuccess) status = cudaFree(nullptr);  // makes the context
  if (status != cudaSuccess) {
    cudaGetLastError();
    throw EnvironmentError(why_no_device(status, otherwise));
  }
  DeviceLimits limits;
  limits.name = properties.name;
  limits.compute_capability = 10 * properties.major + properties.minor;
  limits.num_sms = properties.multiProcessorCount;
  limits.smem_bytes_per_block = static_cast<std::int64_t>(properties.sharedMemPerBlockOptin);
  limits.smem_bytes_per_sm = static_cast<std::int64_t>(properties.sharedMemPerMultiprocessor);
  limits.l2_bytes = properties.l2CacheSize;
  limits.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  if (limits.compute_capability < oldest_compute_capability)
    throw EnvironmentError(fmt::format("{} is sm_{}; the kernels need sm_{} or later; {}", limits.name,
                                       limits.compute_capability, oldest_compute_capability, otherwise));
  if (const cudaError_t code = find_code_for_device(); code != cudaSuccess) {
    cudaGetLastError();
    throw EnvironmentError(fmt::format("this build has no code for {} ({}); build with -DCMAKE_CUDA_ARCHITECTURES={}",
                                       limits.name, cudaGetErrorName(code), limits.compute_capability));
  }
  return limits;
}

void DeviceMemory::reserve(std::size_t bytes) {
  if (bytes <= capacity_) return;
  constexpr std::size_t unit = std::size_t{2} << 20;
  const std::size_t grown = (std::max(bytes, capacity_ + capacity_ / 2) + unit - 1) / unit * unit;
  release();
  void* memory = nullptr;
  if (where_ == Where::device)
    cuda_check(cudaMalloc(&memory, grown), fmt::format("cudaMalloc of {} bytes", grown));
  else
    cuda_check(cudaHostAlloc(&memory, grown, cudaHostAllocDefault), fmt::format("cudaHostAlloc of {} bytes", grown));
  data_ = static_cast<std::byte*>(memory);
  capacity_ = grown;
}

void DeviceMemory::release() noexcept {
  if (data_ == nullptr) return;
  if (where_ == Where::device)
    cudaFree(data_);
  else
    cudaFreeHost(data_);
  data_ = nullptr;
  capacity_ = 0;
}

Stream::Stream() { cuda_check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }

Stream::~Stream() { cudaStreamDestroy(stream_); }

}  // namespace attest
