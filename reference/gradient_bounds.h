// How far P and dS of one pair may be off in a kernel's backward pass. Derived in docs/numerics.md, whose names these
// are.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "attest/problem/numerics.h"
#include "attest/problem/problem.h"
#include "attest/reference/sum_errors.h"

namespace attest {

/// For a sum of n products in a matrix accumulator, met in any order in tiles of at least `smallest_tile`, whose
/// partial results are added in fp32.
inline double product_sum_error(const Numerics& n, std::int64_t terms) {
  const auto N = static_cast<double>(terms);
  return compounded((N + 2 * std::ceil(N / 16) + 2) * n.u_acc + (2 + std::ceil(N / n.smallest_tile)) * u32);
}

struct RowErrors {
  double lse, lse_error;
  double D, D_error;
};

struct Pair {
  double score;
  double abs_qk;  // |softmax_scale| sum |q k|
  double added;   // |bias| + |alibi|
  double cap;     // 1 - tanh^2; 1 without softcap
  double p, dp;
  double abs_dov;  // sum |dO V|
};

struct PairBounds {
  double p;   // on P as it meets dO, rounded
  double ds;  // on dS in fp32
  double dx;  // on dX as it meets K and Q, rounded
};

class PairErrors {
 public:
  PairErrors(const Problem& p, const Numerics& n)
      : n_(n),
        softcap_(p.softcap),
        modified_(p.softcap != 0 || p.alibi || p.bias != Bias::none),
        g_qk_(
            compounded((static_cast<double>(p.headdim) + 2 * std::ceil(static_cast<double>(p.headdim) / 16)) * n.u_acc +
                       (is_fp8(p.dtype) ? 2 * u32 : 0))),
        g_dov_(compounded((static_cast<double>(p.headdim_v) + 2 * std::ceil(static_cast<double>(p.headdim_v) / 16)) *
                              n.u_acc +
                          (is_fp8(p.dtype) ? 2 * u32 : 0))) {}

  PairBounds of(const RowErrors& row, const Pair& pair) const {
    // A weight of 0, whoever computes it: a score of -Inf, or a finite one beside one of +Inf whose row was handed an
    // LSE of +Inf. The latter's dS is NaN with O and needs no bound.
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (pair.score == -infinity || (row.lse == infinity && pair.score < infinity)) return {};
    const double s = std::abs(pair.score);
    double moved = g_qk_ * pair.abs_qk + n_.u_S * s, cap_error = 0;
    if (softcap_ != 0) {
      // 3 u32: the scale, 1 / softcap, their product with the sum.
      const double delta = (moved + 3 * u32 * pair.abs_qk) / softcap_;
      const double t = std::min(1.0, std::sqrt(std::max(0.0, 1 - pair.cap)) + 0x1p-26);
      const double t_error =
          std::min(2.0, pair.cap * 0.5 * std::expm1(2 * delta) + (n_.eps_tanh + 3 * u32) * std::min(1.0, t + delta));
      moved = softcap_ * (t_error + u32 * t);
      cap_error = 2 * t * t_error + t_error * t_error + 2 * u32;
    }
    if (modified_) moved += u32 * (4 * pair.added + 2 * s);
    const double exponent = std::abs(pair.score - row.lse);
    const double pi = moved + u32 * (s + 2 * std::abs(row.lse) + 2 * exponent + 3 * moved) + n_.eps_exp + row.lse_error;
    // P at its largest less P, which is P expm1(pi) without its overflow.
    const double grown = pi <= 0.5 ? pair.p * (pi * (1 + pi * (0.5 + pi * 0.25)))
                                   : std::min(hopeless, std::exp(std::min(700.0, pair.score - row.lse + pi)));
    const double p_error = grown + 0x1p-126;

    const double difference = std::abs(pair.dp - row.D);
    const double dp_error =
        (g_dov_ * pair.abs_dov + row.D_error + 2 * u32 * (std::abs(pair.dp) + std::abs(row.D))) * (1 + 4 * u32);
    PairBounds bounds{};
    bounds.p = p_error + n_.u_P_backward * (pair.p + p_error) + n_.a_P_backward;
    bounds.ds = std::min(hopeless, difference * p_error + (pair.p + p_error) * dp_error + 0x1p-126);
    const double ds = pair.p * difference;
    double dx = ds * pair.cap, dx_error = bounds.ds;
    if (softcap_ != 0)
      dx_error = bounds.ds * (pair.cap + cap_error) + ds * cap_error + u32 * (ds + bounds.ds) * (pair.cap + cap_error) +
                 0x1p-126;
    bounds.dx = dx_error + n_.u_dS * (dx + dx_error) + n_.a_dS;
    return bounds;
  }

 private:
  const Numerics& n_;
  double softcap_;
  bool modified_;
  double g_qk_, g_dov_;
};

}  // namespace attest
