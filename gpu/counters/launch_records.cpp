#include "launch_records.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "attest/gpu/cuda_error.h"
#include "cupti.h"

namespace attest {
namespace {

#if CUDART_VERSION >= 13000
using KernelRecord = CUpti_ActivityKernel10;
#else
using KernelRecord = CUpti_ActivityKernel9;
#endif

struct Recorded {
  std::uint64_t begin;
  LaunchCounters launch;
};
std::vector<Recorded>& recorded() {  // CUPTI's callbacks carry no argument of ours
  static std::vector<Recorded> launches;
  return launches;
}

constexpr std::size_t buffer_bytes = 1 << 20;

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* max_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(64, buffer_bytes));
  *bytes = *buffer != nullptr ? buffer_bytes : 0;
  *max_records = 0;
}

void CUPTIAPI take_buffer(CUcontext /*context*/, std::uint32_t /*stream*/, std::uint8_t* buffer, std::size_t /*bytes*/,
                          std::size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cupti().cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    const auto& kernel = *reinterpret_cast<const KernelRecord*>(record);
    Recorded& launch = recorded().emplace_back();
    launch.begin = kernel.start;
    launch.launch.function = kernel.name != nullptr ? kernel.name : "";
    auto& values = launch.launch.values;
    values["launch__registers_per_thread"] = kernel.registersPerThread;
    values["launch__shared_mem_per_block"] = kernel.staticSharedMemory + kernel.dynamicSharedMemory;
    values["launch__grid_size"] = 1.0 * kernel.gridX * kernel.gridY * kernel.gridZ;
    values["launch__block_size"] = 1.0 * kernel.blockX * kernel.blockY * kernel.blockZ;
  }
  std::free(buffer);
}

}  // namespace

std::vector<LaunchCounters> record_launches(const std::function<void()>& work) {
  int device = 0, reserved = 0;
  cuda_check(cudaGetDevice(&device), "cudaGetDevice");
  cuda_check(cudaDeviceGetAttribute(&reserved, cudaDevAttrReservedSharedMemoryPerBlock, device),
             "cudaDeviceGetAttribute");
  recorded().clear();
  cupti_check(cupti().cuptiActivityRegisterCallbacks(give_buffer, take_buffer), "cuptiActivityRegisterCallbacks");
  cupti_check(cupti().cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "cuptiActivityEnable");
  work();
  cupti_check(cupti().cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
  cupti_check(cupti().cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "cuptiActivityDisable");
  std::stable_sort(recorded().begin(), recorded().end(), [](auto& a, auto& b) { return a.begin < b.begin; });
  std::vector<LaunchCounters> launches;
  for (Recorded& r : recorded()) {
    r.launch.values["launch__shared_mem_per_block"] += reserved;
    launches.push_back(std::move(r.launch));
  }
  return launches;
}

}  // namespace attest
