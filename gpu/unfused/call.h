// What the three kernels are launched with.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

#include "attest/plan/args.h"
#include "attest/problem/dtype.h"

namespace attest::unfused {

struct Call {
  ForwardArgs args;
  int batch, nheads, nheads_k;
  int seqlen_q, seqlen_k;  // the longest of all batch entries
  int headdim, headdim_v;
  std::int64_t total_q;  // rows of a packed LSE
  float softmax_scale, softcap;
  bool causal, top_left;
  int left, right;  // -1: unlimited
  int prefix;
  void* matrix;                // [batch, nheads, seqlen_q, matrix_stride]: S, and then P in its place
  std::int64_t matrix_stride;  // seqlen_k in whole groups of 8
  float* sums;                 // [batch, nheads, seqlen_q]: l
};

/// One kernel each, on `stream`. Throw CudaError.
void launch_scores(const Call& call, Dtype dtype, cudaStream_t stream);
void launch_softmax(const Call& call, Dtype dtype, cudaStream_t stream);
void launch_output(const Call& call, Dtype dtype, cudaStream_t stream);

}  // namespace attest::unfused
