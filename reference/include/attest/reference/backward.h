// The gradients of attention in float64, and how far a right kernel may be from them.
#pragma once
#include "attest/problem/problem.h"
#include "attest/reference/forward.h"
#include "attest/reference/gradients.h"
#include "attest/reference/inputs.h"

namespace attest {

/// With P_ij = exp(score_ij - LSE_i), D_i = sum_c dO_ic O_ic and dS_ij = P_ij (sum_c dO_ic V_jc - D_i), as in
/// FlashAttention-2 (Dao 2023, algorithm 2):
///   dV = P^T dO   dbias = dS   dX = dS (1 - tanh^2) with softcap, else dS   dsink = -sum_i exp(sink - LSE_i) D_i
///   dQ = softmax_scale dX K    dK = softmax_scale dX^T Q
/// Beside 8-bit inputs Q, K and V are the values times their descales, and so are the gradients those of the products:
/// what a kernel writes in bf16 and what the caller divides by no factor. inputs.dout must be there. NaN and Inf reach
/// what IEEE arithmetic over the visible pairs (i, j) makes of them and nothing else. Eigen and OpenMP on blocks of
/// rows x keys; the result does not depend on the number of threads.
Gradients backward(const Problem& problem, const Inputs& inputs);

/// The same from an O and an LSE that a kernel's backward was handed, which are then taken as they are.
Gradients backward(const Problem& problem, const Inputs& inputs, const Forward& handed);

/// Fills truth.gradients and truth.gradient_bounds for a kernel of truth.numerics. `handed`: the O and LSE that the
/// kernel's backward read; the gradients are then those of backward(problem, inputs, *handed) and the bounds leave out
/// what the forward may be off by. Without it O and LSE are anything within truth's own bounds.
void add_gradients(const Problem& problem, const Inputs& inputs, Truth& truth, const Forward* handed = nullptr);

}  // namespace attest
