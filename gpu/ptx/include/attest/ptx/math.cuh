// Approximations of the special function unit, and conversions to 16 bits. Errors as the PTX ISA states them.
#pragma once
#include "attest/problem/dtype.h"
#include "attest/ptx/address.cuh"

namespace attest::ptx {

/// 2^x, 2 ulp; results below 2^-126 are 0.
ATTEST_DEVICE float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// log2 x of a normal number: 2^-22 absolute on (1/2, 2), else 2^-22 relative.
ATTEST_DEVICE float log2_approx(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// 1 / x of a normal number, 1 ulp.
ATTEST_DEVICE float reciprocal_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// tanh x, relative error 2^-11.
ATTEST_DEVICE float tanh_approx(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Both rounded to nearest even; `low` in the low half.
template <Dtype T>
ATTEST_DEVICE std::uint32_t pack(float low, float high) {
  static_assert(T == Dtype::bf16 || T == Dtype::fp16);
  std::uint32_t r;
  if constexpr (T == Dtype::bf16)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

}  // namespace attest::ptx
