// Keeps SMs busy, so that another kernel has those that are left, and on one of them notes when each word of that
// kernel's output stops being what it was filled with. Whoever holds an SM polls the GPU's own memory: polling the
// host's delays the watcher's loads by 0.1 ms.
//
//     nvcc -O2 -gencode arch=compute_90,code=sm_90 -shared -Xcompiler -fPIC -cudart static one_gpc.cu -o libone_gpc.so
#include <cuda_runtime.h>

#include <cstdint>

namespace {

constexpr int kThreads = 1024, kSmem = 227 << 10;  // no other CTA fits beside it
enum Role : int { kHeld, kFree, kWatcher };

__device__ unsigned long long now_ns() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__global__ void __launch_bounds__(kThreads, 1)
    hold(const int* roles, volatile int* stop, int* held, const std::uint16_t* const* words, int count,
         std::uint16_t filled, unsigned long long* when, unsigned long long limit_ns) {
  unsigned sm;
  asm("mov.u32 %0, %smid;" : "=r"(sm));
  const unsigned long long start = now_ns();
  if (roles[sm] == kFree) {
    constexpr unsigned long long kAllPlacedNs = 200'000;  // each SM has a CTA before the first leaves
    while (now_ns() - start < kAllPlacedNs) {
    }
    return;
  }
  if (threadIdx.x == 0) atomicAdd_system(held, 1);
  if (roles[sm] == kWatcher) {  // all warps poll all words
    for (int i = threadIdx.x % 32; i < count; i += 32) atomicMin(when + i, 1ull << 62);
    for (bool waits = true; waits && now_ns() - start < limit_ns;) {
      waits = false;
      for (int i = threadIdx.x % 32; i < count; i += 32) {
        std::uint16_t word;
        asm volatile("ld.relaxed.gpu.global.u16 %0, [%1];" : "=h"(word) : "l"(words[i]) : "memory");
        if (word == filled) {
          waits = true;
        } else if (const unsigned long long now = now_ns(); when[i] > now) {
          atomicMin(when + i, now);
        }
      }
      waits = __any_sync(~0u, waits);
    }
    if (threadIdx.x == 0) {
      *stop = 1;
      __threadfence();
    }
  } else if (threadIdx.x == 0) {
    while (*stop == 0 && now_ns() - start < limit_ns) __nanosleep(2000);
  }
}

}  // namespace

/// `roles` of each SM by number: 0 is held, 1 is left to others, 2 watches. `words`: addresses, on the device; `when`:
/// as many times in ns, 2^62 before. `held`, pinned, becomes how many SMs are not left; `stop`, on the device and 0,
/// ends it.
extern "C" int hold_sms(const void* roles, int sms, void* stop, void* held, const void* words, int count, int filled,
                        void* when, double limit_ms, void* stream) {
  cudaFuncSetAttribute(hold, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem);
  hold<<<sms, kThreads, kSmem, static_cast<cudaStream_t>(stream)>>>(
      static_cast<const int*>(roles), static_cast<volatile int*>(stop), static_cast<int*>(held),
      static_cast<const std::uint16_t* const*>(words), count, static_cast<std::uint16_t>(filled),
      static_cast<unsigned long long*>(when), static_cast<unsigned long long>(limit_ms * 1e6));
  return cudaGetLastError();
}
