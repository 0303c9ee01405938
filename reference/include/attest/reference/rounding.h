// Rounding float64 to the formats of 8, 16 and 32 bits, to nearest even, in one step.
#pragma once
#include <cstdint>

#include "attest/problem/dtype.h"

namespace attest {

/// `value` rounded to `dtype` (subnormals kept, overflow to Inf, of 8 bits to the largest finite value; NaN stays NaN),
/// as a double.
double round_to(Dtype dtype, double value);

/// The bits of `value` rounded to `dtype`, in the low bytes_of(dtype) bytes; and back.
std::uint32_t encode(Dtype dtype, double value);
double decode(Dtype dtype, std::uint32_t bits);

/// The same for `count` values in a row; `bits` holds count * bytes_of(dtype) bytes at any alignment.
void encode_row(Dtype dtype, const double* values, std::int64_t count, void* bits);
void decode_row(Dtype dtype, const void* bits, std::int64_t count, double* values);

}  // namespace attest
