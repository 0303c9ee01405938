// The only truth about masks.
#pragma once
#include <cstdint>

#include "attest/problem/problem.h"

namespace attest {

/// Queries of batch entry b: varlen_q[b], or seqlen_q. Rows past them are outside the logical domain.
std::int64_t queries_of(const Problem& problem, std::int64_t b);

/// Keys of batch entry b that exist: seqused_k[b], else varlen_k[b], else seqlen_k.
std::int64_t keys_of(const Problem& problem, std::int64_t b);

/// off = top-left ? 0 : keys - queries of batch entry b: the diagonal runs through (i, i + off).
std::int64_t diagonal_offset(const Problem& problem, std::int64_t b);

/// Whether query i of batch entry b sees key j. With off as above and doc(x) the document that covers position x:
///   j < keys and doc(i) == doc(j) and (j < prefix or ((not causal or j <= i + off)
///   and (right < 0 or j <= i + off + right) and (left < 0 or j >= i + off - left)))
bool attends(const Problem& problem, std::int64_t b, std::int64_t i, std::int64_t j);

}  // namespace attest
