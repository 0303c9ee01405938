// shfl.sync among the four lanes 4g to 4g + 3 that hold a row of an accumulator.
#pragma once
#include "attest/ptx/address.cuh"

namespace attest::ptx {

inline constexpr std::uint32_t all_lanes = 0xffffffffu;

/// The larger of two; a NaN loses.
ATTEST_DEVICE float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(all_lanes, x, 1));
  return fmaxf(x, __shfl_xor_sync(all_lanes, x, 2));
}

ATTEST_DEVICE float quad_sum(float x) {
  x += __shfl_xor_sync(all_lanes, x, 1);
  return x + __shfl_xor_sync(all_lanes, x, 2);
}

}  // namespace attest::ptx
