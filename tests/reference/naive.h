// Attention as its definition reads: one element at a time, in long double, over attends().
#pragma once
#include "attest/problem/problem.h"
#include "attest/reference/forward.h"
#include "attest/reference/inputs.h"

namespace attest {

Forward naive_forward(const Problem& problem, const Inputs& inputs);

}  // namespace attest
