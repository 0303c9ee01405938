// How far apart an SM's two first CTAs begin: CSV to standard output.
//
//     cta_starts > docs/results/h200-sm/cta_starts.csv
//
// CTAs of four warps take as much shared memory as gpu/sm80's kernel of 128 columns, so that an SM holds two, and note
// their SM's clock. Of a grid that fills the GPU once and of one that does four times.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Start {
  unsigned sm;
  long long at;
};

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

__global__ __launch_bounds__(128) void note_starts(Start* starts, long long cycles) {
  extern __shared__ unsigned taken[];
  const long long began = clock64();
  unsigned sm = 0;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  taken[threadIdx.x] = sm;
  if (threadIdx.x == 0) starts[blockIdx.x] = {sm, began};
  while (clock64() - began < cycles) continue;
}

void measure() {
  constexpr int smem = 97 << 10, launches = 4;
  constexpr long long cycles = 60000;
  cudaDeviceProp device{};
  check(cudaGetDeviceProperties(&device, 0));
  check(cudaFuncSetAttribute(note_starts, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
  const int fill = 2 * device.multiProcessorCount;
  Start* starts = nullptr;
  check(cudaMallocManaged(&starts, sizeof(Start) * 4 * static_cast<std::size_t>(fill)));
  std::printf("# %s, CUDA %d\nlaunch,ctas,sms,least,median,mean,most\n", device.name, CUDART_VERSION);
  for (int launch = 0; launch < launches; ++launch)
    for (const int ctas : {fill, 4 * fill}) {
      note_starts<<<ctas, 128, smem>>>(starts, cycles);
      check(cudaDeviceSynchronize());
      std::map<unsigned, std::vector<long long>> of_sms;
      for (int i = 0; i < ctas; ++i) of_sms[starts[i].sm].push_back(starts[i].at);
      std::vector<long long> apart;
      double sum = 0;
      for (auto& [sm, at] : of_sms) {
        std::ranges::sort(at);
        apart.push_back(at.at(1) - at.at(0)), sum += static_cast<double>(apart.back());
      }
      std::ranges::sort(apart);
      std::printf("%d,%d,%zu,%lld,%lld,%.0f,%lld\n", launch, ctas, apart.size(), apart.front(), apart[apart.size() / 2],
                  sum / static_cast<double>(apart.size()), apart.back());
    }
  check(cudaFree(starts));
}

}  // namespace

int main() try {
  measure();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "cta_starts: %s\n", error.what());
  return 1;
}
