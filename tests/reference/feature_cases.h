// Small problems over every feature, with their inputs, drawn by a generator of their own.
#pragma once
#include <array>
#include <random>
#include <string>

#include "attest/problem/case.h"
#include "attest/reference/inputs.h"

namespace attest {

struct FeatureCase {
  Problem problem;
  Inputs inputs;            // dout included
  std::string description;  // the command line of the problem
};

/// Sequences of up to `longest`, of them some empty.
FeatureCase draw_feature_case(std::mt19937_64& random, std::int64_t longest);

/// The same with NaN and Inf in some rows of Q, K, V and the bias that lie within the lengths (8 bits: NaN alone), and
/// scores of -Inf and far below others in some bias.
FeatureCase draw_non_finite_case(std::mt19937_64& random, std::int64_t longest);

/// Standard normal numbers, rounded to bf16.
Tensor random_tensor(std::array<std::int64_t, 4> extents, std::uint64_t seed);

}  // namespace attest
