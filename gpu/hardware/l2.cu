#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "attest/hardware/device.h"
#include "attest/hardware/l2.h"

namespace attest::hardware {
namespace {

constexpr int kThreads = 512, kInFlight = 8, kPageWords = kPageBytes / 16;

__global__ void __launch_bounds__(kThreads)
    probe_read_pages(const uint4* data, const std::uint32_t* pages, std::int64_t words, unsigned* sink) {
  unsigned mixed = 0;
  for (std::int64_t first = threadIdx.x; first < words; first += kInFlight * kThreads) {
    uint4 x[kInFlight];
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) {
      const std::int64_t i = first + j * kThreads;
      x[j] = i < words ? __ldcg(data + static_cast<std::int64_t>(pages[i / kPageWords]) * kPageWords + i % kPageWords)
                       : uint4{};
    }
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) mixed ^= x[j].x ^ x[j].y ^ x[j].z ^ x[j].w;
  }
  if (mixed == 1) *sink = mixed;  // the data are zeros
}

__global__ void __launch_bounds__(kThreads) probe_read_once(const uint4* data, std::int64_t words, unsigned* sink) {
  unsigned mixed = 0;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < words; i += gridDim.x * kThreads) {
    const uint4 x = __ldcg(data + i);
    mixed ^= x.x ^ x.y ^ x.z ^ x.w;
  }
  if (mixed == 1) *sink = mixed;
}

__global__ void __launch_bounds__(kThreads) probe_write_once(uint4* data, std::int64_t words) {
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < words; i += gridDim.x * kThreads) data[i] = uint4{};
}

std::vector<std::uint32_t> first_pages(std::size_t count) {
  std::vector<std::uint32_t> pages(count);
  std::iota(pages.begin(), pages.end(), 0U);
  return pages;
}

std::vector<std::uint32_t> shuffled(std::vector<std::uint32_t> pages) {
  std::shuffle(pages.begin(), pages.end(), std::mt19937(1));
  return pages;
}

}  // namespace

struct L2Buffer::Memory {
  explicit Memory(std::int64_t bytes)
      : data(static_cast<std::size_t>(bytes / 16)),
        contiguous(first_pages(static_cast<std::size_t>(bytes / kPageBytes))),
        scattered(shuffled(first_pages(static_cast<std::size_t>(bytes / kPageBytes)))),
        sink(1) {}
  int sms = multiprocessors();
  DeviceArray<uint4> data;
  DeviceArray<std::uint32_t> contiguous, scattered;
  DeviceArray<unsigned> sink;
};

L2Buffer::L2Buffer(std::int64_t bytes) : memory_(std::make_unique<Memory>(bytes)) {}
L2Buffer::~L2Buffer() = default;

void L2Buffer::read(std::int64_t bytes, Pages pages, cudaStream_t stream) const {
  const Memory& m = *memory_;
  const DeviceArray<std::uint32_t>& list = pages == Pages::scattered ? m.scattered : m.contiguous;
  probe_read_pages<<<m.sms, kThreads, 0, stream>>>(m.data.data(), list.data(), bytes / 16, m.sink.data());
  check(cudaGetLastError());
}

void L2Buffer::read_once(std::int64_t first, std::int64_t bytes, cudaStream_t stream) const {
  const Memory& m = *memory_;
  probe_read_once<<<4 * m.sms, kThreads, 0, stream>>>(m.data.data() + first / 16, bytes / 16, m.sink.data());
  check(cudaGetLastError());
}

void L2Buffer::write_once(std::int64_t first, std::int64_t bytes, cudaStream_t stream) const {
  const Memory& m = *memory_;
  probe_write_once<<<4 * m.sms, kThreads, 0, stream>>>(m.data.data() + first / 16, bytes / 16);
  check(cudaGetLastError());
}

}  // namespace attest::hardware
