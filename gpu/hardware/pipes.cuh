// An instruction of each pipe in a chain, and how long kernels of them take.
#pragma once

#include <algorithm>
#include <vector>

#include "attest/hardware/device.h"

namespace attest::hardware {

enum class Pipe { ex2, fma, add, max, select, pack, shuffle, mma_sync, ldmatrix, ldmatrix_trans };
inline constexpr const char* kPipeNames[] = {"ex2",  "fma",     "add",      "max",      "select",
                                             "pack", "shuffle", "mma_sync", "ldmatrix", "ldmatrix_trans"};
/// A and B in registers of their own: where they share some, each product waits for their being moved.
struct MmaOperands {
  std::uint32_t a[4], b[2];
};
inline __device__ MmaOperands operands_of(unsigned thread) {
  return {{thread * 5, thread * 5 + 1, thread * 5 + 2, thread * 5 + 3}, {thread * 7, thread * 7 + 1}};
}
inline __device__ void multiply(float (&d)[4], const MmaOperands& of) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(of.a[0]), "r"(of.a[1]), "r"(of.a[2]), "r"(of.a[3]), "r"(of.b[0]), "r"(of.b[1]));
}

/// One instruction of a chain.
template <Pipe P, int Chains>
__device__ void issue(float (&x)[4], std::uint32_t (&u)[4], const MmaOperands& operands, float a, float b,
                      std::uint32_t at, int round) {
  if constexpr (P == Pipe::ex2) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x[0]));
  if constexpr (P == Pipe::fma) asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x[0]) : "f"(a), "f"(b));
  if constexpr (P == Pipe::add) asm volatile("add.rn.f32 %0, %0, %1;" : "+f"(x[0]) : "f"(a));
  if constexpr (P == Pipe::max) asm volatile("max.f32 %0, %0, %1;" : "+f"(x[0]) : "f"(a));
  if constexpr (P == Pipe::select)
    asm volatile("{.reg .pred p; setp.gt.s32 p, %1, %2; selp.f32 %0, %0, %3, p;}"
                 : "+f"(x[0])
                 : "r"(u[0]), "r"(round), "f"(a));
  if constexpr (P == Pipe::pack) asm volatile("cvt.rn.bf16x2.f32 %0, %1, %0;" : "+r"(u[0]) : "f"(a));
  if constexpr (P == Pipe::shuffle) asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 0x1f, 0xffffffff;" : "+r"(u[0]));
  if constexpr (P == Pipe::mma_sync) multiply(x, operands);
  if constexpr (P == Pipe::ldmatrix)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(u[0]), "=r"(u[1]), "=r"(u[2]), "=r"(u[3])
                 : "r"(at + (Chains == 1 ? u[0] & 16 : 0)));
  if constexpr (P == Pipe::ldmatrix_trans)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(u[0]), "=r"(u[1]), "=r"(u[2]), "=r"(u[3])
                 : "r"(at + (Chains == 1 ? u[0] & 16 : 0)));
}

/// The median over five launches of the longest of `used` cycles.
double longest_of_five(const DeviceArray<long long>& cycles, int used, const auto& launch) {
  std::vector<double> all;
  for (int i = 0; i < 5; ++i) {
    launch();
    check(cudaGetLastError());
    const std::vector<long long> each = cycles.download();
    all.push_back(static_cast<double>(*std::max_element(each.begin(), each.begin() + used)));
  }
  std::sort(all.begin(), all.end());
  return all[2];
}

}  // namespace attest::hardware
