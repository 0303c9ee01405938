// Attention in float64, and how far a right kernel may be from it.
#pragma once
#include "attest/problem/numerics.h"
#include "attest/problem/problem.h"
#include "attest/reference/inputs.h"
#include "attest/reference/tensor.h"

namespace attest {

struct Forward {
  Tensor o;    // [batch, seqlen_q, nheads, headdim_v]
  Tensor lse;  // [batch, nheads, seqlen_q, 1]; -inf where a row sees no key (O is 0 there)
};

/// softmax_scale is rounded to fp32 first, because that is how kernels take it. Where a visible V is NaN or Inf, so is
/// O; where a visible score is NaN or +Inf, or all are -Inf, O and LSE are NaN; what is masked reaches nothing. Eigen
/// and OpenMP over (batch, head, row block) on strips of 64 rows x seqlen_k.
Forward forward(const Problem& problem, const Inputs& inputs);

/// The truth of a case with its budget: bounds in the units of the tensors they bound.
struct Truth {
  Forward forward;
  Tensor o_bound, lse_bound;  // worst case, element by element: a right kernel never exceeds them
  Tensor o_variance,
      lse_variance;   // of independent rounding errors; empty unless asked for, o_variance also at u_P = 0
  Numerics numerics;  // what the budget was computed from
};

/// The statistical budget is for continuous zero-mean random inputs only (Distribution::normal).
Truth forward_with_budget(const Problem& problem, const Inputs& inputs, const Numerics& numerics, bool statistical);

}  // namespace attest
