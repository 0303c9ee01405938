// Two SMs that access lines in turn, and what each access takes.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attest/hardware/device.h"
#include "attest/hardware/l2_set_finder.cuh"
#include "attest/hardware/placement.h"

namespace attest::hardware {

enum class Kind : std::uint8_t { read, write, read_evict_first, read_last };
struct Access {
  std::uint16_t actor;  // 0 or 1
  Kind kind;
  std::uint8_t line;
};

/// Of four bytes at `at`; what a read finds.
__device__ inline std::uint32_t access(Kind kind, std::uint8_t* at) {
  std::uint32_t x = 0;
  if (kind == Kind::read) x = read(at);
  if (kind == Kind::read_evict_first)
    asm volatile(
        "{.reg .b64 p; createpolicy.fractional.L2::evict_first.b64 p, 1.0;"
        " ld.global.cg.L2::cache_hint.u32 %0, [%1], p;}"
        : "=r"(x)
        : "l"(at)
        : "memory");
  if (kind == Kind::read_last) asm volatile("ld.global.lu.u32 %0, [%1];" : "=r"(x) : "l"(at) : "memory");
  if (kind == Kind::write) asm volatile("st.global.cg.u32 [%0], %1;" ::"l"(at), "r"(0) : "memory");
  return x;
}

/// Two CTAs, each on its SM, make the accesses in turn. Each is of a whole line by a warp: lanes that write parts of a
/// sector would have DRAM read for the next read of it.
static __global__ void __launch_bounds__(32, 1)
    play(std::uint8_t* buffer, const std::uint32_t* lines, int num_lines, const Access* accesses, int count, int sm_a,
         int sm_b, volatile unsigned* turn, unsigned* arrived, std::uint16_t* cycles) {
  extern __shared__ Access list[];
  const auto sm = static_cast<int>(sm_id());
  const int me = sm == sm_a ? 0 : sm == sm_b ? 1 : -1;
  if (me < 0) return;
  for (int i = threadIdx.x; i < count; i += 32) list[i] = accesses[i];
  auto* const where = reinterpret_cast<std::uint32_t*>(list + count);
  for (int i = threadIdx.x; i < num_lines; i += 32) where[i] = lines[i];
  auto* const took = reinterpret_cast<std::uint16_t*>(where + num_lines);
  __syncwarp();
  unsigned generation = 0;
  grid_barrier(arrived, generation, 2);
  std::uint32_t sum = 0;
  for (int i = 0; i < count; ++i) {
    const Access a = list[i];
    if (a.actor != me) continue;
    if (i > 0 && list[i - 1].actor != me)
      while (*turn != static_cast<unsigned>(i)) {
      }
    std::uint8_t* const at = buffer + kLineBytes * where[a.line] + 4 * threadIdx.x;
    __syncwarp();
    const long long began = clock64();
    sum += access(a.kind, at);
    if (a.kind == Kind::write) __threadfence();
    asm volatile("" ::"r"(sum) : "memory");
    if (sum == kNever) __trap();
    took[i] = static_cast<std::uint16_t>(min(clock64() - began, 65535ll));
    __syncwarp();
    if (i + 1 < count && list[i + 1].actor != me) {
      __threadfence();
      *turn = i + 1;
    }
  }
  __syncwarp();
  for (int i = threadIdx.x; i < count; i += 32)
    if (list[i].actor == me) cycles[i] = took[i];
}

/// Cycles of each access to lines of a buffer, by actors on two SMs.
[[maybe_unused]] static std::vector<std::uint16_t> take_turns(const std::vector<Access>& accesses, std::uint8_t* buffer,
                                                              const Lines& lines, std::array<int, 2> on,
                                                              const std::vector<SmPlace>& sms) {
  check(cudaFuncSetAttribute(play, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemOneCtaAnSm));
  const DeviceArray<std::uint32_t> where(lines);
  const DeviceArray<Access> list(accesses);
  const DeviceArray<unsigned> turn(1), arrived(1);
  const DeviceArray<std::uint16_t> cycles(accesses.size());
  play<<<static_cast<unsigned>(sms.size()), 32, kSmemOneCtaAnSm>>>(
      buffer, where.data(), static_cast<int>(lines.size()), list.data(), static_cast<int>(accesses.size()), on[0],
      on[1], turn.data(), arrived.data(), cycles.data());
  check(cudaDeviceSynchronize());
  return cycles.download();
}

}  // namespace attest::hardware
