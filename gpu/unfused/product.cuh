// A tile of C = A B by one CTA: both operands through shared memory, sums in fp32. Tensor cores for 16-bit elements,
// plain multiply-adds for fp32.
#pragma once
#include <mma.h>

#include "element.cuh"

namespace attest::unfused {

inline constexpr int tile_m = 128, tile_n = 128, tile_k = 32, num_threads = 256;

/// How B lies in memory: its rows are C's columns (K^T), or its rows are summed over (V).
enum class Rows { columns_of_c, summed_over };

/// Copies num_rows x num_columns of at most rows x columns to shared memory and zeros behind them. row_of(r) points at
/// element 0 of row r. 16 bytes at a time where they lie on their boundary, else one by one.
template <int rows, int columns, int stride, class T, class RowOf>
__device__ void load_tile(T* tile, int num_rows, int num_columns, const RowOf& row_of) {
  constexpr int group = 16 / sizeof(T), groups = columns / group;
  for (int at = threadIdx.x; at < rows * groups; at += num_threads) {
    const int r = at / groups, c = at % groups * group;
    T* const to = tile + r * stride + c;
    const T* const from = r < num_rows && c < num_columns ? row_of(r) + c : nullptr;
    if (from && c + group <= num_columns && reinterpret_cast<std::uintptr_t>(from) % 16 == 0) {
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    } else {
      for (int e = 0; e < group; ++e) to[e] = from && c + e < num_columns ? from[e] : from_float<T>(0);
    }
  }
}

/// Sums of a tile, 8 warps by 4 x 2 of 32 x 64 each.
template <class T>
class Sums {
 public:
  __device__ Sums() {
    for (auto& row : sums_)
      for (auto& sum : row) nvcuda::wmma::fill_fragment(sum, 0.0f);
  }

  template <Rows b_rows, int stride_a, int stride_b>
  __device__ void add(const T* a, const T* b) {
    using namespace nvcuda::wmma;
    using Order = std::conditional_t<b_rows == Rows::columns_of_c, col_major, row_major>;
    for (int k = 0; k < tile_k; k += step) {
      fragment<matrix_a, step, step, step, T, row_major> left[2];
      for (int i = 0; i < 2; ++i) load_matrix_sync(left[i], a + (first_row() + i * step) * stride_a + k, stride_a);
      for (int j = 0; j < 4; ++j) {
        fragment<matrix_b, step, step, step, T, Order> right;
        const int n = first_column() + j * step;
        load_matrix_sync(right, b + (b_rows == Rows::columns_of_c ? n * stride_b + k : k * stride_b + n), stride_b);
        for (int i = 0; i < 2; ++i) mma_sync(sums_[i][j], left[i], right, sums_[i][j]);
      }
    }
  }

  /// store(row, column, sum) for every element of the tile.
  template <class Store>
  __device__ void for_each(const Store& store) {
    __shared__ __align__(32) float staging[num_threads / 32][step * step];
    float* const mine = staging[threadIdx.x / 32];
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 4; ++j) {
        nvcuda::wmma::store_matrix_sync(mine, sums_[i][j], step, nvcuda::wmma::mem_row_major);
        __syncwarp();
        for (int e = threadIdx.x % 32; e < step * step; e += 32)
          store(first_row() + i * step + e / step, first_column() + j * step + e % step, mine[e]);
        __syncwarp();
      }
  }

 private:
  static constexpr int step = 16;
  __device__ static int first_row() { return threadIdx.x / 64 * 32; }
  __device__ static int first_column() { return threadIdx.x / 32 % 2 * 64; }
  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, step, step, step, float> sums_[2][4];
};

/// 16 x 16 threads with every 16th row and column each.
template <>
class Sums<float> {
 public:
  template <Rows b_rows, int stride_a, int stride_b>
  __device__ void add(const float* a, const float* b) {
    for (int k = 0; k < tile_k; ++k) {
      float left[8], right[8];
      for (int i = 0; i < 8; ++i) left[i] = a[(row() + 16 * i) * stride_a + k];
      for (int j = 0; j < 8; ++j) {
        const int n = column() + 16 * j;
        right[j] = b_rows == Rows::columns_of_c ? b[n * stride_b + k] : b[k * stride_b + n];
      }
      for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) sums_[i][j] = fmaf(left[i], right[j], sums_[i][j]);
    }
  }

  template <class Store>
  __device__ void for_each(const Store& store) {
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < 8; ++j) store(row() + 16 * i, column() + 16 * j, sums_[i][j]);
  }

 private:
  __device__ static int row() { return threadIdx.x / 16; }
  __device__ static int column() { return threadIdx.x % 16; }
  float sums_[8][8] = {};
};

/// The tile of A B whose rows are `rows`, columns `columns` and sums over `depth` elements, all of these counted from
/// the tile's first. a_row(r, k) points at element k of A's row r; b_row(n, k) or b_row(k, n), by b_rows, at an element
/// of B.
template <class T, Rows b_rows, class ARow, class BRow>
__device__ Sums<T> multiply(int rows, int columns, int depth, const ARow& a_row, const BRow& b_row) {
  constexpr int pad = 16 / sizeof(T);  // which keeps rows on 16 bytes and spreads them over the banks
  constexpr int stride_a = tile_k + pad, stride_b = (b_rows == Rows::columns_of_c ? tile_k : tile_n) + pad;
  constexpr int rows_b = b_rows == Rows::columns_of_c ? tile_n : tile_k;
  __shared__ __align__(32) T a[tile_m * stride_a];
  __shared__ __align__(32) T b[rows_b * stride_b];
  Sums<T> sums;
  for (int k = 0; k < depth; k += tile_k) {
    load_tile<tile_m, tile_k, stride_a>(a, rows, depth - k, [&](int r) { return a_row(r) + k; });
    if constexpr (b_rows == Rows::columns_of_c)
      load_tile<tile_n, tile_k, stride_b>(b, columns, depth - k, [&](int n) { return b_row(n) + k; });
    else
      load_tile<tile_k, tile_n, stride_b>(b, depth - k, columns, [&](int r) { return b_row(k + r); });
    __syncthreads();
    sums.template add<b_rows, stride_a, stride_b>(a, b);
    __syncthreads();
  }
  return sums;
}

}  // namespace attest::unfused
