// The truth of long sequences, in float64 on the GPU.
#pragma once
#include "attest/reference/forward.h"

namespace attest {

/// forward_with_budget() by a CTA a row, naively: every sum over keys is written out again from docs/numerics.md, and
/// shares no code with the reference's strips, which it is held to by a test. Equal to it within the rounding of
/// float64. Throws EnvironmentError where there is no GPU, CudaError.
Truth forward_with_budget_on_gpu(const Problem& problem, const Inputs& inputs, const Numerics& numerics,
                                 bool statistical);

}  // namespace attest
