#include "drift_kernels.cuh"

namespace attest::hardware {
namespace {

constexpr int kTileN = 64, kHeaddim = 128, kThreads = 128;
constexpr int kRowBytes = kHeaddim * 2, kTileBytes = kTileN * kRowBytes, kQBytes = 128 * kRowBytes;
constexpr int kSmem = 1024 + kQBytes + 2 * kTileBytes + 24 * 1024;  // so much that no third CTA fits an SM

// Chunk of 16 bytes of a row, so that eight rows' are in different banks.
__device__ std::uint32_t chunk_at(std::uint32_t tile, int row, int chunk) {
  return tile + row * kRowBytes + ((chunk ^ row % 8) << 4);
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

__device__ void copy_tile(std::uint32_t to, const std::uint8_t* from) {
  if (from != nullptr)
#pragma unroll
    for (int i = 0; i < kTileBytes / 16 / kThreads; ++i) {
      const int chunk = i * kThreads + threadIdx.x;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(chunk_at(to, chunk / 16, chunk % 16)),
                   "l"(from + chunk * 16));
    }
  asm volatile("cp.async.commit_group;" ::: "memory");
}
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
}

// A warp has 32 rows: two blocks of 16. V comes while the scores are computed, the next K during the rest.
__global__ void __launch_bounds__(kThreads, 2) probe_drift_mma(DriftArguments a) {
  extern __shared__ __align__(1024) std::uint8_t smem[];
  const auto q = static_cast<std::uint32_t>(__cvta_generic_to_shared(smem));
  const std::uint32_t k = q + kQBytes, v = k + kTileBytes;
  for (int i = threadIdx.x; i < (kQBytes + 2 * kTileBytes) / 2; i += blockDim.x)
    reinterpret_cast<std::uint16_t*>(smem)[i] = 0x3c00 + (i * 2654435761u >> 20 & 0xff);
  DriftLog& log = a.logs[blockIdx.x];
  const long long began = start_together(a);
  const int lane = threadIdx.x % 32, row0 = threadIdx.x / 32 * 32;
  const auto from = [&](int t) { return a.share == 0 ? nullptr : a.tiles + tile_at(a, t, 2 * kTileBytes); };
  const auto ask = [&](int t) {
    if (threadIdx.x == 0) log.asked[t] = static_cast<std::uint32_t>(clock64() - began);
    copy_tile(k, from(t));
  };

  float s[2][kTileN / 8][4], o[2][kHeaddim / 8][4], most[4], sum[4] = {}, scale[4];
  const float c = a.start[0];
  for (float& x : most) x = a.start[1];
  for (auto& block : o)
    for (auto& x : block)
      for (float& y : x) y = a.start[2];
  ask(0);
#pragma unroll 1
  for (int t = 0; t < kDriftTiles; ++t) {
    wait_for_copies();
    if (threadIdx.x == 0) log.asked_v[t] = static_cast<std::uint32_t>(clock64() - began);
    copy_tile(v, a.share == 0 ? nullptr : from(t) + kTileBytes);
    for (auto& block : s)
      for (auto& x : block)
        for (float& y : x) y = 0;
#pragma unroll
    for (int d = 0; d < kHeaddim / 16; ++d) {
      std::uint32_t rows[2][4], keys[4];
#pragma unroll
      for (int b = 0; b < 2; ++b)
        load_matrix<false>(rows[b], chunk_at(q, row0 + b * 16 + lane % 16, 2 * d + lane / 16));
#pragma unroll
      for (int n = 0; n < kTileN / 16; ++n) {
        load_matrix<false>(keys, chunk_at(k, n * 16 + lane % 8 + lane / 16 * 8, 2 * d + lane / 8 % 2));
#pragma unroll
        for (int b = 0; b < 2; ++b) {
          multiply(s[b][2 * n], rows[b], keys[0], keys[1]);
          multiply(s[b][2 * n + 1], rows[b], keys[2], keys[3]);
        }
      }
    }
    wait_for_copies();
    if (t + 1 < kDriftTiles) ask(t + 1);
#pragma unroll
    for (int row = 0; row < 4; ++row) {
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
      std::uint32_t p[2][4], values[4];
#pragma unroll
      for (int b = 0; b < 2; ++b)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          p[b][i] = packed(s[b][2 * n + i / 2][i % 2 * 2], s[b][2 * n + i / 2][i % 2 * 2 + 1]);
#pragma unroll
      for (int d = 0; d < kHeaddim / 16; ++d) {
        load_matrix<true>(values, chunk_at(v, n * 16 + lane % 16, 2 * d + lane / 16));
#pragma unroll
        for (int b = 0; b < 2; ++b) {
          multiply(o[b][2 * d], p[b], values[0], values[1]);
          multiply(o[b][2 * d + 1], p[b], values[2], values[3]);
        }
      }
    }
    if (threadIdx.x == 0) log.ended[t] = static_cast<std::uint32_t>(clock64() - began);
  }
  float all = sum[0] + sum[1] + sum[2] + sum[3];
  for (const auto& block : o)
    for (const auto& x : block)
      for (const float y : x) all += y;
  a.sink[threadIdx.x] = all;
  if (threadIdx.x == 0) read_clocks(log, 1);
}

void launch(int sms, const DriftArguments& a) {
  check(cudaFuncSetAttribute(probe_drift_mma, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem));
  probe_drift_mma<<<2 * sms, kThreads, kSmem>>>(a);
  check(cudaGetLastError());
}

}  // namespace

std::vector<DriftKernel> drift_kernels_mma() {
  return {{"mma_sync", kTileN, kHeaddim, 1, false, 2, kTileBytes, 0, launch}};
}

}  // namespace attest::hardware
