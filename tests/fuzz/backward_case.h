// Cases that ask for gradients, over every feature of a Problem.
#pragma once
#include "whole_problem.h"

namespace attest::test {

inline Case backward_case(std::uint64_t k, Dtype dtype) {
  Case c = whole_case(k, dtype);
  c.backward = true;
  c.deterministic = k % 3 == 0;
  c.num_splits = 1;
  constexpr Distribution inputs[] = {Distribution::normal, Distribution::large, Distribution::shift,
                                     Distribution::orthogonal_dout};
  c.inputs = inputs[k / 2 % 4];
  // Biases then hold fp32's lowest number, times log2(e) -inf: rows of which it fills a tile are NaN in the forward.
  if (c.inputs == Distribution::large && c.problem.bias != Bias::none) c.inputs = Distribution::normal;
  return c;
}

}  // namespace attest::test
