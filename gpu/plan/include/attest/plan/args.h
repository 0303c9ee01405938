// What a forward kernel is handed: pointers, strides and numbers, nothing else.
#pragma once
#include <cstdint>

namespace attest {

/// A tensor in memory. Strides are in elements; the last dimension is contiguous.
struct TensorRef {
  void* data = nullptr;
  std::int64_t batch_stride = 0;
  std::int64_t row_stride = 0;  // from one token to the next
  std::int64_t head_stride = 0;
};

/// A stretch of memory.
struct MemoryRange {
  void* begin = nullptr;
  std::int64_t bytes = 0;
};

struct ForwardArgs {
  TensorRef q;           // [batch, seqlen_q, nheads, headdim]
  TensorRef k;           // [batch, seqlen_k, nheads_k, headdim]
  TensorRef v;           // [batch, seqlen_k, nheads_k, headdim_v]
  TensorRef o;           // [batch, seqlen_q, nheads, headdim_v], written
  float* lse = nullptr;  // [batch, nheads, seqlen_q], packed [nheads, total_q]; contiguous, written

  // Below: null where the case has no use for it.
  // [batch + 1], running sums of lengths from 0. Set: that side is packed, a batch entry begins at row cu_seqlens[b]
  // and batch_stride is 0.
  const std::int32_t* cu_seqlens_q = nullptr;
  const std::int32_t* cu_seqlens_k = nullptr;
  const std::int32_t* seqused_k = nullptr;   // [batch]
  const std::int32_t* page_table = nullptr;  // [batch, pages_per_sequence]; batch_stride of k and v is then a page's
  std::int64_t pages_per_sequence = 0;
  std::int64_t page_size = 0;
  const float* alibi_slopes = nullptr;  // [batch, nheads]
  const float* sink = nullptr;          // [nheads]
  const float* bias = nullptr;          // [batch, nheads, seqlen_q, seqlen_k] by the strides; 0 where it is shared
  std::int64_t bias_batch_stride = 0, bias_head_stride = 0, bias_row_stride = 0;
  const float* q_descale = nullptr;  // [batch, nheads_k]
  const float* k_descale = nullptr;
  const float* v_descale = nullptr;
  const std::int32_t* document_ends = nullptr;  // [num_documents], running sums of the documents' lengths
  std::int64_t num_documents = 0;

  // All that the pointers above point into, with the poison around it, for a kernel that must take it elsewhere; none
  // where the caller does not say.
  const MemoryRange* memory = nullptr;
  std::int64_t num_memory_ranges = 0;
};

/// The gradients' half: of `forward`, o and lse are read.
struct BackwardArgs {
  ForwardArgs forward;
  TensorRef dout;          // as o
  TensorRef dq, dk, dv;    // as q, k, v, but never paged; written
  float* dsink = nullptr;  // [nheads], written where there is a sink
  float* dbias = nullptr;  // as bias, by its strides, every element written where there is a bias
};

}  // namespace attest
