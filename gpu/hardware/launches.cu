#include <algorithm>

#include "attest/hardware/device.h"
#include "attest/hardware/launches.h"

namespace attest::hardware {
namespace {

__global__ void probe_nothing(int wait_cycles, unsigned* sink) {
  extern __shared__ std::uint8_t smem[];
  const long long began = clock64();
  while (clock64() - began < wait_cycles) {
  }
  if (wait_cycles < 0) *sink = smem[threadIdx.x];
}

__global__ void probe_end_and_start(std::uint64_t* began, std::uint64_t* ended, int wait_ns) {
  *began = global_time_ns();
  while (global_time_ns() - *began < static_cast<std::uint64_t>(wait_ns)) {
  }
  *ended = global_time_ns();
}

}  // namespace

std::vector<WaitingLaunch> waiting_launches(int smem_bytes_per_cta, bool clusters) {
  std::vector<WaitingLaunch> launches;
  // so much shared memory that no more CTAs fit an SM
  const int half = smem_bytes_per_cta / 3, whole = smem_bytes_per_cta * 9 / 10;
  for (const WaitingLaunch& shape :
       {WaitingLaunch{128, half, 2, 1}, WaitingLaunch{128, half * 3 / 5, 4, 1}, WaitingLaunch{384, whole, 1, 1},
        WaitingLaunch{384, whole, 1, 2}, WaitingLaunch{512, whole * 7 / 10, 1, 1}})
    for (const int waves : {1, 2, 4, 8})
      for (const int wait : {0, 2000, 8000}) {
        if (shape.cluster > 1 && !clusters) continue;
        WaitingLaunch& launch = launches.emplace_back(shape);
        launch.waves = waves, launch.wait_cycles = wait;
      }
  return launches;
}

void launch(const WaitingLaunch& launch, cudaStream_t stream) {
  int sms = 0;
  check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  check(cudaFuncSetAttribute(probe_nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, launch.smem_bytes));
  cudaLaunchConfig_t config{};
  config.gridDim = sms * launch.ctas_an_sm * launch.waves;
  config.blockDim = launch.threads;
  config.dynamicSmemBytes = launch.smem_bytes;
  config.stream = stream;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = launch.cluster, cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  config.attrs = &cluster;
  config.numAttrs = launch.cluster > 1 ? 1 : 0;
  check(cudaLaunchKernelEx(&config, probe_nothing, launch.wait_cycles, static_cast<unsigned*>(nullptr)));
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
