// The element types, and where rows of the tensors lie.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <stdexcept>

#include "call.h"

namespace attest::unfused {

__device__ inline float to_float(__half x) { return __half2float(x); }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline float to_float(float x) { return x; }

template <class T>
__device__ T from_float(float x);
template <>
__device__ inline __half from_float<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}

/// Calls body(T{}) for the type of `dtype`.
template <class Body>
void with_type(Dtype dtype, const Body& body) {
  switch (dtype) {
    case Dtype::fp16:
      return body(__half{});
    case Dtype::bf16:
      return body(__nv_bfloat16{});
    case Dtype::fp32:
      return body(float{});
    default:
      throw std::logic_error("unfused: a dtype that it refuses");
  }
}

/// A batch entry's lengths, as the device has them.
struct Lengths {
  int queries, keys;
  std::int64_t first_q, first_k;  // rows of packed tensors before its own
};

__device__ inline Lengths lengths_of(const Call& c, int b) {
  Lengths n{c.seqlen_q, c.seqlen_k, 0, 0};
  if (c.args.cu_seqlens_q) {
    n.first_q = c.args.cu_seqlens_q[b];
    n.queries = c.args.cu_seqlens_q[b + 1] - c.args.cu_seqlens_q[b];
  }
  if (c.args.cu_seqlens_k) {
    n.first_k = c.args.cu_seqlens_k[b];
    n.keys = c.args.cu_seqlens_k[b + 1] - c.args.cu_seqlens_k[b];
  }
  if (c.args.seqused_k) n.keys = c.args.seqused_k[b];
  return n;
}

/// Row i of batch entry b in Q or O.
template <class T>
__device__ T* query_row(const TensorRef& t, const Lengths& n, int b, int h, int i) {
  return static_cast<T*>(t.data) + b * t.batch_stride + (n.first_q + i) * t.row_stride + h * t.head_stride;
}

/// Row j of batch entry b in K or V, through the page table where there is one.
template <class T>
__device__ const T* key_row(const Call& c, const TensorRef& t, const Lengths& n, int b, int h_k, int j) {
  const T* const head = static_cast<const T*>(t.data) + h_k * t.head_stride;
  if (c.args.page_table == nullptr) return head + b * t.batch_stride + (n.first_k + j) * t.row_stride;
  const std::int64_t page = c.args.page_table[b * c.args.pages_per_sequence + j / c.args.page_size];
  return head + page * t.batch_stride + j % c.args.page_size * t.row_stride;
}

/// Row i of S or P.
template <class T>
__device__ T* matrix_row(const Call& c, int b, int h, int i) {
  return static_cast<T*>(c.matrix) + ((static_cast<std::int64_t>(b) * c.nheads + h) * c.seqlen_q + i) * c.matrix_stride;
}

}  // namespace attest::unfused
