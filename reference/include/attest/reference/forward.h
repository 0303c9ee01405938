// Attention in float64, and how far a right kernel may be from it.
#pragma once
#include "attest/problem/numerics.h"
#include "attest/problem/problem.h"
#include "attest/reference/gradients.h"
#include "attest/reference/inputs.h"
#include "attest/reference/tensor.h"

namespace attest {

struct Forward {
  Tensor o;    // [batch, seqlen_q, nheads, headdim_v]; 0 in rows past a batch entry's length
  Tensor lse;  // [batch, nheads, seqlen_q, 1]; 0 in those rows
};

/// softmax_scale and softcap are rounded to fp32 first, because that is how kernels take them; slopes, sinks and
/// descales are fp32 as they are. A row that sees no key, or keys whose scores are all -Inf, has O = 0 and LSE = -Inf,
/// or the sink. Where a visible V is NaN or Inf, so is O; where a visible score is NaN or +Inf, O and LSE are NaN; what
/// is masked or past a length reaches nothing. Eigen and OpenMP over (batch, head, row block) on strips of 64 rows x
/// the keys that they see.
Forward forward(const Problem& problem, const Inputs& inputs);

/// The truth of a case with its budget: bounds in the units of the tensors they bound.
struct Truth {
  Forward forward;
  // Worst case, element by element: a right kernel never exceeds them. lse_bound is +Inf in rows that see a score of
  // +Inf: LSE is NaN as m + ln l and +Inf as ln(sum exp(s)), and compare() takes either.
  Tensor o_bound, lse_bound;
  Tensor o_variance,
      lse_variance;  // of independent rounding errors; empty unless asked for, o_variance also at u_P = 0
  // Where o_variance is all P's: how many of P's roundings a row of O hangs on, (sum var_j)^2 / sum var_j^2 over its
  // keys, shaped like lse.
  Tensor roundings{};
  // With ALiBi, beside o_variance: how far P is rounded in a row as in all others of its head, 0 to 1, shaped like lse.
  // Near 1 where products hardly move the scores, so that distances alone make the weights.
  Tensor alike{};
  Numerics numerics;                         // what the budget was computed from
  Gradients gradients{}, gradient_bounds{};  // empty until add_gradients()
};

/// A truth of zeros whose tensors are those that forward_with_budget() fills for these arguments; `alike` is filled.
Truth empty_truth(const Problem& problem, const Inputs& inputs, const Numerics& numerics, bool statistical);

/// The statistical budget is for continuous zero-mean random inputs only (Distribution::normal), and
/// left out for 8-bit inputs of fewer than 4 coordinates, which are not continuous.
Truth forward_with_budget(const Problem& problem, const Inputs& inputs, const Numerics& numerics, bool statistical);

}  // namespace attest
