// Attention as its definition reads: one element at a time, in long double, over attends().
#pragma once
#include "attest/problem/problem.h"
#include "attest/reference/backward.h"
#include "attest/reference/forward.h"
#include "attest/reference/inputs.h"

namespace attest {

Forward naive_forward(const Problem& problem, const Inputs& inputs);

/// The gradients of sum(dO * O), from the derivative of softmax pair by pair: no LSE, no D.
Gradients naive_backward(const Problem& problem, const Inputs& inputs);

}  // namespace attest
