// How far apart CTAs of a launch begin: CSV to standard output.
//
//     cta_starts > docs/results/h200-sm/cta_starts.csv            # an SM's two first ones, by their SM's clock
//     cta_starts sms > docs/results/h200-sm/cta_starts_sms.csv    # each SM's first one, by the global timer
//
// CTAs of four warps take as much shared memory as gpu/sm80's kernel of 128 columns, so that an SM holds two, or as one
// of which it holds one. Of a grid that fills the GPU once and of one that does four times. The global timer moves in
// steps: how long before one of them a CTA began its SM's clock says, whose rate the CTA's last step and its first
// give.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Step {
  long long ns, at;  // the global timer, and the SM's clock as it came there
};

struct Start {
  unsigned sm;
  long long at;  // by the SM's clock
  Step first, last;

  double ns_after(long long time) const {
    const double cycle = static_cast<double>(last.ns - first.ns) / static_cast<double>(last.at - first.at);
    return static_cast<double>(first.ns - time) - cycle * static_cast<double>(first.at - at);
  }
};

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

__device__ Step next_step() {
  const auto now = [] {
    long long ns = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
  };
  const long long before = now();
  Step step{before, 0};
  while (step.ns == before) step = {now(), clock64()};
  return step;
}

__global__ __launch_bounds__(128) void note_starts(Start* starts, long long cycles) {
  extern __shared__ unsigned taken[];
  const long long began = clock64();
  unsigned sm = 0;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  taken[threadIdx.x] = sm;
  Step first{};
  if (threadIdx.x == 0) first = next_step();
  while (clock64() - began < cycles) continue;
  if (threadIdx.x == 0) starts[blockIdx.x] = {sm, began, first, next_step()};
}

constexpr int launches = 4;
constexpr long long cycles = 60000;

void measure_pairs(const cudaDeviceProp& device) {
  constexpr int smem = 97 << 10;
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

void measure_sms(const cudaDeviceProp& device) {
  Start* starts = nullptr;
  check(cudaMallocManaged(&starts, sizeof(Start) * 2 * static_cast<std::size_t>(device.multiProcessorCount)));
  std::printf("# %s, CUDA %d\nctas_an_sm,launch,sm,cta,ns\n", device.name, CUDART_VERSION);
  for (const int ctas_an_sm : {1, 2})
    for (int launch = 0; launch < launches; ++launch) {
      const int ctas = ctas_an_sm * device.multiProcessorCount;
      note_starts<<<ctas, 128, (ctas_an_sm == 1 ? 200 : 97) << 10>>>(starts, cycles);
      check(cudaDeviceSynchronize());
      const long long time = starts[0].first.ns;
      double earliest = 0;
      for (int i = 0; i < ctas; ++i) earliest = std::min(earliest, starts[i].ns_after(time));
      for (int i = 0; i < ctas; ++i)
        std::printf("%d,%d,%u,%d,%.0f\n", ctas_an_sm, launch, starts[i].sm, i, starts[i].ns_after(time) - earliest);
    }
  check(cudaFree(starts));
}

}  // namespace

int main(int argc, char** argv) try {
  cudaDeviceProp device{};
  check(cudaGetDeviceProperties(&device, 0));
  check(cudaFuncSetAttribute(note_starts, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
  argc > 1 && std::string(argv[1]) == "sms" ? measure_sms(device) : measure_pairs(device);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "cta_starts: %s\n", error.what());
  return 1;
}
