#include <algorithm>
#include <cmath>
#include <utility>

#include "attest/hardware/device.h"
#include "attest/hardware/key_tile.cuh"
#include "copies.h"
#include "turn_over.cuh"

namespace attest::hardware {
namespace {

constexpr int kTiles = 48;

// A ring of `stages` tiles, each copied again as soon as it is there: by one bulk copy, or by all threads' cp.async.
__global__ void __launch_bounds__(128, 1) probe_copy(bool bulk, int bytes, int stages, const std::uint8_t* buffer,
                                                     std::int64_t buffer_bytes, long long* cycles, float* squares) {
  extern __shared__ __align__(1024) std::uint8_t smem[];
  __shared__ std::uint64_t barriers[8];
  const auto bars = static_cast<std::uint32_t>(__cvta_generic_to_shared(barriers));
  const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(smem));
  if (threadIdx.x < 8) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bars + threadIdx.x * 8));
  __syncthreads();
  const auto copy = [&](int tile) {
    // SMs apart from each other
    const std::int64_t at =
        (static_cast<std::int64_t>(blockIdx.x) * kTiles + tile) * bytes % (buffer_bytes - bytes) / 1024 * 1024;
    const std::uint32_t slot = to + tile % stages * bytes, bar = bars + tile % stages * 8;
    if (bulk) {
      if (threadIdx.x == 0) copy_bulk(slot, buffer + at, bytes, bar);
    } else {
      for (int i = threadIdx.x * 16; i < bytes; i += blockDim.x * 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(slot + i), "l"(buffer + at + i));
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  const long long began = clock64();
  long long last = began;
  float square = 0;
  for (int t = 0; t < stages; ++t) copy(t);
  for (int t = 0; t < kTiles; ++t) {
    if (bulk)
      wait_for(bars + t % stages * 8, t / stages & 1);
    else if (stages == 1)
      asm volatile("cp.async.wait_group 0;" ::: "memory");
    else if (stages == 2)
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    else
      asm volatile("cp.async.wait_group 3;" ::: "memory");
    __syncthreads();
    const long long now = clock64();
    const auto took = static_cast<float>(now - last);
    square += took * took, last = now;
    if (t + stages < kTiles)
      copy(t + stages);
    else
      asm volatile("cp.async.commit_group;" ::: "memory");
  }
  const long long ended = clock64();
  if (threadIdx.x == 0) cycles[blockIdx.x] = ended - began, squares[blockIdx.x] = square;
}

}  // namespace

void measure_copies(std::ostream& rows) {
  const std::int64_t buffer_bytes = std::int64_t{1} << 30;
  const DeviceArray<std::uint8_t> buffer(buffer_bytes), other(kTurnOverBytes);
  const DeviceArray<long long> cycles(256);
  const DeviceArray<float> squares(256);
  int sms = 0;
  check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  check(cudaFuncSetAttribute(probe_copy, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024));
  for (const bool bulk : {true, false})
    for (const int bytes : {4096, 16384, 32768, 45056})
      for (const int stages : {1, 2, 4})
        for (const int ctas : {1, sms})
          for (const bool in_l2 : {true, false}) {
            std::vector<std::pair<double, double>> all;  // mean and deviation
            for (int repeat = 0; repeat < 4; ++repeat) {
              if (!in_l2) turn_over(other);
              probe_copy<<<ctas, 128, 4 * 45056>>>(bulk, bytes, stages, buffer.data(),
                                                   in_l2 ? std::int64_t{16} << 20 : buffer_bytes, cycles.data(),
                                                   squares.data());
              check(cudaGetLastError());
              const std::vector<long long> each = cycles.download();
              const std::vector<float> square = squares.download();
              double sum = 0, sum_of_squares = 0;
              for (int i = 0; i < ctas; ++i) sum += static_cast<double>(each[i]), sum_of_squares += square[i];
              const double mean = sum / ctas / kTiles;
              if (repeat > 0)
                all.emplace_back(mean, std::sqrt(std::max(0.0, sum_of_squares / ctas / kTiles - mean * mean)));
            }
            std::sort(all.begin(), all.end());
            rows << (bulk ? "bulk" : "cp_async") << ',' << bytes << ',' << stages << ',' << ctas << ','
                 << (in_l2 ? "l2" : "dram") << ',' << all[1].first << ',' << all[1].second << '\n';
          }
}

}  // namespace attest::hardware
