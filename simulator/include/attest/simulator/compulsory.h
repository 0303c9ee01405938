// What a case costs whatever the kernel: visible pairs, floating-point operations, and the bytes that must cross the
// memory bus once. Closed forms over the key interval of a query where there is one interval, else a sum over rows;
// written apart from the kernels' own key ranges.
#pragma once
#include <cstdint>
#include <vector>

#include "attest/problem/problem.h"

namespace attest {

struct CompulsoryBytes {
  // Q rows that see a key, K and V rows that some query sees, and what they see of a bias (fp32), once each
  std::int64_t read = 0;
  std::int64_t write = 0;  // O and LSE
  std::int64_t total() const { return read + write; }
};
CompulsoryBytes compulsory_bytes(const Problem& problem);

/// (query, key) pairs that the mask lets through, over all batches and heads.
double visible_pairs(const Problem& problem);

/// (query, key) pairs of the whole rectangles.
double all_pairs(const Problem& problem);

/// Batch entries by their lengths.
struct Lengths {
  std::int64_t queries = 0, keys = 0;  // of an entry
  std::int64_t entries = 0;            // that have these
};
std::vector<Lengths> lengths_of(const Problem& problem);

/// 2 (headdim + headdim_v) for each pair: multiply and add, in Q K^T and P V. Softmax is not in it.
double flops_of_pairs(const Problem& problem, double pairs);

}  // namespace attest
