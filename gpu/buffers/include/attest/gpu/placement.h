// Where the elements of a dense tensor lie in memory under a Layout.
#pragma once
#include <array>
#include <cstdint>

#include "attest/problem/case.h"

namespace attest {

/// Offsets in elements from the tensor's first element: (a, s, h, d) of [batch, seqlen, heads, dim] lies at
/// a * batch_stride + s * row_stride + h * head_stride + d.
struct Placement {
  std::array<std::int64_t, 4> extents{};
  std::int64_t batch_stride = 0;
  std::int64_t row_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t span = 0;  // elements from the first one to the end of the last gap

  std::int64_t offset(std::int64_t a, std::int64_t s, std::int64_t h) const {
    return a * batch_stride + s * row_stride + h * head_stride;
  }
};

/// bshd: a token's heads side by side, row_gap elements after each, seq_gap tokens after each sequence.
/// bhsd: a head's rows one after the other, row_gap elements after each, seq_gap rows after each sequence of each head.
Placement place(const std::array<std::int64_t, 4>& extents, const Layout& layout);

/// Dense [batch, heads, seqlen, 1]: how LSE lies whatever the layout of the others. In extents' own order.
Placement place_dense(const std::array<std::int64_t, 4>& extents);

}  // namespace attest
