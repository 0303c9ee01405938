// One CTA that polls beside another kernel and notes when each word of its output stops being what it was filled with.
// It takes an SM for itself.
//
//     nvcc -O2 -gencode arch=compute_90,code=sm_90 -shared -Xcompiler -fPIC -cudart static watch_ends.cu -o
//     libwatch_ends.so
#include <cuda_runtime.h>

#include <cstdint>

namespace {

constexpr int kThreads = 1024, kSmem = 227 << 10;  // no other CTA fits beside it

__device__ unsigned long long now_ns() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__global__ void __launch_bounds__(kThreads, 1)
    watch(const std::uint16_t* const* words, int count, std::uint16_t filled, unsigned long long* when,
          volatile int* running, unsigned long long limit_ns) {
  const unsigned long long start = now_ns();
  if (threadIdx.x == 0) {
    *running = 1;
    __threadfence_system();
  }
  for (bool waits = true; waits && now_ns() - start < limit_ns;) {
    waits = false;
    for (int i = threadIdx.x; i < count; i += kThreads) {
      if (when[i] != 0) continue;
      std::uint16_t word;
      asm volatile("ld.relaxed.gpu.global.u16 %0, [%1];" : "=h"(word) : "l"(words[i]) : "memory");
      if (word != filled)
        when[i] = now_ns();
      else
        waits = true;
    }
  }
}

}  // namespace

/// `words`: addresses, on the device; `when`: as many times in ns, zero before. `running`, pinned, is 1 once it polls.
extern "C" int watch_ends(const void* words, int count, int filled, void* when, void* running, double limit_ms,
                          void* stream) {
  cudaFuncSetAttribute(watch, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem);
  watch<<<1, kThreads, kSmem, static_cast<cudaStream_t>(stream)>>>(
      static_cast<const std::uint16_t* const*>(words), count, static_cast<std::uint16_t>(filled),
      static_cast<unsigned long long*>(when), static_cast<volatile int*>(running),
      static_cast<unsigned long long>(limit_ms * 1e6));
  return cudaGetLastError();
}
