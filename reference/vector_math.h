// Arithmetic on one row of a strip, written so that GCC vectorises it.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

namespace attest {

/// expm1(x) and exp(x) for x <= 0, each with a relative error below 4e-16; exp is 0 below -708, where it leaves the
/// normal numbers; NaN stays. Eigen's exp gives 5e-309 for -Inf, and a row's masked keys must weigh exactly 0.
struct Exponential {
  double minus_one, value;
};

/// x = n ln 2 + r with |r| <= ln(2) / 2, and exp(x) = 2^n exp(r). ln 2 is split in two so that n times its head is
/// exact; adding 1.5 * 2^52 rounds to an integer and leaves n in the low bits.
inline Exponential exponential_of_nonpositive(double x) {
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
  const auto power = std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) + 1023) << 52);
  const double value = (y * r + 1.0) * power;
  return {power * (y * r) + (power - 1), x < -708 ? 0.0 : value};
}

inline double exp_of_nonpositive(double x) { return exponential_of_nonpositive(x).value; }

/// tanh(x) and its derivative 1 - tanh(x)^2, relative errors below 1e-15. With w = expm1(-2 |x|):
///   tanh |x| = -w / (2 + w),   1 - tanh(x)^2 = 4 exp(-2 |x|) / (2 + w)^2
struct Tanh {
  double value, slope;
};
inline Tanh tanh_and_slope(double x) {
  const Exponential e = exponential_of_nonpositive(-2 * std::abs(x));
  const double over = 1 / (2 + e.minus_one);
  return {std::copysign(-e.minus_one * over, x), 4 * e.value * over * over};
}

}  // namespace attest
