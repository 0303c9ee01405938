// A forward pass for sm_80 that is only compiled, to learn what the compiler does with its registers: accumulators,
// fragments, softmax state, cp.async addressing, masks and epilogue are those of a real kernel. compile_grid.py gives
// the macros: HEADDIM, TILE_M, TILE_N, WARPS, STAGES, QUERY_IN_REGISTERS, MIN_CTAS.
//
// Q (tile_m x headdim) | K slots | V slots in shared memory, 16-byte chunks swizzled by row; mma.sync m16n8k16, bf16.
#include "skeleton.cuh"

namespace {

constexpr int headdim = HEADDIM, tile_m = TILE_M, tile_n = TILE_N, warps = WARPS, stages = STAGES;
constexpr int threads = warps * 32, m_blocks = tile_m / warps / 16;
constexpr int row_chunks = headdim / 8;  // of 16 bytes
constexpr int query_steps = QUERY_IN_REGISTERS ? headdim / 16 : 1;

// The number of chunks that a XOR keeps within a row of `row_chunks`: 8, or 4 (headdim 32, 96) with two rows a group.
__device__ unsigned swizzled(int row, int chunk) {
  const int x = row_chunks % 8 == 0 ? row & 7 : (row >> 1) & 3;
  return static_cast<unsigned>(row * row_chunks + (chunk ^ x)) * 16;
}

// Rows of a tile to shared memory, 16 bytes a thread; rows past the end are zero-filled.
template <int rows>
__device__ void copy_tile(unsigned smem, const char* global, long long row_stride, int valid_rows) {
  constexpr int lanes = row_chunks % 8 == 0 ? 8 : 4;
  const int row0 = threadIdx.x / lanes, chunk0 = threadIdx.x % lanes;
#pragma unroll
  for (int r = 0; r < rows; r += threads / lanes) {
    const int row = row0 + r;
    if (rows % (threads / lanes) != 0 && row >= rows) break;
#pragma unroll
    for (int chunk = chunk0; chunk < row_chunks; chunk += lanes)
      cp_async(smem + swizzled(row, chunk), global + row * row_stride + chunk * 16, row < valid_rows);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads, MIN_CTAS) forward(const Arguments a) {
  extern __shared__ char shared[];
  const unsigned smem_q = smem_address(shared), smem_k = smem_q + tile_m * headdim * 2;
  constexpr unsigned slot_bytes = tile_n * headdim * 2;
  const unsigned smem_v = smem_k + stages * slot_bytes;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int q_row0 = blockIdx.x * tile_m, head = blockIdx.y, batch = blockIdx.z;
  const char* q = a.q + batch * a.q_batch + head * a.q_head + q_row0 * a.q_row;
  const char* k = a.k + batch * a.k_batch + head / a.group * a.k_head;
  const char* v = a.v + batch * a.v_batch + head / a.group * a.v_head;
  const int warp_row = warp * m_blocks * 16;
  const int diagonal = a.seqlen_k - a.seqlen_q;
  int last = (a.seqlen_k + tile_n - 1) / tile_n;
  if (a.causal) last = min(last, (q_row0 + tile_m + diagonal + tile_n - 1) / tile_n);

  const auto copy = [&](unsigned smem, const char* tensor, long long row_stride, int tile) {
    if (tile >= 0)
      copy_tile<tile_n>(smem + (stages == 1 ? 0 : tile % stages) * slot_bytes, tensor + tile * tile_n * row_stride,
                        row_stride, a.seqlen_k - tile * tile_n);
    cp_async_commit();
  };
  copy_tile<tile_m>(smem_q, q, a.q_row, a.seqlen_q - q_row0);
  copy(smem_k, k, a.k_row, last - 1);
  if (stages > 1) copy(smem_v, v, a.v_row, last - 1);

  float o[m_blocks][headdim / 8][4] = {};
  float maximum[m_blocks][2], sum[m_blocks][2];
  unsigned fragments_q[query_steps][m_blocks][4];
#pragma unroll
  for (int m = 0; m < m_blocks; ++m)
    for (int half = 0; half < 2; ++half) maximum[m][half] = minus_infinity, sum[m][half] = 0;
  const auto load_q = [&](unsigned(&f)[m_blocks][4], int step) {
#pragma unroll
    for (int m = 0; m < m_blocks; ++m)
      ldmatrix(f[m], smem_q + swizzled(warp_row + m * 16 + lane % 16, step * 2 + lane / 16));
  };
  if (QUERY_IN_REGISTERS) {
    if (stages > 1)
      cp_async_wait<1>();
    else
      cp_async_wait<0>();
    __syncthreads();
#pragma unroll
    for (int step = 0; step < query_steps; ++step) load_q(fragments_q[step], step);
  }

#pragma unroll 1
  for (int tile = last - 1; tile >= 0; --tile) {
    const unsigned slot = (stages == 1 ? 0 : tile % stages) * slot_bytes;
    if (stages > 1)
      cp_async_wait<1>();
    else
      cp_async_wait<0>();
    __syncthreads();
    if (stages == 1)
      copy(smem_v, v, a.v_row, tile);
    else
      copy(smem_k, k, a.k_row, tile - 1), copy(smem_v, v, a.v_row, tile - 1);

    float s[m_blocks][tile_n / 8][4] = {};
#pragma unroll
    for (int step = 0; step < headdim / 16; ++step) {
      if (!QUERY_IN_REGISTERS) load_q(fragments_q[0], step);
      const auto& f = fragments_q[QUERY_IN_REGISTERS ? step : 0];
#pragma unroll
      for (int n = 0; n < tile_n / 16; ++n) {
        unsigned b[4];
        ldmatrix(b, smem_k + slot + swizzled(n * 16 + lane % 8 + lane / 16 * 8, step * 2 + lane / 8 % 2));
#pragma unroll
        for (int m = 0; m < m_blocks; ++m) {
          mma(s[m][2 * n], f[m], b[0], b[1]);
          mma(s[m][2 * n + 1], f[m], b[2], b[3]);
        }
      }
    }
    if (stages == 1) {
      cp_async_wait<0>();
      __syncthreads();
      copy(smem_k, k, a.k_row, tile - 1);
    }

    const int row0 = q_row0 + warp_row + lane / 4, key0 = tile * tile_n + lane % 4 * 2;
    if ((tile + 1) * tile_n > a.seqlen_k || (a.causal && (tile + 1) * tile_n > q_row0 + diagonal + 1)) {
#pragma unroll
      for (int m = 0; m < m_blocks; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          int end = a.seqlen_k;
          if (a.causal) end = min(end, row0 + m * 16 + half * 8 + diagonal + 1);
#pragma unroll
          for (int n = 0; n < tile_n / 8; ++n)
#pragma unroll
            for (int i = 0; i < 2; ++i)
              if (key0 + n * 8 + i >= end) s[m][n][2 * half + i] = minus_infinity;
        }
    }
#pragma unroll
    for (int m = 0; m < m_blocks; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        softmax_row<tile_n, headdim>(s[m], o[m], half, maximum[m][half], sum[m][half], a.scale_log2);
    if (stages > 1) {
      cp_async_wait<2>();
      __syncthreads();
    }
#pragma unroll
    for (int step = 0; step < tile_n / 16; ++step) {
      unsigned p[m_blocks][4];
#pragma unroll
      for (int m = 0; m < m_blocks; ++m) pack_step(p[m], s[m][2 * step], s[m][2 * step + 1]);
#pragma unroll
      for (int n = 0; n < headdim / 16; ++n) {
        unsigned b[4];
        ldmatrix_transposed(b, smem_v + slot + swizzled(step * 16 + lane % 16, n * 2 + lane / 16));
#pragma unroll
        for (int m = 0; m < m_blocks; ++m) {
          mma(o[m][2 * n], p[m], b[0], b[1]);
          mma(o[m][2 * n + 1], p[m], b[2], b[3]);
        }
      }
    }
    if (stages == 1) __syncthreads();
  }

  cp_async_wait<0>();
  __syncthreads();
#pragma unroll
  for (int m = 0; m < m_blocks; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = warp_row + m * 16 + half * 8 + lane / 4;
      float total = quad_sum(sum[m][half]);
      const float factor = total == 0 ? 0 : 1 / total;
#pragma unroll
      for (int n = 0; n < headdim / 8; ++n)
        store_shared(shared + swizzled(row, n) + lane % 4 * 4,
                     pack(o[m][n][2 * half] * factor, o[m][n][2 * half + 1] * factor));
      if (lane % 4 == 0 && q_row0 + row < a.seqlen_q)
        a.lse[(static_cast<long long>(batch) * gridDim.y + head) * a.seqlen_q + q_row0 + row] =
            lse_of(maximum[m][half], total, a.scale_log2);
    }
  __syncwarp();
  char* out = a.o + batch * a.q_batch + head * a.q_head + (q_row0 + warp_row) * a.q_row;
#pragma unroll 1
  for (int i = lane; i < m_blocks * 16 * row_chunks; i += 32) {
    const int row = i / row_chunks, chunk = i % row_chunks;
    if (q_row0 + warp_row + row < a.seqlen_q)
      *reinterpret_cast<uint4*>(out + row * a.q_row + chunk * 16) =
          *reinterpret_cast<const uint4*>(shared + swizzled(warp_row + row, chunk));
  }
}
