// The special function unit's approximations, rounded to fp32 once.
#pragma once
#include "attest/problem/dtype.h"
#include "attest/ptx/address.cuh"

namespace attest::ptx {

inline float exp2_approx(float x) { return x < -126 ? 0.0f : std::exp2(x); }
inline float log2_approx(float x) { return std::log2(x); }
inline float reciprocal_approx(float x) { return 1 / x; }
inline float tanh_approx(float x) { return std::tanh(x); }

template <Dtype T>
std::uint32_t pack(float low, float high);

}  // namespace attest::ptx
