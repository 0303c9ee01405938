// A block: up to 64 queries of one head against up to 128 keys, and what the backward pass needs of each pair.
#pragma once
#include <vector>

#include "attest/reference/backward.h"
#include "strip.h"

namespace attest {

inline constexpr std::int64_t keys_per_block = 128;

struct BlockPlace {
  std::int64_t b, h, h_k;
  std::int64_t first_row, num_rows;
  KeyRange keys;
};

/// What all blocks of a call share.
struct BackwardInputs {
  /// `bounds`: how far O and LSE may be off what `forward` says; null where they are what the kernel read. Without
  /// numerics no budget is prepared.
  BackwardInputs(const Problem& problem, const Inputs& inputs, const Forward& forward, const Numerics* numerics,
                 const Truth* bounds);

  const Problem& problem;
  const Inputs& inputs;
  const Forward& forward;
  const Numerics* numerics;
  const Tensor* lse_bound;
  PreparedInputs prepared;
  Tensor D, D_bound;  // [batch, nheads, seqlen_q, 1]; the bound only with numerics
  // NaN and Inf replaced by 0, for the products in which a pair that is not visible has the weight 0.
  const Tensor& finite_q() const { return q_copy.values.empty() ? inputs.q : q_copy; }
  const Tensor& finite_k() const { return k_copy.values.empty() ? inputs.k : k_copy; }
  const Tensor& finite_dout() const { return dout_copy.values.empty() ? inputs.dout : dout_copy; }
  /// What holds the keys that a strip of rows sees; nothing else need be visited.
  const KeyRanges& keys(std::int64_t b, std::int64_t strip) const { return strip_keys[b * strips_a_batch + strip]; }
  std::int64_t strips_a_batch;
  std::vector<std::int64_t> visible_keys, visible_rows;  // of row (b, i), of key (b, j); only with numerics
  /// softmax_scale and the other factor's descale: what a sum of dX k or dX q is multiplied by.
  double dq_scale(std::int64_t b, std::int64_t h_k) const { return scale * descale(inputs.k_descale, b, h_k); }
  double dk_scale(std::int64_t b, std::int64_t h_k) const { return scale * descale(inputs.q_descale, b, h_k); }

 private:
  static double descale(const Tensor& tensor, std::int64_t b, std::int64_t h_k) {
    return tensor.values.empty() ? 1 : tensor.at(b, h_k, 0, 0);
  }
  double scale;
  Tensor q_copy, k_copy, dout_copy;
  std::vector<KeyRanges> strip_keys;
};

/// The pairs of a block; everything is 0 where the query does not see the key.
struct GradientBlock {
  RowMatrix x;                            // softmax_scale q.k, then the score
  RowMatrix visible;                      // 1 or 0
  RowMatrix cap;                          // 1 - tanh^2; only with softcap
  RowMatrix p;                            // P
  RowMatrix dp;                           // dO.V
  RowMatrix ds;                           // dS, of the score
  RowMatrix dx;                           // of softmax_scale q.k: dS (1 - tanh^2); only with softcap
  RowMatrix abs_qk, abs_dov;              // sums of the products' magnitudes; only with numerics
  RowMatrix p_error, ds_error, dx_error;  // bounds on P, dS and dX as a kernel has them in fp32
};

/// The gradient of softmax_scale q.k.
inline const RowMatrix& gradient_of_products(const BackwardInputs& in, const GradientBlock& block) {
  return in.problem.softcap == 0 ? block.ds : block.dx;
}

void fill_block(const BackwardInputs& in, const BlockPlace& place, GradientBlock& block);
/// After fill_block.
void fill_block_errors(const BackwardInputs& in, const BlockPlace& place, GradientBlock& block);

}  // namespace attest
