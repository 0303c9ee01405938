// How long after a store another one of its sector still leaves the SM with it. CSV to standard output.
//
//     shared_sectors > docs/results/h200-sm/shared_sectors.csv
//
// A CTA an SM stores the first half of each of so many sectors by one instruction and the second by another, so many
// dependent instructions later: by the same warp, by one of another quarter of the SM, or by one of its own quarter.
// Turns are far apart. Columns: who stores the second; sectors; bytes from one to the next; bytes that a lane stores;
// instructions in between; cycles from just before the first store to just behind the second, where one warp has both;
// sectors of all turns, and the part of them that was counted once.
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "attest/counters/counter_reader.h"
#include "attest/hardware/device.h"

namespace attest::hardware {
namespace {

constexpr int kTurns = 64, kWarps = 8;
constexpr std::size_t kBytes = std::size_t{1} << 30;

struct Stores {
  int second_warp, sectors, pitch, lane_bytes, between;
};

__device__ unsigned clock_now() {
  unsigned now = 0;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(now)::"memory");
  return now;
}

template <int lane_bytes>
__device__ void store(std::uint8_t* to, unsigned x) {
  if constexpr (lane_bytes == 16)
    asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(to), "r"(x) : "memory");
  else
    asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(x) : "memory");
}

/// Instructions of four cycles, each of which waits for the one before.
template <int n>
__device__ unsigned chain(unsigned x) {
#pragma unroll
  for (int i = 0; i < n; ++i) asm volatile("mad.lo.u32 %0, %0, %0, %0;" : "+r"(x)::"memory");
  return x;
}

template <int between, int lane_bytes>
__global__ void __launch_bounds__(32 * kWarps) go(Stores s, std::uint8_t* bytes, int* took) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  std::uint8_t* at = bytes + (std::int64_t{blockIdx.x} * kTurns) * 32 * 256 + lane * s.pitch;
  const bool first = warp == 0 && lane < s.sectors, second = warp == s.second_warp && lane < s.sectors;
  const bool both = first && second;
  int sum = 0;
  for (int turn = 0; turn < kTurns; ++turn, at += 32 * 256) {
    __syncthreads();
    if (both) {
      const unsigned began = clock_now();
      store<lane_bytes>(at, began);
      store<lane_bytes>(at + 16, chain<between>(began));
      sum += static_cast<int>(clock_now() - began);
    } else if (first) {
      store<lane_bytes>(at, turn);
    } else if (second) {
      store<lane_bytes>(at + 16, chain<between>(static_cast<unsigned>(turn)));
    }
    const long long began = clock64();
    while (clock64() - began < 2000) continue;
  }
  if (threadIdx.x == 0) took[blockIdx.x] = sum / kTurns;
}

using Kernel = void (*)(Stores, std::uint8_t*, int*);
struct Between {
  int instructions;
  Kernel of_word, of_chunk;
};
template <int... n>
std::vector<Between> betweens(std::integer_sequence<int, n...>) {
  return {{n, go<n, 4>, go<n, 16>}...};
}

class Work : public CountedWork {
 public:
  Work() : bytes_(kBytes), took_(static_cast<std::size_t>(multiprocessors())) {
    for (const Between& b : betweens(std::integer_sequence<int, 0, 1, 2, 3, 4, 5, 6, 8, 12>{}))
      for (const int second_warp : {0, 1, 4})
        for (const int lane_bytes : {4, 16})
          for (const auto& [sectors, pitch] :
               std::vector<std::pair<int, int>>{{1, 32}, {2, 128}, {4, 128}, {8, 128}, {32, 32}, {32, 128}})
            calls.push_back(
                {{second_warp, sectors, pitch, lane_bytes, b.instructions}, lane_bytes == 4 ? b.of_word : b.of_chunk});
  }
  void launch() override {
    for (const auto& [stores, kernel] : calls) {
      kernel<<<multiprocessors(), 32 * kWarps>>>(stores, bytes_.data(), took_.data());
      check(cudaGetLastError());
    }
  }
  void wait() override { check(cudaDeviceSynchronize()); }
  void empty_l2() override {}
  int took(const Stores& stores, Kernel kernel) {
    kernel<<<multiprocessors(), 32 * kWarps>>>(stores, bytes_.data(), took_.data());
    check(cudaDeviceSynchronize());
    return took_.download().at(0);
  }

  std::vector<std::pair<Stores, Kernel>> calls;

 private:
  DeviceArray<std::uint8_t> bytes_;
  DeviceArray<int> took_;
};

void measure() {
  const std::string counter = "l1tex__m_l1tex2xbar_write_bytes.sum";
  Work work;
  CounterReader reader({counter});
  const std::vector<LaunchCounters> counted = reader.read(work, false);
  std::printf("second_warp,sectors,pitch,lane_bytes,between,cycles,pairs,together\n");
  const int sms = multiprocessors();
  for (std::size_t i = 0; i < counted.size(); ++i) {
    const auto& [s, kernel] = work.calls.at(i);
    const double pairs = static_cast<double>(kTurns) * sms * s.sectors;
    const double left = counted[i].values.at(counter) / 32 - sms;  // and each CTA's time
    std::printf("%d,%d,%d,%d,%d,%d,%.0f,%.4f\n", s.second_warp, s.sectors, s.pitch, s.lane_bytes, s.between,
                work.took(s, kernel), pairs, 2 - left / pairs);
  }
}

}  // namespace
}  // namespace attest::hardware

int main() { return attest::hardware::run("shared_sectors", &attest::hardware::measure); }
