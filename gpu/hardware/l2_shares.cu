#include <cstdint>

#include "attest/hardware/device.h"
#include "attest/hardware/l2_shares.h"

namespace attest::hardware {
namespace {

constexpr int kThreads = 512, kBytesAnSm = 128 * 1024, kWords = kBytesAnSm / (4 * kThreads);
constexpr long long kClocks = 400'000;

struct Local {
  std::uint32_t first;
  __device__ void turn() const {
#pragma unroll 16
    for (int w = 0; w < kWords; ++w) asm volatile("st.local.u32 [%0], %1;" ::"r"(first + 4 * w), "r"(w) : "memory");
  }
  // Each word half a turn after it was stored, since when all others were touched: L1 has less than the 128 KiB. The
  // sum is for loads to be needed.
  __device__ std::uint32_t turn_with_loads() const {
    std::uint32_t sum = 0;
#pragma unroll 16
    for (int w = 0; w < kWords; ++w) {
      std::uint32_t loaded;
      asm volatile("st.local.u32 [%0], %1;" ::"r"(first + 4 * w), "r"(w) : "memory");
      asm volatile("ld.local.u32 %0, [%1];" : "=r"(loaded) : "r"(first + 4 * (w ^ kWords / 2)) : "memory");
      sum += loaded;
    }
    return sum;
  }
};

__device__ void store_turn(std::uint8_t* mine) {
#pragma unroll 16
  for (int w = 0; w < kWords; ++w) __stcg(reinterpret_cast<int*>(mine) + w * kThreads + threadIdx.x, w);
}

__device__ void copy_turn(const std::uint8_t* mine, std::uint32_t shared) {
#pragma unroll
  for (int i = 0; i < kBytesAnSm / 16 / kThreads; ++i) {
    const int at = (i * kThreads + static_cast<int>(threadIdx.x)) * 16;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared + at), "l"(mine + at) : "memory");
    if (i % 8 == 7) asm volatile("cp.async.commit_group;\ncp.async.wait_group 1;" ::: "memory");
  }
}

__global__ void __launch_bounds__(kThreads, 1)
    ask(L2Request kind, const int* asks, std::uint8_t* buffer, unsigned* arrived, unsigned long long* bytes,
        unsigned long long* clocks) {
  extern __shared__ __align__(128) std::uint8_t smem[];
  std::uint32_t array[kWords];
  const Local local{static_cast<std::uint32_t>(__cvta_generic_to_local(array))};
  const auto shared = static_cast<std::uint32_t>(__cvta_generic_to_shared(smem));
  const unsigned sm = sm_id();
  std::uint8_t* const mine = buffer + static_cast<std::int64_t>(sm) * kBytesAnSm;
  unsigned generation = 0;
  grid_barrier(arrived, generation, gridDim.x);
  if (!asks[sm]) return;
  const long long began = clock64();
  unsigned long long moved = 0;
  std::uint32_t sum = 0;
  while (clock64() - began < kClocks) {
    if (kind == L2Request::local_store) local.turn();
    if (kind == L2Request::local_store_and_load) sum += local.turn_with_loads();
    if (kind == L2Request::store) store_turn(mine);
    if (kind == L2Request::cp_async) copy_turn(mine, shared);
    moved += kBytesAnSm / kThreads;
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  atomicAdd(bytes + sm, moved + (sum == ~0U));
  atomicMax(clocks + sm, static_cast<unsigned long long>(clock64() - began));
}

}  // namespace

std::vector<double> l2_shares(L2Request kind, const std::vector<bool>& asks) {
  const DeviceArray<std::uint8_t> buffer(asks.size() * kBytesAnSm);
  const DeviceArray<int> on_device(std::vector<int>(asks.begin(), asks.end()));
  const DeviceArray<unsigned long long> bytes(asks.size()), clocks(asks.size());
  check(cudaFuncSetAttribute(ask, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemOneCtaAnSm));
  for (int run = 0; run < 2; ++run) {  // the first brings it into L2
    const DeviceArray<unsigned> arrived(1);
    for (const auto* counted : {&bytes, &clocks})
      check(cudaMemset(counted->data(), 0, asks.size() * sizeof(unsigned long long)));
    ask<<<static_cast<unsigned>(asks.size()), kThreads, kSmemOneCtaAnSm>>>(kind, on_device.data(), buffer.data(),
                                                                           arrived.data(), bytes.data(), clocks.data());
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());
  }
  const std::vector<unsigned long long> moved = bytes.download(), took = clocks.download();
  std::vector<double> a_clock;
  for (std::size_t sm = 0; sm < asks.size(); ++sm)
    a_clock.push_back(took[sm] == 0 ? 0 : static_cast<double>(moved[sm]) / static_cast<double>(took[sm]));
  return a_clock;
}

}  // namespace attest::hardware
