// What every micro-benchmark needs of the device: checked calls, an allocation, which SM it is on, a barrier of the
// grid.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace attest::hardware {

/// Throws with the place and CUDA's own words unless `status` is success.
inline void check(cudaError_t status, std::source_location at = std::source_location::current()) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // so that the next launch is not taken for the one that failed
  throw std::runtime_error(std::string(at.file_name()) + ":" + std::to_string(at.line()) + ": " +
                           cudaGetErrorString(status));
}

/// For main(): measures, or says on standard error what went wrong and returns 1.
inline int run(const char* name, void (*measure)()) try {
  measure();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s: %s\n", name, error.what());
  return 1;
}

inline int multiprocessors() {
  int sms = 0;
  check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  return sms;
}

/// Device memory of `count` zeroed elements, freed with the object.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    check(cudaMalloc(&data_, count * sizeof(T)));
    check(cudaMemset(data_, 0, count * sizeof(T)));
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) { upload(values); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  DeviceArray(DeviceArray&& other) noexcept : data_(other.data_), count_(other.count_) { other.data_ = nullptr; }
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(data_, other.data_), std::swap(count_, other.count_);
    return *this;
  }
  ~DeviceArray() { cudaFree(data_); }

  T* data() const { return data_; }
  std::size_t size() const { return count_; }
  void upload(const std::vector<T>& values) const {
    check(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  std::vector<T> download() const {
    std::vector<T> values(count_);
    check(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

/// Dynamic shared memory of which one CTA fills an SM, and of which two do (228 KiB an SM, 227 a CTA).
inline constexpr int kSmemOneCtaAnSm = 160 * 1024;
inline constexpr int kSmemTwoCtasAnSm = 100 * 1024;

inline constexpr int kPageBytes = 4096;  ///< the unit of which L2 partition a line belongs to

#ifdef __CUDACC__
__device__ inline unsigned sm_id() {
  unsigned id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
}

__device__ inline std::uint64_t global_time_ns() {
  std::uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

/// Waits for `ctas` CTAs of the grid, which must be resident together. `arrived` starts at zero and only grows;
/// `generation` counts this CTA's barriers.
__device__ inline void grid_barrier(unsigned* arrived, unsigned& generation, unsigned ctas) {
  __syncthreads();
  if (threadIdx.x == 0) {
    ++generation;
    __threadfence();
    atomicAdd(arrived, 1);
    while (*static_cast<volatile unsigned*>(arrived) < generation * ctas) __nanosleep(200);
  }
  __syncthreads();
}
#endif

}  // namespace attest::hardware
