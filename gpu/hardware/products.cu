#include "attest/hardware/pipes.h"
#include "attest/hardware/wgmma.h"
#include "pipes.cuh"

namespace attest::hardware {
namespace {

enum class Beside { nothing, own_products, products_of_another };
constexpr const char* kBesideNames[] = {"nothing", "own", "other"};

// One warpgroup's instructions while wgmma multiplies 64 x 128 by 128 x 16 for it, or for another warpgroup, or not.
template <Pipe P, Beside B>
__global__ void __launch_bounds__(256, 1) probe_beside(float* sink, const float* start, long long* cycles) {
  constexpr int columns = 128, products = 48, chains = 16, rounds = P == Pipe::ex2 ? 8 : 32;
  extern __shared__ __align__(1024) std::uint8_t smem[];
  const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(smem));
  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
  float d[columns / 2], x[chains][4];
  std::uint32_t u[chains][4];
  const float a = start[0], b = start[1];
  for (float& y : d) y = start[3];
  for (int c = 0; c < chains; ++c)
    for (int i = 0; i < 4; ++i) x[c][i] = start[2] + static_cast<float>(threadIdx.x), u[c][i] = threadIdx.x * c + i;
  long long began = 0, ended = 0, until = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {  // the last is kept
    __syncthreads();
    const long long first = clock64();
    const bool multiplies = B == Beside::own_products ? group == 0 : B == Beside::products_of_another && group == 1;
    if (multiplies) {
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < products; ++i)
        Wgmma<columns, false>::multiply(d, tile_descriptor(base + i % 4 * 32, 16),
                                        tile_descriptor(base + 8192 + i % 4 * 32, 16), 1);
      wgmma_commit();
    }
    if (group == 0) {
      while (clock64() - first < 500) {
      }
      began = clock64();
#pragma unroll 4
      for (int round = 0; round < rounds; ++round)
#pragma unroll
        for (int c = 0; c < chains; ++c) issue<P, chains>(x[c], u[c], MmaOperands{}, a, b, base, round);
      ended = clock64();
    }
    wgmma_wait<0>();
    until = clock64() - first;
  }
  float all = 0;
  std::uint32_t bits = 0;
  for (const float y : d) all += y;
  for (int c = 0; c < chains; ++c)
    for (int i = 0; i < 4; ++i) all += x[c][i], bits ^= u[c][i];
  sink[threadIdx.x] = all + __uint_as_float(bits);
  if (threadIdx.x % 128 == 0) cycles[group * 2] = ended - began, cycles[group * 2 + 1] = until;
}

template <Pipe P, Beside B>
void measure_beside(std::vector<RateBesideProducts>& rows) {
  constexpr int smem = 8192 + 128 * 128 + 1024, instructions = 16 * (P == Pipe::ex2 ? 8 : 32);
  const auto kernel = probe_beside<P, B>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
  const DeviceArray<float> sink(512), start(std::vector<float>{1.0F, 0.0F, 0.5F, 0.0F});
  const DeviceArray<long long> cycles(4);
  const double t =
      longest_of_five(cycles, 1, [&] { kernel<<<1, 256, smem>>>(sink.data(), start.data(), cycles.data()); });
  const std::vector<long long> all = cycles.download();
  rows.push_back({kPipeNames[static_cast<int>(P)], kBesideNames[static_cast<int>(B)], t / instructions,
                  all[B == Beside::products_of_another ? 3 : 1]});
}

template <Pipe P>
void measure_beside(std::vector<RateBesideProducts>& rows) {
  measure_beside<P, Beside::nothing>(rows), measure_beside<P, Beside::own_products>(rows);
  measure_beside<P, Beside::products_of_another>(rows);
}

template <int N, bool Registers, int Products>
__global__ void __launch_bounds__(N > 128 ? 256 : 384, 1) probe_wgmma(float* sink, int rounds, long long* cycles) {
  extern __shared__ __align__(1024) std::uint8_t smem[];
  const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(smem));
  const std::uint32_t a = base + threadIdx.x / 128 * 8192, b = base + 3 * 8192;
  float d[N / 2];
  std::uint32_t from[4] = {0, 0, 0, 0};
  for (float& x : d) x = 0;
  long long began = 0, ended = 0;
  for (int round = 0; round < rounds; ++round) {
    __syncthreads();
    began = clock64();
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < Products; ++i) {
      const std::uint64_t of_b = tile_descriptor(b + i % 4 * 32, 16);
      if constexpr (Registers)
        Wgmma<N, false>::multiply(d, from, of_b, 1);
      else
        Wgmma<N, false>::multiply(d, tile_descriptor(a + i % 4 * 32, 16), of_b, 1);
    }
    wgmma_commit();
    wgmma_wait<0>();
    ended = clock64();
  }
  float all = 0;
  for (const float x : d) all += x;
  sink[threadIdx.x] = all;
  if (threadIdx.x % 128 == 0) cycles[threadIdx.x / 128] = ended - began;
}

template <int N, bool Registers, int Products>
void measure_products(std::vector<ProductsTime>& rows) {
  constexpr int smem = 3 * 8192 + N * 128 + 1024;
  const auto kernel = probe_wgmma<N, Registers, Products>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
  const DeviceArray<float> sink(384);
  const DeviceArray<long long> cycles(3);
  for (int warpgroups = 1; warpgroups <= (N > 128 ? 2 : 3); ++warpgroups) {
    const double t = longest_of_five(cycles, warpgroups,
                                     [&] { kernel<<<1, warpgroups * 128, smem>>>(sink.data(), 3, cycles.data()); });
    rows.push_back({N, Registers ? "registers" : "smem", warpgroups, Products, t});
  }
}

template <int N, bool Registers>
void measure_products(std::vector<ProductsTime>& rows) {
  measure_products<N, Registers, 4>(rows), measure_products<N, Registers, 8>(rows);
  measure_products<N, Registers, Registers ? 16 : 32>(rows);
}

}  // namespace

std::vector<RateBesideProducts> measure_beside_products() {
  std::vector<RateBesideProducts> rows;
  measure_beside<Pipe::ex2>(rows), measure_beside<Pipe::fma>(rows), measure_beside<Pipe::add>(rows);
  measure_beside<Pipe::max>(rows), measure_beside<Pipe::select>(rows), measure_beside<Pipe::pack>(rows);
  measure_beside<Pipe::shuffle>(rows);
  return rows;
}

std::vector<ProductsTime> measure_wgmma() {
  std::vector<ProductsTime> rows;
  measure_products<64, false>(rows), measure_products<64, true>(rows);
  measure_products<96, false>(rows);
  measure_products<128, false>(rows), measure_products<128, true>(rows);
  measure_products<128, false, 128>(rows);
  measure_products<176, false>(rows), measure_products<192, false>(rows);
  return rows;
}

}  // namespace attest::hardware
