#include <algorithm>
#include <cstdint>
#include <vector>

#include "attest/hardware/device.h"
#include "latencies.h"

namespace attest::hardware {
namespace {

constexpr int kSteps = 64, kTurns = 16,
              kMost = 8;  // of a chain in a loop's turn; turns, the first of which is not timed

enum class Kind { global, generic, local, shared, low, high, wide, wide_high };
constexpr const char* kNames[] = {"load, global", "load, generic address", "load, local",   "load, shared", "mad.lo",
                                  "mul.hi",       "mul.wide, add",         "mul.wide, high"};

struct Chain {
  std::uint64_t address;
  std::uint32_t x;
};

template <Kind K>
__device__ void step(Chain& c, std::uint32_t b) {
  if constexpr (K == Kind::global) asm volatile("ld.global.u64 %0, [%0];" : "+l"(c.address)::"memory");
  if constexpr (K == Kind::generic) asm volatile("ld.u64 %0, [%0];" : "+l"(c.address)::"memory");
  if constexpr (K == Kind::local) asm volatile("ld.local.u32 %0, [%0];" : "+r"(c.x)::"memory");
  if constexpr (K == Kind::shared) asm volatile("ld.shared.u32 %0, [%0];" : "+r"(c.x)::"memory");
  if constexpr (K == Kind::low) asm volatile("mad.lo.u32 %0, %0, %1, %1;" : "+r"(c.x) : "r"(b));
  if constexpr (K == Kind::high) asm volatile("mul.hi.u32 %0, %0, %1;" : "+r"(c.x) : "r"(b));
  if constexpr (K == Kind::wide)
    asm volatile("{.reg .u64 w; .reg .u32 h; mul.wide.u32 w, %0, %1; mov.b64 {%0, h}, w; add.u32 %0, %0, h;}"
                 : "+r"(c.x)
                 : "r"(b));
  if constexpr (K == Kind::wide_high)
    asm volatile("{.reg .u64 w; .reg .u32 l; mul.wide.u32 w, %0, %1; mov.b64 {l, %0}, w;}" : "+r"(c.x) : "r"(b));
}

template <Kind K, int chains, int between>
__global__ void __launch_bounds__(32)
    go(std::uint64_t* global, const std::uint32_t* seed, std::uint32_t* sink, long long* cycles) {
  __shared__ std::uint32_t shared[32];
  std::uint32_t stack[kMost];
  const auto of_shared = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  std::uint64_t of_stack = 0;
  asm("cvta.to.local.u64 %0, %1;" : "=l"(of_stack) : "l"(reinterpret_cast<std::uint64_t>(stack)));
  Chain of[chains];
  std::uint32_t others[between + 1] = {};
  const std::uint32_t b = seed[threadIdx.x];
  for (int i = 0; i < chains; ++i) {  // each load brings its own address
    const auto at = static_cast<std::uint32_t>(of_stack) + 4 * i;
    asm volatile("st.local.u32 [%0], %0;" ::"r"(at) : "memory");
    shared[i] = of_shared + 4 * i;
    global[i] = reinterpret_cast<std::uint64_t>(global + i);
    of[i] = {global[i], K == Kind::local ? at : K == Kind::shared ? of_shared + 4 * i : b + i};
  }
  __syncwarp();
  long long began = 0;
#pragma unroll 1
  for (int turn = 0; turn < kTurns; ++turn) {
    if (turn == 1) began = clock64();
#pragma unroll
    for (int i = 0; i < kSteps / chains; ++i)
#pragma unroll
      for (int c = 0; c < chains; ++c) {
        step<K>(of[c], b);
#pragma unroll
        for (int j = 0; j < between; ++j) asm volatile("shf.l.wrap.b32 %0, %0, %1, 1;" : "+r"(others[j]) : "r"(b));
      }
  }
  const long long ended = clock64();
  std::uint32_t all = 0;
  for (const Chain& c : of) all += c.x + static_cast<std::uint32_t>(c.address);
  for (const std::uint32_t other : others) all += other;
  sink[threadIdx.x] = all;
  if (threadIdx.x == 0) *cycles = ended - began;
}

template <Kind K, int chains, int between>
void measure(std::ostream& rows) {
  const DeviceArray<std::uint64_t> global(kMost);
  std::vector<std::uint32_t> seeds(32);
  for (std::size_t i = 0; i < seeds.size(); ++i) seeds[i] = 0x9e3779b9u * static_cast<std::uint32_t>(i + 1);
  const DeviceArray<std::uint32_t> seed(seeds), sink(32);
  const DeviceArray<long long> cycles(1);
  std::vector<long long> all;
  for (int i = 0; i < 5; ++i) {
    go<K, chains, between><<<1, 32>>>(global.data(), seed.data(), sink.data(), cycles.data());
    check(cudaGetLastError());
    all.push_back(cycles.download().at(0));
  }
  std::sort(all.begin(), all.end());
  rows << '"' << kNames[static_cast<int>(K)] << "\"," << chains << ',' << between << ','
       << static_cast<double>(all[2]) / (kTurns - 1) / (kSteps / chains) << '\n';
}

}  // namespace

void measure_latencies(std::ostream& rows) {
  measure<Kind::global, 1, 0>(rows), measure<Kind::generic, 1, 0>(rows), measure<Kind::local, 1, 0>(rows);
  measure<Kind::shared, 1, 0>(rows);
  measure<Kind::low, 1, 0>(rows), measure<Kind::low, 1, 4>(rows), measure<Kind::low, 4, 0>(rows);
  measure<Kind::high, 1, 0>(rows), measure<Kind::high, 1, 2>(rows), measure<Kind::high, 1, 4>(rows);
  measure<Kind::high, 1, 8>(rows), measure<Kind::high, 2, 0>(rows), measure<Kind::high, 4, 0>(rows);
  measure<Kind::wide, 1, 0>(rows), measure<Kind::wide, 1, 2>(rows), measure<Kind::wide, 1, 4>(rows);
  measure<Kind::wide, 1, 8>(rows), measure<Kind::wide, 2, 0>(rows), measure<Kind::wide, 4, 0>(rows);
  measure<Kind::wide_high, 1, 0>(rows), measure<Kind::wide_high, 1, 4>(rows);
}

}  // namespace attest::hardware
