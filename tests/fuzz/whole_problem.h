// Cases over every feature of a Problem, and their truth written out by index sets: independent of the reference and of
// the generators, which the CPU kernel's own tests must not wait for.
#pragma once
#include <cstdint>

#include "attest/problem/case.h"
#include "attest/reference/compare.h"
#include "attest/reference/inputs.h"

namespace attest::test {

/// Case `index`; features are drawn alone and together. `dtype` is that of the inputs.
Case whole_case(std::uint64_t index, Dtype dtype);

/// make_inputs(c) with every tensor that the case asks for.
Inputs whole_inputs(const Case& c);

/// O and LSE in float64. Rows past a batch entry's queries are 0.
Outputs whole_truth(const Case& c, const Inputs& inputs);

}  // namespace attest::test
