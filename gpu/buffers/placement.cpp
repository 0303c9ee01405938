#include "attest/gpu/placement.h"

namespace attest {

Placement place(const std::array<std::int64_t, 4>& extents, const Layout& layout) {
  const auto [batch, seqlen, heads, dim] = extents;
  Placement p;
  p.extents = extents;
  const std::int64_t row = dim + layout.row_gap;
  if (layout.order == Layout::Order::bshd) {
    p.head_stride = row;
    p.row_stride = heads * row;
    p.batch_stride = (seqlen + layout.seq_gap) * p.row_stride;
  } else {
    p.row_stride = row;
    p.head_stride = (seqlen + layout.seq_gap) * row;
    p.batch_stride = heads * p.head_stride;
  }
  p.span = batch * p.batch_stride;
  return p;
}

Placement place_dense(const std::array<std::int64_t, 4>& extents) {
  return {extents, extents[1] * extents[2] * extents[3], extents[2] * extents[3], extents[3],
          extents[0] * extents[1] * extents[2] * extents[3]};
}

}  // namespace attest
