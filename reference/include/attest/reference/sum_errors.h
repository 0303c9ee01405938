// How far the sums over a row's keys may be off, whatever their order within a kernel's numerics.
#pragma once
#include <cstdint>

#include "attest/problem/numerics.h"

namespace attest {

/// Relative to the sum of magnitudes; infinity where the first-order error reaches 1 (2^23 keys). docs/numerics.md.
struct SumErrors {
  double T;     // tiles that the keys may touch, wherever the first tile begins: how often a maximum may change
  double g_pv;  // sum of P V
  double g_l;   // denominator
};

/// `breaks`: how many more maxima the row may meet than one interval of keys would: at a second interval, a sink,
/// splits.
SumErrors sum_errors(const Numerics& numerics, std::int64_t num_keys, int breaks = 0);

}  // namespace attest
