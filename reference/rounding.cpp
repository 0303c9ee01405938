#include "attest/reference/rounding.h"

#include <cstring>

#include "round_format.h"

namespace attest {
namespace {

template <class F>
std::uint32_t encode_format(double value) {
  const auto magnitude = std::abs(round_to_format<F>(value));
  const std::uint32_t sign = std::signbit(value) ? 0x8000u : 0u;
  if (std::isnan(magnitude)) return sign | F::inf | (1u << (F::mantissa - 1));
  if (std::isinf(magnitude)) return sign | F::inf;
  if (magnitude < power_of_two(F::min_exponent))  // a count of the smallest subnormal
    return sign | static_cast<std::uint32_t>(magnitude * power_of_two(F::mantissa - F::min_exponent));
  // The bits that are left of a float64's, with the exponent counted from the format's own bias.
  constexpr auto bias = static_cast<std::uint64_t>(1023 + F::min_exponent - 1) << F::mantissa;
  return sign | static_cast<std::uint32_t>((std::bit_cast<std::uint64_t>(magnitude) >> (52 - F::mantissa)) - bias);
}

template <class F>
double decode_format(std::uint32_t bits) {
  const std::uint32_t field = bits & 0x7fffu;
  const std::uint32_t mantissa = field & ((1u << F::mantissa) - 1);
  double magnitude;
  if (field >= F::inf)
    magnitude = mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else if (field == mantissa)
    magnitude = mantissa * power_of_two(F::min_exponent - F::mantissa);
  else
    magnitude = std::bit_cast<double>((static_cast<std::uint64_t>(field) << (52 - F::mantissa)) +
                                      (static_cast<std::uint64_t>(1023 + F::min_exponent - 1) << 52));
  return (bits & 0x8000u) ? -magnitude : magnitude;
}

template <class F>
void encode_row_16(const double* values, std::int64_t count, void* bits) {
  auto* to = static_cast<unsigned char*>(bits);
  for (std::int64_t n = 0; n < count; ++n) {
    const auto word = static_cast<std::uint16_t>(encode_format<F>(values[n]));
    std::memcpy(to + 2 * n, &word, 2);
  }
}

template <class F>
void decode_row_16(const void* bits, std::int64_t count, double* values) {
  const auto* from = static_cast<const unsigned char*>(bits);
  for (std::int64_t n = 0; n < count; ++n) {
    std::uint16_t word;
    std::memcpy(&word, from + 2 * n, 2);
    values[n] = decode_format<F>(word);
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
  }
  return 0;
}

void encode_row(Dtype dtype, const double* values, std::int64_t count, void* bits) {
  switch (dtype) {
    case Dtype::fp16:
      return encode_row_16<Fp16>(values, count, bits);
    case Dtype::bf16:
      return encode_row_16<Bf16>(values, count, bits);
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
