// Data as attention kernels have it: what matrix units multiply decides how much power is drawn, and so the clocks.
#pragma once

#include <cstdint>

namespace attest::hardware {

/// `count` pairs of bf16 between -2 and 2, the same each time: those from `first` on. Asynchronous, on the default
/// stream. Throws std::runtime_error with CUDA's words where it cannot be launched.
void fill_with_random_pairs(std::uint32_t* pairs, std::int64_t count, std::int64_t first = 0);

#ifdef __CUDACC__
/// The i-th of them.
__device__ inline std::uint32_t random_pair(std::uint32_t i) {
  std::uint32_t x = i * 2654435761u;
  x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu, x ^= x >> 16;
  const auto number = [](std::uint32_t of_16_bits) {
    return __float_as_uint(static_cast<float>(of_16_bits) * 0x1p-14F - 2) >> 16;
  };
  return number(x & 0xffff) | number(x >> 16) << 16;
}
#endif

}  // namespace attest::hardware
