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

struct ForwardArgs {
  TensorRef q;           // [batch, seqlen_q, nheads, headdim]
  TensorRef k;           // [batch, seqlen_k, nheads_k, headdim]
  TensorRef v;           // [batch, seqlen_k, nheads_k, headdim_v]
  TensorRef o;           // [batch, seqlen_q, nheads, headdim_v], written
  float* lse = nullptr;  // [batch, nheads, seqlen_q], contiguous, written
};

}  // namespace attest
