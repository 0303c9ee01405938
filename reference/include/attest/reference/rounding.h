// Rounding float64 to the 16- and 32-bit formats, to nearest even, in one step.
#pragma once
#include <cstdint>

#include "attest/problem/dtype.h"

namespace attest {

/// `value` rounded to `dtype` (subnormals kept, overflow to Inf, NaN stays NaN), as a double.
double round_to(Dtype dtype, double value);

/// The bits of `value` rounded to `dtype`, in the low bytes_of(dtype) bytes; and back.
std::uint32_t encode(Dtype dtype, double value);
double decode(Dtype dtype, std::uint32_t bits);

}  // namespace attest
