#include <algorithm>

#include "attest/hardware/device.h"
#include "attest/hardware/launches.h"

namespace attest::hardware {
namespace {

__global__ void probe_wait(int wait_cycles, int* stored) {
  const long long began = clock64();
  while (clock64() - began < wait_cycles) {
  }
  stored[blockIdx.x * blockDim.x + threadIdx.x] = wait_cycles;
}

__global__ void probe_end_and_start(std::uint64_t* began, std::uint64_t* ended, int wait_ns) {
  *began = global_time_ns();
  while (global_time_ns() - *began < static_cast<std::uint64_t>(wait_ns)) {
  }
  *ended = global_time_ns();
}

constexpr int kLineArguments = 1000, kLineBytes = 64;

struct ArgumentLines {
  long long* cycles;
  std::uint32_t* sink;
  std::uint32_t words[kLineArguments];
};

/// Uses a word of each of so many lines of arguments, of which none is near; all are 0, but which comes next hangs on
/// the one before.
template <int Lines>
__global__ void probe_arguments(const __grid_constant__ ArgumentLines p) {
  constexpr int first = 32;  // words; off those lines that every kernel has read
  std::uint32_t x = p.words[0];
  const long long began = clock64();
#pragma unroll
  for (int i = 0; i < Lines; ++i) {
    x = p.words[first + i * (kLineBytes / 4) + x];
    asm volatile("" : "+r"(x));
  }
  if (x != 0) return;  // waits for the last one
  p.cycles[blockIdx.x] = clock64() - began;
  p.sink[blockIdx.x] = x;
}

template <int Lines>
double cycles_of_arguments() {
  constexpr int ctas = 64, repeats = 3;
  const DeviceArray<long long> cycles(ctas);
  const DeviceArray<std::uint32_t> sink(ctas);
  double sum = 0;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    probe_arguments<Lines><<<ctas, 1>>>({cycles.data(), sink.data(), {}});
    check(cudaGetLastError());
    for (const long long each : cycles.download()) sum += static_cast<double>(each);
  }
  return sum / ctas / repeats;
}

}  // namespace

struct WaitingLaunches::Memory {
  explicit Memory(std::size_t threads) : stored(threads) {}
  DeviceArray<int> stored;
};

WaitingLaunches::WaitingLaunches(int smem_bytes_per_cta, bool clusters) {
  const int sms = multiprocessors();
  constexpr int long_wait = 8000;
  launches_.push_back({.ctas = 1, .wait_cycles = long_wait});
  launches_.push_back({.ctas = sms, .wait_cycles = long_wait});
  // so much shared memory that no more CTAs fit an SM
  const int half = smem_bytes_per_cta / 3, whole = smem_bytes_per_cta * 9 / 10;
  for (const WaitingLaunch& shape :
       {WaitingLaunch{128, half, 2}, WaitingLaunch{128, half * 3 / 5, 4}, WaitingLaunch{384, whole, 1},
        WaitingLaunch{384, whole, 1, 1}, WaitingLaunch{384, whole, 1, 2}, WaitingLaunch{512, whole * 7 / 10, 1}})
    for (const int waves : {1, 2, 4, 8})
      for (const int wait : {0, 2000, long_wait}) {
        if (shape.cluster > 0 && !clusters) continue;
        WaitingLaunch& launch = launches_.emplace_back(shape);
        launch.ctas = sms * shape.ctas_an_sm * waves, launch.waves = waves, launch.wait_cycles = wait;
      }
  std::size_t most = 0;
  for (const WaitingLaunch& l : launches_) most = std::max(most, static_cast<std::size_t>(l.ctas) * l.threads);
  memory_ = std::make_unique<Memory>(most);
}
WaitingLaunches::~WaitingLaunches() = default;

void WaitingLaunches::launch(const WaitingLaunch& launch, cudaStream_t stream) const {
  check(cudaFuncSetAttribute(probe_wait, cudaFuncAttributeMaxDynamicSharedMemorySize, launch.smem_bytes));
  cudaLaunchConfig_t config{};
  config.gridDim = launch.ctas;
  config.blockDim = launch.threads;
  config.dynamicSmemBytes = launch.smem_bytes;
  config.stream = stream;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = launch.cluster, cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  config.attrs = &cluster;
  config.numAttrs = launch.cluster > 0 ? 1 : 0;
  check(cudaLaunchKernelEx(&config, probe_wait, launch.wait_cycles, memory_->stored.data()));
}

double argument_line_cycles() {
  constexpr int few = 4, more = 12;
  return (cycles_of_arguments<more>() - cycles_of_arguments<few>()) / (more - few);
}

double seconds_between_launches() {
  constexpr int launches = 201, wait_ns = 20'000;  // so long that the next one has been enqueued
  const DeviceArray<std::uint64_t> began(launches), ended(launches);
  for (int i = 0; i < launches; ++i) probe_end_and_start<<<1, 1>>>(began.data() + i, ended.data() + i, wait_ns);
  check(cudaGetLastError());
  const std::vector<std::uint64_t> starts = began.download(), ends = ended.download();
  std::vector<std::uint64_t> between;
  for (int i = 1; i < launches; ++i) between.push_back(starts[i] - ends[i - 1]);
  std::nth_element(between.begin(), between.begin() + launches / 2, between.end());
  return 1e-9 * static_cast<double>(between[launches / 2]);
}

}  // namespace attest::hardware
