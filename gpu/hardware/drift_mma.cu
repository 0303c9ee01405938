#include "drift_kernels.cuh"

namespace attest::hardware {
namespace {

constexpr int kTileN = 64, kTileM = 128;

template <int Headdim, int Warps, int CtasAnSm>
struct Shape {
  static constexpr int kHeaddim = Headdim, kCtasAnSm = CtasAnSm, kThreads = 32 * Warps;
  static constexpr int kBlocks = kTileM / Warps / 16;  // of 16 rows, a warp
  static constexpr int kRowBytes = Headdim * 2, kChunks = kRowBytes / 16;
  static constexpr int kTileBytes = kTileN * kRowBytes, kQBytes = kTileM * kRowBytes;
  static constexpr int kSmem = 1024 + kQBytes + 2 * kTileBytes + 24 * 1024;  // so much that not one CTA more fits an SM
};

// Chunk of 16 bytes of a row, so that eight rows' are in different banks.
template <class S>
__device__ std::uint32_t chunk_at(std::uint32_t tile, int row, int chunk) {
  return tile + row * S::kRowBytes + ((chunk ^ row % 8) << 4);
}

template <bool Transpose>
__device__ void load_matrix(std::uint32_t (&x)[4], std::uint32_t at) {
  if constexpr (Transpose)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at)
                 : "memory");
}

__device__ void multiply(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <class S>
__device__ void copy_tile(std::uint32_t to, const std::uint8_t* from) {
  if (from != nullptr)
#pragma unroll
    for (int i = 0; i < S::kTileBytes / 16 / S::kThreads; ++i) {
      const int chunk = i * S::kThreads + threadIdx.x;
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(chunk_at<S>(to, chunk / S::kChunks, chunk % S::kChunks)),
          "l"(from + chunk * 16));
    }
  asm volatile("cp.async.commit_group;" ::: "memory");
}
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
}

// V comes while the scores are computed, the next K during the rest.
template <class S>
__global__ void __launch_bounds__(S::kThreads, S::kCtasAnSm) probe_drift_mma(DriftArguments a) {
  constexpr int kHeaddim = S::kHeaddim, kBlocks = S::kBlocks, kRows = 2 * kBlocks;
  extern __shared__ __align__(1024) std::uint8_t smem[];
  const auto q = static_cast<std::uint32_t>(__cvta_generic_to_shared(smem));
  const std::uint32_t k = q + S::kQBytes, v = k + S::kTileBytes;
  for (int i = threadIdx.x; i < (S::kQBytes + 2 * S::kTileBytes) / 4; i += blockDim.x)
    reinterpret_cast<std::uint32_t*>(smem)[i] = random_pair(i);
  DriftLog& log = a.logs[blockIdx.x];
  const long long began = start_together(a);
  const int lane = threadIdx.x % 32, row0 = threadIdx.x / 32 * 16 * kBlocks;
  const auto from = [&](int t) { return a.share == 0 ? nullptr : a.tiles + tile_at(a, t, 2 * S::kTileBytes); };
  const auto ask = [&](int t) {
    if (threadIdx.x == 0) log.asked[t] = static_cast<std::uint32_t>(clock64() - began);
    copy_tile<S>(k, from(t));
  };

  float s[kBlocks][kTileN / 8][4], o[kBlocks][kHeaddim / 8][4], most[kRows], sum[kRows] = {}, scale[kRows];
  const float c = a.start[0];
  for (float& x : most) x = a.start[1];
  for (auto& block : o)
    for (auto& x : block)
      for (float& y : x) y = a.start[2];
  ask(0);
#pragma unroll 1
  for (int t = 0; t < drift_tiles; ++t) {
    wait_for_copies();
    if (threadIdx.x == 0) log.asked_v[t] = static_cast<std::uint32_t>(clock64() - began);
    copy_tile<S>(v, a.share == 0 ? nullptr : from(t) + S::kTileBytes);
    for (auto& block : s)
      for (auto& x : block)
        for (float& y : x) y = 0;
#pragma unroll
    for (int d = 0; d < kHeaddim / 16; ++d) {
      std::uint32_t rows[kBlocks][4], keys[4];
#pragma unroll
      for (int b = 0; b < kBlocks; ++b)
        load_matrix<false>(rows[b], chunk_at<S>(q, row0 + b * 16 + lane % 16, 2 * d + lane / 16));
#pragma unroll
      for (int n = 0; n < kTileN / 16; ++n) {
        load_matrix<false>(keys, chunk_at<S>(k, n * 16 + lane % 8 + lane / 16 * 8, 2 * d + lane / 8 % 2));
#pragma unroll
        for (int b = 0; b < kBlocks; ++b) {
          multiply(s[b][2 * n], rows[b], keys[0], keys[1]);
          multiply(s[b][2 * n + 1], rows[b], keys[2], keys[3]);
        }
      }
    }
    wait_for_copies();
    if (t + 1 < drift_tiles) ask(t + 1);
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      float x = most[row];
#pragma unroll
      for (int n = 0; n < kTileN / 8; ++n)
        x = fmaxf(x, fmaxf(s[row / 2][n][row % 2 * 2], s[row / 2][n][row % 2 * 2 + 1]));
      x = fmaxf(x, __shfl_xor_sync(~0u, x, 2));
      x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
      scale[row] = exp2_of((most[row] - x) * c);
      most[row] = x;
      sum[row] *= scale[row];
#pragma unroll
      for (int n = 0; n < kTileN / 8; ++n)
#pragma unroll
        for (int i = row % 2 * 2; i < row % 2 * 2 + 2; ++i) {
          float& y = s[row / 2][n][i];
          y = exp2_of(fmaf(y, c, -x * c));
          sum[row] += y;
        }
#pragma unroll
      for (int n = 0; n < kHeaddim / 8; ++n)
        o[row / 2][n][row % 2 * 2] *= scale[row], o[row / 2][n][row % 2 * 2 + 1] *= scale[row];
    }
#pragma unroll
    for (int n = 0; n < kTileN / 16; ++n) {
      std::uint32_t p[kBlocks][4], values[4];
#pragma unroll
      for (int b = 0; b < kBlocks; ++b)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          p[b][i] = packed(s[b][2 * n + i / 2][i % 2 * 2], s[b][2 * n + i / 2][i % 2 * 2 + 1]);
#pragma unroll
      for (int d = 0; d < kHeaddim / 16; ++d) {
        load_matrix<true>(values, chunk_at<S>(v, n * 16 + lane % 16, 2 * d + lane / 16));
#pragma unroll
        for (int b = 0; b < kBlocks; ++b) {
          multiply(o[b][2 * d], p[b], values[0], values[1]);
          multiply(o[b][2 * d + 1], p[b], values[2], values[3]);
        }
      }
    }
    if (threadIdx.x == 0) log.ended[t] = static_cast<std::uint32_t>(clock64() - began);
  }
  float all = 0;
  for (const float x : sum) all += x;
  for (const auto& block : o)
    for (const auto& x : block)
      for (const float y : x) all += y;
  a.sink[threadIdx.x] = all;
  if (threadIdx.x == 0) read_clock(log.after);
}

template <class S>
void launch(int sms, const DriftArguments& a) {
  check(cudaFuncSetAttribute(probe_drift_mma<S>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kSmem));
  probe_drift_mma<S><<<S::kCtasAnSm * sms, S::kThreads, S::kSmem>>>(a);
  check(cudaGetLastError());
}

template <class S>
DriftKernel kernel_of() {
  return {"mma_sync", kTileN, S::kHeaddim, S::kThreads / 128, false, S::kCtasAnSm, S::kTileBytes, 0, launch<S>};
}

}  // namespace

std::vector<DriftKernel> drift_kernels_mma() {
  return {kernel_of<Shape<128, 4, 2>>(), kernel_of<Shape<128, 8, 1>>(), kernel_of<Shape<192, 8, 1>>()};
}

}  // namespace attest::hardware
