// P = exp(S - max) in place of S, and LSE: a warp a row, which it reads twice. Softcap, ALiBi, bias, mask and sink.
#include "attest/gpu/cuda_error.h"
#include "element.cuh"

namespace attest::unfused {
namespace {

constexpr int warps_per_block = 8;
constexpr int group = 8;  // neighbouring keys a lane

// The keys of row i, and their scores.
struct Row {
  const Call& c;
  int keys, diagonal;  // the last key that a causal row sees
  int first_of_document, end_of_document;
  float slope;
  const float* bias;  // of key 0, or null

  __device__ Row(const Call& call, const Lengths& n, int b, int h, int i)
      : c(call),
        keys(n.keys),
        diagonal(i + (call.top_left ? 0 : n.keys - n.queries)),
        first_of_document(0),
        end_of_document(n.keys),
        slope(0),
        bias(nullptr) {
    for (int d = 0; d < c.args.num_documents; ++d) {
      end_of_document = c.args.document_ends[d];
      if (i < end_of_document) break;
      first_of_document = end_of_document;
    }
    if (c.args.alibi_slopes) slope = c.args.alibi_slopes[b * c.nheads + h];
    if (c.args.bias)
      bias = c.args.bias + b * c.args.bias_batch_stride + h * c.args.bias_head_stride + i * c.args.bias_row_stride;
  }

  __device__ bool sees(int j) const {
    if (j >= keys || j < first_of_document || j >= end_of_document) return false;
    if (j < c.prefix) return true;
    return !(c.causal && j > diagonal) && !(c.right >= 0 && j > diagonal + c.right) &&
           !(c.left >= 0 && j < diagonal - c.left);
  }

  __device__ float score(int j, float s) const {
    if (c.softcap > 0) s = c.softcap * tanhf(s / c.softcap);
    if (c.args.alibi_slopes) s -= slope * static_cast<float>(abs(diagonal - j));
    return bias ? s + bias[j] : s;
  }
};

template <class T>
struct alignas(group * sizeof(T)) Group {
  T elements[group];
};

__device__ float largest_of_warp(float x) {
  for (int lanes = 16; lanes > 0; lanes /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, lanes));
  return x;
}

__device__ float sum_of_warp(float x) {
  for (int lanes = 16; lanes > 0; lanes /= 2) x += __shfl_xor_sync(~0u, x, lanes);
  return x;
}

template <class T>
__global__ void __launch_bounds__(32 * warps_per_block) softmax(const Call c) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * warps_per_block + threadIdx.x / 32;
  const int i = static_cast<int>(index % c.seqlen_q);
  const std::int64_t bh = index / c.seqlen_q;
  const int b = static_cast<int>(bh / c.nheads), h = static_cast<int>(bh % c.nheads);
  if (b >= c.batch) return;
  const Lengths n = lengths_of(c, b);
  if (i >= n.queries) return;
  const Row row(c, n, b, h, i);
  T* const matrix = matrix_row<T>(c, b, h, i);
  const int first = static_cast<int>(threadIdx.x % 32) * group;

  const float sink = c.args.sink ? c.args.sink[h] : -INFINITY;
  float max = -INFINITY;
  for (int j = first; j < n.keys; j += 32 * group) {
    const auto s = *reinterpret_cast<const Group<T>*>(matrix + j);
    for (int e = 0; e < group; ++e)
      if (row.sees(j + e)) max = fmaxf(max, row.score(j + e, to_float(s.elements[e])));
  }
  max = fmaxf(largest_of_warp(max), sink);  // passes over NaN, whose exponential brings it back
  if (max == -INFINITY) max = 0;            // nothing weighs anything

  float sum = 0;
  for (int j = first; j < n.keys; j += 32 * group) {
    auto s = *reinterpret_cast<const Group<T>*>(matrix + j);
    for (int e = 0; e < group; ++e) {
      const float p = row.sees(j + e) ? __expf(row.score(j + e, to_float(s.elements[e])) - max) : 0;
      sum += p;
      s.elements[e] = from_float<T>(p);
    }
    *reinterpret_cast<Group<T>*>(matrix + j) = s;
  }
  sum = sum_of_warp(sum) + (c.args.sink ? __expf(sink - max) : 0);
  if (threadIdx.x % 32 != 0) return;
  c.sums[index] = sum;
  const std::int64_t at = c.args.cu_seqlens_q ? h * c.total_q + n.first_q + i : index;
  c.args.lse[at] = sum == 0 ? -INFINITY : max + logf(sum);
}

}  // namespace

void launch_softmax(const Call& c, Dtype dtype, cudaStream_t stream) {
  const std::int64_t rows = static_cast<std::int64_t>(c.batch) * c.nheads * c.seqlen_q;
  if (rows == 0) return;
  const auto blocks = static_cast<unsigned>((rows + warps_per_block - 1) / warps_per_block);
  with_type(dtype, [&]<class T>(T) { softmax<T><<<blocks, 32 * warps_per_block, 0, stream>>>(c); });
  cuda_check_launch("unfused softmax");
}

}  // namespace attest::unfused
