#include <cstdint>
#include <stdexcept>
#include <vector>

#include "attest/hardware/l2_set_finder.cuh"
#include "attest/hardware/local_census.h"

namespace attest::hardware {
namespace {

constexpr int kThreads = 128, kWays = 16;

/// By one thread of SM 0.
__global__ void __launch_bounds__(32, 1)
    read_set(const std::uint8_t* buffer, const std::uint32_t* lines, bool last_first, int rounds, unsigned* latency) {
  if (sm_id() != 0 || threadIdx.x != 0) return;
  for (int i = 0; i < rounds * kWays; ++i) {
    const int line = last_first ? kWays - 1 - i % kWays : i % kWays;
    const std::uint8_t* const at = buffer + kLineBytes * lines[line];
    const long long began = clock64();
    if (read(at + (began == kNever ? 4 : 0)) == kNever) __trap();
    latency[line] = static_cast<unsigned>(clock64() - began);
  }
}

__global__ void __launch_bounds__(kThreads, 2) store_words(int words, int* sink) {
  std::uint32_t array[LocalCensus::most_words];
  const auto at = static_cast<std::uint32_t>(__cvta_generic_to_local(array));
  for (int w = 0; w < words; ++w) asm volatile("st.local.u32 [%0], %1;" ::"r"(at + 4 * w), "r"(w) : "memory");
  if (words < 0) *sink = 1;
}

}  // namespace

struct LocalCensus::Gpu {
  explicit Gpu(std::uint32_t seed) : finder(seed) {}
  L2SetFinder finder;
  DeviceArray<std::uint32_t> lines{kWays};
  DeviceArray<int> sink{1};
  DeviceArray<unsigned> latency{kWays};

  void read(bool last_first, int rounds) const {
    read_set<<<static_cast<unsigned>(finder.sms().size()), 32, kSmemOneCtaAnSm>>>(finder.buffer(), lines.data(),
                                                                                  last_first, rounds, latency.data());
    check(cudaGetLastError());
  }
};

LocalCensus::LocalCensus(std::uint32_t seed) : gpu_(std::make_unique<Gpu>(seed)) {
  check(cudaFuncSetAttribute(read_set, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemOneCtaAnSm));
  check(cudaFuncSetAttribute(store_words, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemTwoCtasAnSm));
}
LocalCensus::~LocalCensus() = default;

std::vector<int> LocalCensus::next_set(const std::vector<int>& words) {
  Lines of_set = gpu_->finder.find();
  of_set.resize(kWays);
  gpu_->lines.upload(of_set);
  std::vector<int> came;
  for (const int n : words) {
    if (n < 0 || n > most_words) throw std::invalid_argument("local_census: words beyond its frame");
    gpu_->read(false, 3);
    store_words<<<2 * static_cast<unsigned>(gpu_->finder.sms().size()), kThreads, kSmemTwoCtasAnSm>>>(
        n, gpu_->sink.data());
    check(cudaGetLastError());
    gpu_->read(true, 1);
    const std::vector<unsigned> took = gpu_->latency.download();
    int there = 0;
    while (there < kWays && took[static_cast<std::size_t>(kWays - 1 - there)] <= kNear) ++there;
    came.push_back(kWays - there);
  }
  return came;
}

}  // namespace attest::hardware
