// How fast DRAM is after memory was freed, which the GPU seems to clear in the background. CSV to standard output.
//
//     freed_memory > docs/results/h200-l2/freed_memory.csv
//
// Columns: GiB that were freed, seconds since then at a copy's end, and what the copy of 1 GiB moved, in bytes a second
// read and written. Copies follow each other; half a second later there are four more.
#include <chrono>
#include <cstdio>
#include <thread>

#include "attest/hardware/device.h"

namespace attest::hardware {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kGiB = std::size_t{1} << 30;

double copied_bytes_a_second(std::uint8_t* to, const std::uint8_t* from) {
  const auto began = Clock::now();
  check(cudaMemcpy(to, from, kGiB, cudaMemcpyDeviceToDevice));
  check(cudaDeviceSynchronize());
  return 2 * kGiB / std::chrono::duration<double>(Clock::now() - began).count();
}

void measure() {
  const DeviceArray<std::uint8_t> from(kGiB), to(kGiB);
  std::printf("freed_gib,seconds,bytes_per_second\n");
  for (const std::size_t gib : {0, 1, 4, 16, 64}) {
    {
      const DeviceArray<std::uint8_t> other(gib * kGiB);
      for (int i = 0; i < 4; ++i) copied_bytes_a_second(to.data(), from.data());
    }
    const auto freed = Clock::now();
    const auto copy = [&] {
      const double rate = copied_bytes_a_second(to.data(), from.data());
      std::printf("%zu,%.4f,%.4g\n", gib, std::chrono::duration<double>(Clock::now() - freed).count(), rate);
    };
    for (int i = 0; i < 400; ++i) copy();
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    for (int i = 0; i < 4; ++i) copy();
  }
}

}  // namespace
}  // namespace attest::hardware

int main() { return attest::hardware::run("freed_memory", &attest::hardware::measure); }
