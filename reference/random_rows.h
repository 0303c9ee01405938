// The random numbers that inputs are made of: each a pure function of where it stands.
#pragma once
#include <cstdint>

#include "attest/problem/dtype.h"
#include "attest/problem/splitmix64.h"

namespace attest {

/// What the numbers are for: no two streams share any.
enum class Stream : std::uint64_t {
  q = 1,
  k,
  v,
  row_constant,
  dout,
  bias,
  bias_rows,
  alibi,
  sink,
  descale,
  bad_q,
  bad_k,
  bad_v
};

/// 64 bits for row (b, s, h) of a tensor.
std::uint64_t row_key(std::uint64_t seed, Stream stream, std::int64_t b, std::int64_t s, std::int64_t h);

/// A number in [0, 1) from 64 bits.
constexpr double fraction_of(std::uint64_t bits) { return static_cast<double>(bits >> 12) * 0x1p-52; }

/// Standard normal numbers times `factor`, rounded to `dtype`: number d of the row from its key and d alone.
void fill_normal_row(double* row, std::int64_t dim, std::uint64_t key, double factor, Dtype dtype);

}  // namespace attest
