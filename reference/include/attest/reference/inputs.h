// The inputs of a case, drawn from its recipe and rounded to its dtype, so that reference and kernel see the same
// numbers.
#pragma once
#include "attest/problem/case.h"
#include "attest/reference/tensor.h"

namespace attest {

struct Inputs {
  Tensor q, k, v;  // [batch, seqlen, heads, dim], every value representable in the case's dtype
  // Below: empty where the case has no use for it; fp32 values unless said otherwise. Rows past a batch entry's length
  // are outside the logical domain.
  Tensor dout{};          // [batch, seqlen_q, nheads, headdim_v], representable in output_dtype()
  Tensor bias{};          // [batch or 1, nheads or 1, seqlen_q, seqlen_k], also in output_dtype()
  Tensor alibi_slopes{};  // [batch, nheads, 1, 1]
  Tensor sink{};          // [1, nheads, 1, 1]
  Tensor q_descale{}, k_descale{}, v_descale{};  // [batch, nheads_k, 1, 1], beside 8-bit inputs
};

/// A pure function of (problem, inputs, seed): element (b, s, h, d) of a tensor does not depend on the other extents of
/// batch and seqlen, so that a batch member or a shorter sequence can be made again; but orthogonal_dout's dO does, on
/// all that O depends on.
Inputs make_inputs(const Case& c);

/// Its slopes alone, [batch, nheads, 1, 1]; empty without ALiBi. Those of the ALiBi paper (Press, Smith, Lewis 2022),
/// 2^(-8 (h + 1) / nheads); other batch entries have 1.25, 1.5 and 1.75 times those, so that one entry's slopes are not
/// another's.
Tensor make_alibi_slopes(const Problem& p);

}  // namespace attest
