// Rounding of one float64 to a format of 16 or 8 bits, without branches, so that GCC vectorises loops over it.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace attest {

/// Sign, exponent and `mantissa` bits; normal numbers from 2^min_exponent to below 2^(max_exponent + 1).
template <int mantissa_bits, int smallest_exponent, int largest_exponent>
struct Format {
  static constexpr int mantissa = mantissa_bits, min_exponent = smallest_exponent, max_exponent = largest_exponent;
  static constexpr std::uint32_t inf = static_cast<std::uint32_t>(2 * max_exponent + 1) << mantissa;
};
using Fp16 = Format<10, -14, 15>;
using Bf16 = Format<7, -126, 127>;
using Fp8E4m3 = Format<3, -6, 8>;  // no infinities: the largest exponent's last mantissa is NaN
using Fp8E5m2 = Format<2, -14, 15>;
template <class F>
inline constexpr double largest_fp8 = 448;
template <>
inline constexpr double largest_fp8<Fp8E5m2> = 57344;

constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52);
}

/// A float64 and a large power of two added give a sum that is rounded, to nearest even and once, at a bit the power of
/// two chooses; subtracting it again is exact. With the value in [2^e, 2^(e+1)) and a quantum of 2^(e - mantissa),
/// adding 1.5 * 2^52 quanta puts the sum's last bit at the quantum. Below the smallest normal the quantum stays:
/// subnormals.
template <class F>
inline double round_without_overflow(double value) {
  constexpr std::uint64_t exponent_mask = 0x7ff0000000000000;
  constexpr auto lowest = std::bit_cast<std::uint64_t>(power_of_two(F::min_exponent));
  constexpr auto highest = std::bit_cast<std::uint64_t>(power_of_two(F::max_exponent));
  std::uint64_t exponent = std::bit_cast<std::uint64_t>(value) & exponent_mask;
  exponent = exponent < lowest ? lowest : exponent;
  exponent = exponent > highest ? highest : exponent;  // what lies above overflows whatever it is rounded at
  const auto magic =
      std::bit_cast<double>(exponent + (static_cast<std::uint64_t>(52 - F::mantissa) << 52) + (std::uint64_t{1} << 51));
  return std::copysign((value + magic) - magic, value);
}

template <class F>
inline double round_to_format(double value) {
  const double rounded = round_without_overflow<F>(value);
  const double overflown = std::copysign(std::numeric_limits<double>::infinity(), value);
  return std::abs(rounded) >= power_of_two(F::max_exponent) * 2 ? overflown : rounded;
}

/// 8 bits saturate, infinity included, as GPUs' conversions do (cvt.rn.satfinite); NaN stays.
template <class F>
inline double round_to_fp8(double value) {
  const double rounded = round_without_overflow<F>(value);
  const double largest = std::copysign(largest_fp8<F>, value);
  return std::abs(rounded) > largest_fp8<F> ? largest : rounded;
}

}  // namespace attest
