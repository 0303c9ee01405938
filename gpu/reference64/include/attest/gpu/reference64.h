// The truth of long sequences, in float64 on the GPU.
#pragma once
#include "attest/reference/forward.h"

namespace attest {

/// forward_with_budget() by a CTA a row, naively: masks and every sum over keys are written out again from
/// docs/numerics.md, and a test holds them to the reference's strips, with which they share key_ranges_of_rows() alone.
/// Equal to it within the rounding of float64. Throws EnvironmentError where there is no GPU, CudaError.
Truth forward_with_budget_on_gpu(const Problem& problem, const Inputs& inputs, const Numerics& numerics,
                                 bool statistical);

}  // namespace attest
