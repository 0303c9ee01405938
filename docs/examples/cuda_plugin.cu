// A CUDA kernel of one's own, put to the test by
//
//     nvcc -std=c++17 -O2 -Xcompiler -fPIC -shared -gencode arch=compute_80,code=sm_80 -gencode
//     arch=compute_90,code=sm_90
//       -I PREFIX/include cuda_plugin.cu -o libcuda_plugin.so
//     attest doctor --kernel ./libcuda_plugin.so
//     attest fuzz --kernel ./libcuda_plugin.so --time 10s
//
// A warp a query: its lanes take every 32nd key, with an online softmax each, and add up at the end. fp16, fp32 inside.
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <string>

#include "attest/gpu/kernel_adapter.h"

namespace {

constexpr int lanes = 32, most_headdim = 128;

struct Launch {
  attest_tensor q, k, v, o, lse;
  long long batch, nheads, nheads_k, seqlen_q, seqlen_k;
  int headdim, headdim_v;
  long long offset;  // of the diagonal
  bool causal;
  float scale;
};

__device__ __half* row(const attest_tensor& t, long long a, long long b, long long c) {
  return static_cast<__half*>(t.data) + a * t.strides[0] + b * t.strides[1] + c * t.strides[2];
}

__device__ float sum_of_warp(float x) {
  for (int step = lanes / 2; step > 0; step /= 2) x += __shfl_xor_sync(~0U, x, step);
  return x;
}

__global__ void attend(Launch l) {
  const long long n = blockIdx.x, i = n % l.seqlen_q, h = n / l.seqlen_q % l.nheads, b = n / l.seqlen_q / l.nheads;
  const long long h_k = h / (l.nheads / l.nheads_k);
  const int lane = static_cast<int>(threadIdx.x);
  const __half* const q = row(l.q, b, i, h);
  const long long seen = l.causal ? min(l.seqlen_k, max(0LL, i + 1 + l.offset)) : l.seqlen_k;
  float o[most_headdim] = {}, max_score = -INFINITY, sum = 0;
  for (long long j = lane; j < seen; j += lanes) {
    const __half* const k = row(l.k, b, j, h_k);
    float score = 0;
    for (int d = 0; d < l.headdim; ++d) score += __half2float(q[d]) * __half2float(k[d]);
    score *= l.scale;
    const float larger = score <= max_score ? max_score : score;  // a NaN becomes the maximum
    const float base = larger == -INFINITY ? 0 : larger;          // a score of -Inf weighs nothing
    const float rescale = max_score == -INFINITY ? 0 : expf(max_score - base), weight = expf(score - base);
    const __half* const v = row(l.v, b, j, h_k);
    for (int d = 0; d < l.headdim_v; ++d) o[d] = o[d] * rescale + weight * __half2float(v[d]);
    sum = sum * rescale + weight;
    max_score = larger;
  }
  float of_row = max_score;
  for (int step = lanes / 2; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(~0U, of_row, step);
    of_row = of_row != of_row || other <= of_row ? of_row : other;
  }
  const float share = max_score == -INFINITY ? 0 : expf(max_score - of_row);
  const float total = sum_of_warp(sum * share);
  for (int d = 0; d < l.headdim_v; ++d) {
    const float value = sum_of_warp(o[d] * share);  // NaN where a weight of 0 met an infinite V, and 0 times that
    if (lane == 0) row(l.o, b, i, h)[d] = __float2half(total == 0 ? value : value / total);
  }
  if (lane == 0)
    static_cast<float*>(l.lse.data)[b * l.lse.strides[0] + h * l.lse.strides[1] + i * l.lse.strides[2]] =
        total == 0 ? -INFINITY : of_row + logf(total);
}

class WarpARow : public attest::plugin::Kernel {
 public:
  static attest_capability capability() {
    attest_capability record = attest::plugin::plain_capability("warp-a-row", 1U << ATTEST_FP16);
    record.description = "a warp a query, fp32 inside, on CUDA";
    record.device = ATTEST_DEVICE_CUDA;
    record.features = ATTEST_FEATURE_GQA | ATTEST_FEATURE_VALUE_DIM;
    record.causal = 1U << ATTEST_CAUSAL_BOTTOM_RIGHT | 1U << ATTEST_CAUSAL_TOP_LEFT;
    record.arithmetic = ATTEST_ARITHMETIC_FP32;
    record.bitwise |= ATTEST_BITWISE_BATCH | ATTEST_BITWISE_GQA | ATTEST_BITWISE_LAYOUT;
    record.isolates_values = 1;
    return record;
  }

  std::optional<std::string> unsupported(const attest_problem& p) override {
    if (p.headdim_v > most_headdim) return "headdim_v: " + std::to_string(p.headdim_v) + " is above 128";
    if (p.batch * p.nheads * p.seqlen_q > 1LL << 30) return "batch: more rows than a grid has blocks";
    return std::nullopt;
  }

  void forward(const attest_problem& p, const attest_forward& a) override {
    const long long rows = p.batch * p.nheads * p.seqlen_q;
    if (rows == 0) return;
    const long long offset = p.causal == ATTEST_CAUSAL_TOP_LEFT ? 0 : p.seqlen_k - p.seqlen_q;
    const Launch launch{a.q,
                        a.k,
                        a.v,
                        a.o,
                        a.lse,
                        p.batch,
                        p.nheads,
                        p.nheads_k,
                        p.seqlen_q,
                        p.seqlen_k,
                        static_cast<int>(p.headdim),
                        static_cast<int>(p.headdim_v),
                        offset,
                        p.causal != ATTEST_CAUSAL_NONE,
                        static_cast<float>(p.softmax_scale)};
    attend<<<static_cast<unsigned>(rows), lanes, 0, static_cast<cudaStream_t>(a.stream)>>>(launch);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess)
      throw std::runtime_error(std::string("attend: ") + cudaGetErrorString(error));
  }
};

}  // namespace

ATTEST_KERNEL(WarpARow)
