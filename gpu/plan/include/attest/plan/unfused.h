// The shape of attention in three kernels: what a launch of gpu/unfused takes.
#pragma once
#include "attest/problem/problem.h"

namespace attest {

/// Elements from one row of S to the next.
inline std::int64_t unfused_row_stride(const Problem& p) { return (p.seqlen_k + 7) / 8 * 8; }

/// Elements of S, in double: no product of a valid problem's extents need fit 64 bits.
inline double unfused_elements(const Problem& p) {
  return static_cast<double>(p.batch * p.nheads) * static_cast<double>(p.seqlen_q) *
         static_cast<double>(unfused_row_stride(p));
}

/// Whether a grid, whose blocks are numbered in 31 bits, holds one for every tile of every head.
inline bool unfused_fits_a_grid(const Problem& p) {
  const auto heads = static_cast<double>(p.batch * p.nheads), rows = heads * static_cast<double>(p.seqlen_q);
  return unfused_elements(p) / (128.0 * 128) + heads * 4 + rows / 8 <= 0x1p31;
}

}  // namespace attest
