// Attention as three kernels through global memory: what every traffic figure is held against, and a second opinion on
// what a fused kernel computes.
#pragma once
#include <memory>

#include "attest/gpu/device_kernel.h"

namespace attest {

/// S = softmax_scale Q K^T, then P = exp(S - max), then O = P V / l: S and P rounded to the inputs' dtype, the row sums
/// l in fp32. The matrix products skip nothing that a mask takes out. Reads a mask, pages and lengths by itself: it
/// shares nothing with the fused kernels' plan.
std::unique_ptr<DeviceForward> make_unfused();

}  // namespace attest
