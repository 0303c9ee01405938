// The tensors of a case as the CTAs of one head of one batch entry see them. What a CTA may touch is what the caller
// gave, not what a wrong plan believes. `Offset` is the kernel's own index * stride, `FirstRow` its
// first_row(cu_seqlens, batch entry).
#pragma once
#include <algorithm>

#include "attest/plan/args.h"
#include "attest/problem/problem.h"
#include "attest/simulator/executor.h"

namespace attest {

struct TensorExtents {
  std::int64_t batch, rows, heads, dim;  // rows: of each batch entry; packed: of all
};

/// Plain, or packed where there are cu_seqlens. `t` as the kernel takes it, `given` as the caller gave it.
template <class FirstRow, class Offset>
HeadView head_view(const TensorRef& t, const TensorRef& given, const std::int32_t* cu_seqlens, FirstRow first_row,
                   std::int64_t b, std::int64_t h, const TensorExtents& e, Offset offset) {
  const bool packed = cu_seqlens != nullptr;
  HeadView head;
  head.base = static_cast<std::uint8_t*>(t.data);
  const std::int64_t first = packed ? first_row(cu_seqlens, b) : 0;
  head.offset = (packed ? offset(first, t.row_stride) : offset(b, t.batch_stride)) + offset(h, t.head_stride);
  head.row_stride = t.row_stride;
  head.head_stride = t.head_stride;
  head.span = (packed ? 0 : (e.batch - 1) * given.batch_stride) + (e.heads - 1) * given.head_stride +
              (e.rows - 1) * given.row_stride + e.dim;
  head.rows = e.rows - first;
  head.columns = static_cast<int>(e.dim);
  return head;
}

/// Rows in the pages that a batch entry's row of args.page_table names. `e.rows` is the longest entry's; `page_size`
/// and `last_page` (last_page_of) as the caller gave them.
template <class Offset>
HeadView paged_view(const TensorRef& t, const TensorRef& given, const ForwardArgs& args, std::int64_t page_size,
                    std::int64_t last_page, std::int64_t b, std::int64_t h, const TensorExtents& e, Offset offset) {
  HeadView head;
  head.base = static_cast<std::uint8_t*>(t.data);
  head.offset = offset(h, t.head_stride);
  head.row_stride = t.row_stride;
  head.span =
      last_page * given.batch_stride + (e.heads - 1) * given.head_stride + (page_size - 1) * given.row_stride + e.dim;
  head.columns = static_cast<int>(e.dim);
  head.pages = args.page_table + b * args.pages_per_sequence;
  head.num_pages = args.pages_per_sequence;
  head.page_size = args.page_size;
  head.page_stride = t.batch_stride;
  return head;
}

/// The last of the pages that hold keys; 0 without pages.
inline std::int64_t last_page_of(const Problem& p, const ForwardArgs& args) {
  std::int64_t last = 0;
  for (std::int64_t b = 0; args.page_table != nullptr && b < p.batch; ++b) {
    const std::int64_t keys = args.seqused_k != nullptr ? args.seqused_k[b] : p.seqlen_k;
    for (std::int64_t i = 0; i < (keys + args.page_size - 1) / args.page_size; ++i)
      last = std::max<std::int64_t>(last, args.page_table[b * args.pages_per_sequence + i]);
  }
  return last;
}

}  // namespace attest
