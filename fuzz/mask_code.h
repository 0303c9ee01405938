// Coded values: what each column of V holds so that O measures the weights of chosen keys.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "attest/problem/case.h"
#include "attest/problem/numerics.h"
#include "attest/reference/tensor.h"

namespace attest {

/// One column of V, in units of MaskCode::unit.
struct MaskColumn {
  enum class Kind : std::uint8_t {
    bits,    // 2^(j - first) at key j of [first, first + count): O holds the keys as the digits of one number
    sum,     // 1 at each key of [first, first + count)
    sign,    // 1 or -1 at every key, drawn: `first` is which of the drawn columns
    origin,  // 1 at every key of the (batch entry, key head) pairs whose number has bit `first` equal to `count`
  };
  Kind kind;
  std::int64_t first = 0, count = 0;
};

/// What a dtype leaves room for.
struct MaskCode {
  MaskCode(const Problem& problem, const Numerics& numerics);

  double unit = 1;          // power of two: keeps unit / seqlen_k among the output's normal numbers
  double summed = 0;        // what is off before O's own rounding, relative to the sum of magnitudes
  double rho = 0;           // relative error of an element of O whose numerator is exact
  double floor = 0;         // an element of O below this is 0
  int keys_per_column = 1;  // the largest k with (2^k - 1) rho < 1/2: every sum of k digits is told from the next
};

/// The bit of key j in each of the 32 drawn columns; set: +1.
std::uint32_t mask_signs(std::uint64_t seed, std::int64_t key);
inline constexpr std::int64_t num_mask_signs = 32;

/// Bits that number the (batch entry, key head) pairs.
int origin_bits(const Problem& problem);

/// Columns 0, 1, ... of v hold `columns`, the rest 0.
void fill_values(const Case& c, const MaskCode& code, std::span<const MaskColumn> columns, Tensor& v);

}  // namespace attest
