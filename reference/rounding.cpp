#include "attest/reference/rounding.h"

#include <immintrin.h>

#include <cstring>

#include "round_format.h"

namespace attest {
namespace {

// The bits below the sign of a finite value of the format.
template <class F>
std::uint32_t encode_magnitude(double magnitude) {
  if (magnitude < power_of_two(F::min_exponent))  // a count of the smallest subnormal
    return static_cast<std::uint32_t>(magnitude * power_of_two(F::mantissa - F::min_exponent));
  // The bits that are left of a float64's, with the exponent counted from the format's own bias.
  constexpr auto bias = static_cast<std::uint64_t>(1023 + F::min_exponent - 1) << F::mantissa;
  return static_cast<std::uint32_t>((std::bit_cast<std::uint64_t>(magnitude) >> (52 - F::mantissa)) - bias);
}

template <class F>
std::uint32_t encode_format(double value) {
  const auto magnitude = std::abs(round_to_format<F>(value));
  const std::uint32_t sign = std::signbit(value) ? 0x8000u : 0u;
  if (std::isnan(magnitude)) return sign | F::inf | (1u << (F::mantissa - 1));
  if (std::isinf(magnitude)) return sign | F::inf;
  return sign | encode_magnitude<F>(magnitude);
}

template <class F>
std::uint32_t encode_fp8(double value) {
  const std::uint32_t sign = std::signbit(value) ? 0x80u : 0u;
  return sign | (std::isnan(value) ? 0x7fu : encode_magnitude<F>(std::abs(round_to_fp8<F>(value))));
}

template <class F>
double decode_magnitude(std::uint32_t field) {
  const std::uint32_t mantissa = field & ((1u << F::mantissa) - 1);
  if (field == mantissa) return mantissa * power_of_two(F::min_exponent - F::mantissa);
  return std::bit_cast<double>((static_cast<std::uint64_t>(field) << (52 - F::mantissa)) +
                               (static_cast<std::uint64_t>(1023 + F::min_exponent - 1) << 52));
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

template <class F>
double decode_format(std::uint32_t bits) {
  const std::uint32_t field = bits & 0x7fffu;
  const double magnitude = field > F::inf ? nan : field == F::inf ? infinity : decode_magnitude<F>(field);
  return (bits & 0x8000u) ? -magnitude : magnitude;
}

double decode_e4m3(std::uint32_t bits) {
  const std::uint32_t field = bits & 0x7fu;
  const double magnitude = field == 0x7f ? nan : decode_magnitude<Fp8E4m3>(field);
  return (bits & 0x80u) ? -magnitude : magnitude;
}

double decode_e5m2(std::uint32_t bits) {
  const std::uint32_t field = bits & 0x7fu;
  const double magnitude = field > Fp8E5m2::inf    ? nan
                           : field == Fp8E5m2::inf ? infinity
                                                   : decode_magnitude<Fp8E5m2>(field);
  return (bits & 0x80u) ? -magnitude : magnitude;
}

// Rows of 16 bits are rounded in software, once; what is left is exact, and the hardware's own conversions do it.
template <class F>
void encode_row_16(const double* values, std::int64_t count, void* bits) {
  auto* to = static_cast<unsigned char*>(bits);
  for (std::int64_t n = 0; n < count; ++n) {
    const auto value = static_cast<float>(round_to_format<F>(values[n]));
    std::uint16_t word;
    if constexpr (F::mantissa == Bf16::mantissa)
      word = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
    else
      word = _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT);
    std::memcpy(to + 2 * n, &word, 2);
  }
}

template <class F>
void decode_row_16(const void* bits, std::int64_t count, double* values) {
  const auto* from = static_cast<const unsigned char*>(bits);
  for (std::int64_t n = 0; n < count; ++n) {
    std::uint16_t word;
    std::memcpy(&word, from + 2 * n, 2);
    if constexpr (F::mantissa == Bf16::mantissa)
      values[n] = std::bit_cast<float>(static_cast<std::uint32_t>(word) << 16);
    else
      values[n] = _cvtsh_ss(word);
  }
}

}  // namespace

double round_to(Dtype dtype, double value) {
  switch (dtype) {
    case Dtype::fp16:
      return round_to_format<Fp16>(value);
    case Dtype::bf16:
      return round_to_format<Bf16>(value);
    case Dtype::fp32:
      return static_cast<float>(value);
    case Dtype::fp8_e4m3:
      return round_to_fp8<Fp8E4m3>(value);
    case Dtype::fp8_e5m2:
      return round_to_fp8<Fp8E5m2>(value);
  }
  return value;
}

std::uint32_t encode(Dtype dtype, double value) {
  switch (dtype) {
    case Dtype::fp16:
      return encode_format<Fp16>(value);
    case Dtype::bf16:
      return encode_format<Bf16>(value);
    case Dtype::fp32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case Dtype::fp8_e4m3:
      return encode_fp8<Fp8E4m3>(value);
    case Dtype::fp8_e5m2:
      return encode_fp8<Fp8E5m2>(value);
  }
  return 0;
}

double decode(Dtype dtype, std::uint32_t bits) {
  switch (dtype) {
    case Dtype::fp16:
      return decode_format<Fp16>(bits);
    case Dtype::bf16:
      return decode_format<Bf16>(bits);
    case Dtype::fp32:
      return std::bit_cast<float>(bits);
    case Dtype::fp8_e4m3:
      return decode_e4m3(bits);
    case Dtype::fp8_e5m2:
      return decode_e5m2(bits);
  }
  return 0;
}

void encode_row(Dtype dtype, const double* values, std::int64_t count, void* bits) {
  switch (dtype) {
    case Dtype::fp16:
      return encode_row_16<Fp16>(values, count, bits);
    case Dtype::bf16:
      return encode_row_16<Bf16>(values, count, bits);
    case Dtype::fp8_e4m3:
    case Dtype::fp8_e5m2:
      for (std::int64_t n = 0; n < count; ++n)
        static_cast<std::uint8_t*>(bits)[n] = static_cast<std::uint8_t>(encode(dtype, values[n]));
      return;
    case Dtype::fp32:
      break;
  }
  auto* to = static_cast<unsigned char*>(bits);
  for (std::int64_t n = 0; n < count; ++n) {
    const auto word = static_cast<float>(values[n]);
    std::memcpy(to + 4 * n, &word, 4);
  }
}

void decode_row(Dtype dtype, const void* bits, std::int64_t count, double* values) {
  switch (dtype) {
    case Dtype::fp16:
      return decode_row_16<Fp16>(bits, count, values);
    case Dtype::bf16:
      return decode_row_16<Bf16>(bits, count, values);
    case Dtype::fp8_e4m3:
    case Dtype::fp8_e5m2:
      for (std::int64_t n = 0; n < count; ++n) values[n] = decode(dtype, static_cast<const std::uint8_t*>(bits)[n]);
      return;
    case Dtype::fp32:
      break;
  }
  const auto* from = static_cast<const unsigned char*>(bits);
  for (std::int64_t n = 0; n < count; ++n) {
    float word;
    std::memcpy(&word, from + 4 * n, 4);
    values[n] = word;
  }
}

}  // namespace attest
