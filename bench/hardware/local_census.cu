// How many lines of local memory, or their copies, lie in a set of L2. CSV to standard output.
//
//     local_census 40 > docs/results/h100/local_census.csv        for so many seconds
//
// An SM reads 16 lines of one set; then all warps of two CTAs an SM store so many words of their local memory; then the
// lines are read again, the last first: as many are gone as have come into the set since.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "l2_set_finder.cuh"

namespace attest::hardware {
namespace {

constexpr int kThreads = 128, kFrame = 160, kWays = 16;

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
  std::uint32_t array[kFrame];
  const auto at = static_cast<std::uint32_t>(__cvta_generic_to_local(array));
  for (int w = 0; w < words; ++w) asm volatile("st.local.u32 [%0], %1;" ::"r"(at + 4 * w), "r"(w) : "memory");
  if (words < 0) *sink = 1;
}

void measure(double seconds) {
  L2SetFinder finder;
  const auto sms = static_cast<unsigned>(finder.sms().size());
  const DeviceArray<int> sink(1);
  const DeviceArray<unsigned> latency(kWays);
  check(cudaFuncSetAttribute(read_set, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemOneCtaAnSm));
  check(cudaFuncSetAttribute(store_words, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemTwoCtasAnSm));
  const auto came = [&](const DeviceArray<std::uint32_t>& lines, int words) {
    const auto go = [&](bool last_first, int rounds) {
      read_set<<<sms, 32, kSmemOneCtaAnSm>>>(finder.buffer(), lines.data(), last_first, rounds, latency.data());
      check(cudaGetLastError());
    };
    go(false, 3);
    store_words<<<2 * sms, kThreads, kSmemTwoCtasAnSm>>>(words, sink.data());
    check(cudaGetLastError());
    go(true, 1);
    const std::vector<unsigned> took = latency.download();
    int there = 0;
    while (there < kWays && took[static_cast<std::size_t>(kWays - 1 - there)] <= kNear) ++there;
    return kWays - there;
  };
  std::printf("set,words,lines\n");
  const auto began = std::chrono::steady_clock::now();
  for (int set = 0; std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() < seconds; ++set) {
    Lines of_set = finder.find();
    of_set.resize(kWays);
    const DeviceArray<std::uint32_t> lines(of_set);
    for (const int words : {0, 60, 131, 150}) std::printf("%d,%d,%d\n", set, words, came(lines, words));
  }
}

}  // namespace
}  // namespace attest::hardware

int main(int argc, char** argv) try {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 40;
  if (!(seconds > 0)) return std::fprintf(stderr, "local_census: seconds: %s must be above 0\n", argv[1]), 2;
  attest::hardware::measure(seconds);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "local_census: %s\n", error.what());
  return 1;
}
