// O = P V / l.
#include "attest/gpu/cuda_error.h"
#include "product.cuh"

namespace attest::unfused {
namespace {

template <class T>
__global__ void __launch_bounds__(num_threads) output(const Call c) {
  const int tiles_n = (c.headdim_v + tile_n - 1) / tile_n, tiles_m = (c.seqlen_q + tile_m - 1) / tile_m;
  const int first_d = static_cast<int>(blockIdx.x % tiles_n) * tile_n;
  const int first_i = static_cast<int>(blockIdx.x / tiles_n % tiles_m) * tile_m;
  const int bh = static_cast<int>(blockIdx.x / tiles_n / tiles_m), b = bh / c.nheads, h = bh % c.nheads;
  const int h_k = h / (c.nheads / c.nheads_k);
  const Lengths n = lengths_of(c, b);
  const int rows = n.queries - first_i, columns = c.headdim_v - first_d;
  if (rows <= 0) return;

  auto sums = multiply<T, Rows::summed_over>(
      rows, columns, n.keys, [&](int r) { return matrix_row<const T>(c, b, h, first_i + r); },
      [&](int r) { return key_row<T>(c, c.args.v, n, b, h_k, r) + first_d; });
  sums.for_each([&](int row, int column, float sum) {
    if (row >= rows || column >= columns) return;
    const int i = first_i + row;
    const float l = c.sums[static_cast<std::int64_t>(bh) * c.seqlen_q + i];
    // Where nothing weighs anything the products are 0, or NaN beside a V that is not finite.
    query_row<T>(c.args.o, n, b, h, i)[first_d + column] = from_float<T>(l == 0 ? sum : sum / l);
  });
}

}  // namespace

void launch_output(const Call& c, Dtype dtype, cudaStream_t stream) {
  const std::int64_t tiles_n = (c.headdim_v + tile_n - 1) / tile_n, tiles_m = (c.seqlen_q + tile_m - 1) / tile_m;
  const std::int64_t tiles = tiles_n * tiles_m * c.batch * c.nheads;
  if (tiles == 0) return;
  with_type(dtype, [&]<class T>(T) { output<T><<<static_cast<unsigned>(tiles), num_threads, 0, stream>>>(c); });
  cuda_check_launch("unfused output");
}

}  // namespace attest::unfused
