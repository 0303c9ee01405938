// The 8-bit formats on the CPU, as a kernel's conversions have them: to nearest even, saturating at the largest finite
// value, infinities included (__NV_SATFINITE). OCP's e4m3 has no infinities, S.1111.111 is NaN; e5m2 is the upper byte
// of an fp16.
#pragma once
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "attest/problem/dtype.h"

namespace attest {

/// Exponents of the smallest normal and bits of the mantissa, and the largest finite value.
struct Fp8Format {
  int mantissa_bits, smallest_exponent;
  float largest;
};
inline constexpr Fp8Format fp8_e4m3_format{3, -6, 448.0f}, fp8_e5m2_format{2, -14, 57344.0f};

constexpr const Fp8Format& fp8_format(Dtype dtype) {
  return dtype == Dtype::fp8_e4m3 ? fp8_e4m3_format : fp8_e5m2_format;
}

/// `x` as the nearest value of the format, as fp32.
inline float round_fp8(const Fp8Format& f, float x) {
  if (std::isnan(x)) return x;
  const float magnitude = std::fmin(std::fabs(x), f.largest);
  // Adding 1.5 * 2^23 times the spacing, and taking it away, leaves a multiple of the spacing, ties to even.
  const int exponent = static_cast<int>(std::bit_cast<std::uint32_t>(magnitude) >> 23) - 127;
  const int spacing = (exponent < f.smallest_exponent ? f.smallest_exponent : exponent) - f.mantissa_bits;
  const float shift = std::bit_cast<float>(static_cast<std::uint32_t>(spacing + 23 + 127) << 23) * 1.5f;
  const float shifted = magnitude + shift;
  return std::copysign(std::fmin(shifted - shift, f.largest), x);
}

/// The bits of a value of the format.
inline std::uint8_t encode_fp8(const Fp8Format& f, float value) {
  const std::uint32_t sign = std::signbit(value) ? 0x80u : 0u;
  if (std::isnan(value)) return static_cast<std::uint8_t>(sign | 0x7fu);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value) & 0x7fffffffu;
  const int exponent = static_cast<int>(bits >> 23) - 127;
  if (exponent < f.smallest_exponent)
    return static_cast<std::uint8_t>(
        sign | static_cast<std::uint32_t>(std::ldexp(std::fabs(value), f.mantissa_bits - f.smallest_exponent)));
  const std::uint32_t field = static_cast<std::uint32_t>(exponent - f.smallest_exponent + 1) << f.mantissa_bits;
  return static_cast<std::uint8_t>(sign | field | (bits << 9 >> (32 - f.mantissa_bits)));
}

/// All 256 values.
inline std::array<float, 256> fp8_values(Dtype dtype) {
  const Fp8Format& f = fp8_format(dtype);
  std::array<float, 256> values{};
  for (int bits = 0; bits < 256; ++bits) {
    const int field = bits & 0x7f, exponent = field >> f.mantissa_bits, mantissa = field & ((1 << f.mantissa_bits) - 1);
    const bool special = dtype == Dtype::fp8_e4m3 ? field == 0x7f : exponent == 31;
    float value = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), f.smallest_exponent - f.mantissa_bits)
                                : std::ldexp(static_cast<float>(mantissa + (1 << f.mantissa_bits)),
                                             exponent - 1 + f.smallest_exponent - f.mantissa_bits);
    if (special)
      value = dtype == Dtype::fp8_e5m2 && mantissa == 0 ? std::numeric_limits<float>::infinity()
                                                        : std::numeric_limits<float>::quiet_NaN();
    values[static_cast<std::size_t>(bits)] = bits < 128 ? value : -value;
  }
  return values;
}

}  // namespace attest
