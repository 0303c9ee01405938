// What a backward pass gives.
#pragma once
#include "attest/reference/tensor.h"

namespace attest {

/// The gradients of sum(dO * O). Rows past a batch entry's length are 0, as is what belongs to a row that sees no key.
struct Gradients {
  Tensor dq;       // [batch, seqlen_q, nheads, headdim]
  Tensor dk;       // [batch, seqlen_k, nheads_k, headdim], summed over the query heads that share the key head
  Tensor dv;       // [batch, seqlen_k, nheads_k, headdim_v], likewise
  Tensor dsink{};  // [1, nheads, 1, 1]; empty without a sink
  Tensor dbias{};  // the bias' extents, summed over what shares it; empty without a bias
};

}  // namespace attest
