#include "attest/reference/rounding.h"

#include <bit>
#include <cmath>
#include <limits>

namespace attest {
namespace {

// A 16-bit format: sign, exponent, `mantissa` bits. The smallest normal is 2^min_exponent.
struct Format {
  int mantissa;
  int min_exponent;
  int max_exponent;
};
constexpr Format format_fp16{10, -14, 15};
constexpr Format format_bf16{7, -126, 127};

// A float64 and a large power of two added give a sum that is rounded, to nearest even and once, at a bit the power of
// two chooses; subtracting it again is exact. With the value in [2^e, 2^(e+1)) and quantum 2^(e - mantissa), adding
// 1.5 * 2^52 quanta puts the sum's last bit at the quantum. Below the smallest normal the quantum stays: subnormals.
double round_16(Format f, double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int biased = static_cast<int>((bits >> 52) & 0x7ff);
  if (biased > 1023 + f.max_exponent) {  // also Inf and NaN
    if (std::isnan(value)) return value;
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  const int exponent = biased > 1023 + f.min_exponent ? biased - 1023 : f.min_exponent;
  const auto magic_bits =
      (static_cast<std::uint64_t>(1023 + exponent + 52 - f.mantissa) << 52) | (std::uint64_t{1} << 51);
  const auto magic = std::bit_cast<double>(magic_bits);
  // The sum passes through memory-like opacity only in name: without -ffast-math the compiler keeps it.
  const double rounded = std::copysign((value + magic) - magic, value);
  const double overflow = std::ldexp(1.0, f.max_exponent + 1);
  return std::abs(rounded) >= overflow ? std::copysign(std::numeric_limits<double>::infinity(), value) : rounded;
}

std::uint32_t encode_16(Format f, double value) {
  const double rounded = round_16(f, value);
  const std::uint32_t sign = std::signbit(value) ? 0x8000u : 0u;
  const auto max_biased = static_cast<std::uint32_t>(2 * f.max_exponent + 1);
  if (std::isnan(rounded)) return sign | (max_biased << f.mantissa) | (1u << (f.mantissa - 1));
  if (std::isinf(rounded)) return sign | (max_biased << f.mantissa);
  // In units of the smallest subnormal below 2^(min_exponent + 1); there the exponent field counts itself up.
  const double magnitude = std::abs(rounded);
  int exponent = magnitude == 0 ? f.min_exponent : std::ilogb(magnitude);
  if (exponent < f.min_exponent) exponent = f.min_exponent;
  const auto quanta = static_cast<std::uint32_t>(std::ldexp(magnitude, f.mantissa - exponent));
  return sign | ((static_cast<std::uint32_t>(exponent - f.min_exponent) << f.mantissa) + quanta);
}

double decode_16(Format f, std::uint32_t bits) {
  const std::uint32_t mantissa = bits & ((1u << f.mantissa) - 1);
  const auto max_biased = static_cast<std::uint32_t>(2 * f.max_exponent + 1);
  const std::uint32_t biased = (bits >> f.mantissa) & max_biased;
  double magnitude;
  if (biased == max_biased)
    magnitude = mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else if (biased == 0)
    magnitude = std::ldexp(mantissa, f.min_exponent - f.mantissa);
  else
    magnitude = std::ldexp(mantissa + (1u << f.mantissa), static_cast<int>(biased) - 1 + f.min_exponent - f.mantissa);
  return (bits & 0x8000u) ? -magnitude : magnitude;
}

}  // namespace

double round_to(Dtype dtype, double value) {
  switch (dtype) {
    case Dtype::fp16:
      return round_16(format_fp16, value);
    case Dtype::bf16:
      return round_16(format_bf16, value);
    case Dtype::fp32:
      return static_cast<float>(value);
  }
  return value;
}

std::uint32_t encode(Dtype dtype, double value) {
  switch (dtype) {
    case Dtype::fp16:
      return encode_16(format_fp16, value);
    case Dtype::bf16:
      return encode_16(format_bf16, value);
    case Dtype::fp32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  }
  return 0;
}

double decode(Dtype dtype, std::uint32_t bits) {
  switch (dtype) {
    case Dtype::fp16:
      return decode_16(format_fp16, bits & 0xffff);
    case Dtype::bf16:
      return decode_16(format_bf16, bits & 0xffff);
    case Dtype::fp32:
      return std::bit_cast<float>(bits);
  }
  return 0;
}

}  // namespace attest
