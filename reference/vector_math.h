// Arithmetic on one row of a strip, written so that GCC vectorises it.
#pragma once
#include <bit>
#include <cstdint>

namespace attest {

/// exp(x) for x <= 0, with a relative error below 3e-16; 0 below -708, where exp leaves the normal numbers; NaN stays.
/// Eigen's exp gives 5e-309 for -Inf, and a row's masked keys must weigh exactly 0.
///
/// x = n ln 2 + r with |r| <= ln(2) / 2, and exp(x) = 2^n exp(r). ln 2 is split in two so that n times its head is
/// exact; adding 1.5 * 2^52 rounds to an integer and leaves n in the low bits.
inline double exp_of_nonpositive(double x) {
  constexpr double log2_e = 1.4426950408889634;
  constexpr double ln2_head = 0x1.62e42fefap-1, ln2_tail = 0x1.cf79abc9e3b3ap-40;
  constexpr double magic = 0x1.8p52;
  const double clamped = x < -708 ? -708 : x;  // NaN passes
  const double shifted = clamped * log2_e + magic;
  const double n = shifted - magic;
  const double r = (clamped - n * ln2_head) - n * ln2_tail;
  // Taylor's series: r^13 / 13! is below 2e-16 at |r| = ln(2) / 2.
  double y = 1.0 / 479001600;
  y = y * r + 1.0 / 39916800;
  y = y * r + 1.0 / 3628800;
  y = y * r + 1.0 / 362880;
  y = y * r + 1.0 / 40320;
  y = y * r + 1.0 / 5040;
  y = y * r + 1.0 / 720;
  y = y * r + 1.0 / 120;
  y = y * r + 1.0 / 24;
  y = y * r + 1.0 / 6;
  y = y * r + 1.0 / 2;
  y = y * r + 1.0;
  y = y * r + 1.0;
  const auto power = std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) + 1023) << 52);
  const double result = y * power;
  return x < -708 ? 0.0 : result;
}

}  // namespace attest
