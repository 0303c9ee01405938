// The only truth about masks.
#pragma once
#include <cstdint>

#include "attest/problem/problem.h"

namespace attest {

/// Whether query i of batch entry b sees key j. With off = top-left ? 0 : seqlen_k - seqlen_q:
///   j < seqlen_k and (not causal or j <= i + off) and (right < 0 or j <= i + off + right)
///   and (left < 0 or j >= i + off - left)
bool attends(const Problem& problem, std::int64_t b, std::int64_t i, std::int64_t j);

}  // namespace attest
