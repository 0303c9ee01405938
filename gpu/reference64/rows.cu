// A CTA a row: scores, softmax, O and LSE, and the bounds and variances of both.
#include "attest/gpu/cuda_error.h"
#include "row_bounds.cuh"
#include "row_forward.cuh"

namespace attest::reference64 {
namespace {

__global__ void __launch_bounds__(num_threads) rows(const RowCall call) {
  __shared__ double o[largest_dim];
  const std::int64_t total = static_cast<std::int64_t>(call.batch) * call.nheads * call.seqlen_q;
  const int strips = (call.seqlen_q + rows_per_strip - 1) / rows_per_strip;
  for (std::int64_t at = blockIdx.x; at < total; at += gridDim.x) {
    const int i = static_cast<int>(at % call.seqlen_q), h = static_cast<int>(at / call.seqlen_q % call.nheads);
    const int b = static_cast<int>(at / call.seqlen_q / call.nheads);
    const int queries = call.queries[b], keys = call.keys[b];
    if (i >= queries) continue;
    const std::int64_t off = call.top_left ? 0 : keys - queries;
    Row row{call,
            b,
            h,
            h / (call.nheads / call.nheads_k),
            i,
            queries,
            keys,
            off,
            call.intervals[b * strips + i / rows_per_strip],
            {}};
    for (int n = 0; n < num_arrays; ++n)
      row.array[n] = call.scratch + (static_cast<std::int64_t>(blockIdx.x) * num_arrays + n) * call.seqlen_k;
    score(row);
    const Softmax x = soften(row);
    __syncthreads();
    output(row, x, o);
    bound(row, x, o);
    __syncthreads();
  }
}

}  // namespace

std::size_t scratch_bytes(int seqlen_k, int num_ctas) {
  return sizeof(double) * num_arrays * static_cast<std::size_t>(seqlen_k) * static_cast<std::size_t>(num_ctas);
}

void launch_rows(const RowCall& call, cudaStream_t stream) {
  if (call.num_ctas == 0) return;
  rows<<<static_cast<unsigned>(call.num_ctas), num_threads, 0, stream>>>(call);
  cuda_check_launch("reference64 rows");
}

}  // namespace attest::reference64
