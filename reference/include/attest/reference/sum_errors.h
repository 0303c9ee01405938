// How far the sums over a row's keys may be off, whatever their order within a kernel's numerics.
#pragma once
#include <cstdint>

#include "attest/problem/numerics.h"

namespace attest {

/// A bound that says nothing: larger than anything it is compared with, yet finite times any float, so that no 0 times
/// it is NaN.
inline constexpr double hopeless = 1e60;

/// A sum of n rounded steps of at most x = n u in all is off by x / (1 - x) of the sum of magnitudes (Higham 2002,
/// section 3.1). From x = 1 on nothing is known: hopeless.
constexpr double compounded(double x) { return x < 1 ? x / (1 - x) : hopeless; }

/// Relative to the sum of magnitudes; hopeless where the first-order error reaches 1 (7.3 million keys in tiles of 16).
/// docs/numerics.md.
struct SumErrors {
  double T;     // tiles that the keys may touch, wherever the first tile begins: how often a maximum may change
  double g_pv;  // sum of P V
  double g_l;   // denominator
};

/// `breaks`: how many more maxima the row may meet than one interval of keys would: at a second interval, a sink,
/// splits.
SumErrors sum_errors(const Numerics& numerics, std::int64_t num_keys, int breaks = 0);

}  // namespace attest
