// Where a kernel rounds. A value that the kernel declares and the error budget is computed from (docs/numerics.md).
#pragma once
#include <string>

#include "attest/problem/dtype.h"

namespace attest {

/// The unit roundoff of fp32.
inline constexpr double u32 = 0x1p-24;

/// Unit roundoffs are relative errors of one rounding to nearest; `a_*` are half the smallest spacing (absolute).
struct Numerics {
  std::string name;                // printed with every verdict
  double u_S = 0;                  // rounding of the scores before the softmax (0: kept in fp32)
  double u_P = 0;                  // rounding of the probabilities before the product with V (0: kept in fp32)
  double a_P = 0;                  // half the spacing of P's subnormals
  double min_normal_P = 0;         // smallest normal P
  double u_acc = 0x1p-23;          // one step of a matrix accumulator (tensor cores truncate: 2^-23)
  double eps_exp = 2.5 * 0x1p-23;  // relative error of one exponential (ex2.approx: 2 ulp of the result)
  double eps_tanh = 0x1p-11;       // relative error of tanh.approx, used with softcap
  int chain = 4;                   // partial sums that a row's denominator is split over; each is a serial sum
  int smallest_tile = 16;          // fewest keys a tile: how often a row maximum can change
  double u_out = 0;                // rounding of O to its dtype
  double floor_out = 0;            // half the spacing of O's subnormals
  double lse_max_roundings = 2;    // of the row maximum on its way into LSE (5 where it goes through base 2)
  int num_splits = 1;              // shares of the keys with a softmax each, combined in fp32 by their LSE
  double max_P = 1;                // largest P before rounding (2^8 where O is rescaled lazily)
  // Whether P is divided by its row's sum before it is rounded and meets V (a softmax as a matrix of its own), and not
  // O after the product. What is said of P above then holds for weights of at most 1 that sum to 1.
  bool normalises_first = false;
  // The backward pass: P and dS on their way into a product, and one head's share of dK and dV where the sum over a
  // group of heads runs over shares that were rounded first.
  double u_P_backward = 0, a_P_backward = 0x1p-126;
  double u_dS = 0, a_dS = 0x1p-126;
  double u_share = 0, floor_share = 0;

  friend bool operator==(const Numerics&, const Numerics&) = default;
};

/// FlashAttention-style: S, O and l in fp32, P rounded to `dtype`, exp2 of a fused multiply-add. Backward: P and dS
/// rounded to output_dtype(dtype) after S, dP and D in fp32, the softmax_scale on dQ and dK, shares kept in fp32.
Numerics flash_numerics(Dtype dtype, int smallest_tile = 16);

}  // namespace attest
