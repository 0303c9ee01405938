// The inputs of a case, drawn from its recipe and rounded to its dtype, so that reference and kernel see the same
// numbers.
#pragma once
#include "attest/problem/case.h"
#include "attest/reference/tensor.h"

namespace attest {

struct Inputs {
  Tensor q, k, v;  // [batch, seqlen, heads, dim], every value representable in the case's dtype
};

/// A pure function of (problem, inputs, seed): element (b, s, h, d) of a tensor does not depend on the other extents of
/// batch and seqlen, so that a batch member or a shorter sequence can be made again.
Inputs make_inputs(const Case& c);

}  // namespace attest
