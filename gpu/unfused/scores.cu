// S = softmax_scale Q K^T, every pair of a batch entry's queries and keys, masked ones included.
#include "attest/gpu/cuda_error.h"
#include "product.cuh"

namespace attest::unfused {
namespace {

template <class T>
__global__ void __launch_bounds__(num_threads) scores(const Call c) {
  const int tiles_n = (c.seqlen_k + tile_n - 1) / tile_n, tiles_m = (c.seqlen_q + tile_m - 1) / tile_m;
  const int first_j = static_cast<int>(blockIdx.x % tiles_n) * tile_n;
  const int first_i = static_cast<int>(blockIdx.x / tiles_n % tiles_m) * tile_m;
  const int bh = static_cast<int>(blockIdx.x / tiles_n / tiles_m), b = bh / c.nheads, h = bh % c.nheads;
  const int h_k = h / (c.nheads / c.nheads_k);
  const Lengths n = lengths_of(c, b);
  const int rows = n.queries - first_i, columns = n.keys - first_j;
  if (rows <= 0 || columns <= 0) return;

  auto sums = multiply<T, Rows::columns_of_c>(
      rows, columns, c.headdim, [&](int r) { return query_row<const T>(c.args.q, n, b, h, first_i + r); },
      [&](int r) { return key_row<T>(c, c.args.k, n, b, h_k, first_j + r); });
  const int written = (columns + 7) / 8 * 8;  // the softmax reads whole groups; sums past the last key are 0
  sums.for_each([&](int row, int column, float sum) {
    if (row < rows && column < written)
      matrix_row<T>(c, b, h, first_i + row)[first_j + column] = from_float<T>(c.softmax_scale * sum);
  });
}

}  // namespace

void launch_scores(const Call& c, Dtype dtype, cudaStream_t stream) {
  const std::int64_t tiles_n = (c.seqlen_k + tile_n - 1) / tile_n, tiles_m = (c.seqlen_q + tile_m - 1) / tile_m;
  const std::int64_t tiles = tiles_n * tiles_m * c.batch * c.nheads;
  if (tiles == 0) return;
  with_type(dtype, [&]<class T>(T) { scores<T><<<static_cast<unsigned>(tiles), num_threads, 0, stream>>>(c); });
  cuda_check_launch("unfused scores");
}

}  // namespace attest::unfused
