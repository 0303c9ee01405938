// Cases out of nothing: case k of a campaign is a pure function of (seed, generator_version, k).
#pragma once
#include <cstdint>

#include "attest/problem/case.h"

namespace attest {

/// Rises with every change after which some (seed, k) gives another case than before.
inline constexpr std::uint64_t generator_version = 2;

/// How large a case may be.
struct Budget {
  std::int64_t min_work = std::int64_t{1} << 10;
  std::int64_t max_work = std::int64_t{1} << 21;
  std::int64_t max_seqlen = 8192;  // of either sequence, whatever the work allows

  friend bool operator==(const Budget&, const Budget&) = default;
};

/// nheads * (headdim + headdim_v) * the sum of queries * keys over the batch: the multiply-adds of both products
/// without a mask.
std::int64_t work_of(const Problem& problem);

/// A valid case with work_of() <= budget.max_work. The work is drawn first, log-uniformly, and heads and lengths within
/// it, half of them from the values at which attention kernels have been wrong before (tile edges, groups other than
/// nheads_k, seqlen_q above seqlen_k, empty sequences), half of them anywhere. Two in five cases have nothing beside
/// shape, mask and layout, the others one to six of: prefix, documents, softcap, ALiBi, sink, bias, lengths of their
/// own, keys that are not used, pages, splits. No tensor has more than 2^22 elements. Thread safe.
Case generate_case(std::uint64_t seed, std::uint64_t k, const Budget& budget = {});

}  // namespace attest
