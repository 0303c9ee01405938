// How far the sums over a row's keys may be off, whatever their order within a kernel's numerics.
#pragma once
#include <algorithm>
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

/// How far P = 1 / num_keys, the same at each of a row's keys whose scores are equal, is from that, relative to it: P's
/// own rounding, or its subnormals' spacing, and its division's. 0 where P is exactly 1 and O is divided instead.
inline double equal_weight_error(const Numerics& n, std::int64_t num_keys) {
  return n.normalises_first ? std::max(n.u_P, n.a_P * static_cast<double>(num_keys)) + 7 * u32 : 0;
}

}  // namespace attest
