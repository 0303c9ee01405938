#include "attest/hardware/pipes.h"
#include "pipes.cuh"

namespace attest::hardware {
namespace {

constexpr int kChains = 8;

/// A chain's load of four matrices, which something uses.
__device__ void load_matrices(std::uint32_t& bits, std::uint32_t at) {
  std::uint32_t u[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(u[0]), "=r"(u[1]), "=r"(u[2]), "=r"(u[3])
               : "r"(at));
  bits ^= u[0];
}

// Warps 0 to 3 issue instructions of a pipe, and `products` mma.sync before each kChains of them; warps 4 to 7, a
// second one on each scheduler, issue mma.sync alone.
template <Pipe P, int Products>
__global__ void __launch_bounds__(256, 1)
    probe_beside_mma(float* sink, const float* start, int rounds, int rounds_of_products, long long* cycles) {
  extern __shared__ __align__(128) std::uint8_t smem[];
  const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(smem)) + threadIdx.x % 32 * 16;
  float x[kChains][4], d[kChains][4];
  std::uint32_t u[kChains][4];
  const float a = start[0], b = start[1];
  for (int c = 0; c < kChains; ++c)
    for (int i = 0; i < 4; ++i)
      d[c][i] = x[c][i] = start[2] + static_cast<float>(threadIdx.x), u[c][i] = threadIdx.x * c + i;
  const MmaOperands operands = operands_of(threadIdx.x);
  const bool alone = threadIdx.x >= 128;
  __syncthreads();
  const long long began = clock64();
  if (alone) {
    for (int round = 0; round < rounds_of_products; ++round)
#pragma unroll
      for (int c = 0; c < kChains; ++c) multiply(d[c], operands);
  } else {
#pragma unroll 4
    for (int round = 0; round < rounds; ++round)
#pragma unroll
      for (int c = 0; c < kChains; ++c) {
        if (c < Products) multiply(d[c], operands);
        if constexpr (P == Pipe::ldmatrix)
          load_matrices(u[c][0], at + c % 4 * 512);
        else if constexpr (P != Pipe::mma_sync)
          issue<P, kChains>(x[c], u[c], operands, a, b, at, round);
      }
  }
  float all = 0;
  std::uint32_t bits = 0;
  for (int c = 0; c < kChains; ++c)
    for (int i = 0; i < 4; ++i) all += x[c][i] + d[c][i], bits ^= u[c][i];
  sink[threadIdx.x] = all + __uint_as_float(bits);
  if (threadIdx.x % 128 == 0) cycles[threadIdx.x / 128] = clock64() - began;
}

template <Pipe P, int Products>
void measure(std::vector<RateBesideMma>& rows) {
  constexpr int smem = 8192;
  const DeviceArray<float> sink(512), start(std::vector<float>{1.0F, 0.0F, 0.5F, 0.0F});
  const DeviceArray<long long> cycles(2);
  const auto took = [&](int rounds, int rounds_of_products, int whose) {
    std::vector<long long> all;
    for (int i = 0; i < 5; ++i) {
      probe_beside_mma<P, Products>
          <<<1, 256, smem>>>(sink.data(), start.data(), rounds, rounds_of_products, cycles.data());
      check(cudaGetLastError());
      all.push_back(cycles.download()[whose]);
    }
    std::sort(all.begin(), all.end());
    return static_cast<double>(all[2]);
  };
  constexpr int n = 256, longer = 40;
  rows.push_back({P == Pipe::mma_sync ? "nothing" : kPipeNames[static_cast<int>(P)], Products,
                  took(n, 0, 0) / (n * kChains), took(n, n * longer, 0) / (n * kChains),
                  took(n * longer, n, 1) / (n * kChains)});
}

template <Pipe P>
void measure_pipe(std::vector<RateBesideMma>& rows) {
  measure<P, 0>(rows), measure<P, 2>(rows), measure<P, 4>(rows), measure<P, 8>(rows);
}

}  // namespace

std::vector<RateBesideMma> measure_beside_mma() {
  std::vector<RateBesideMma> rows;
  measure_pipe<Pipe::ex2>(rows), measure_pipe<Pipe::fma>(rows), measure_pipe<Pipe::add>(rows);
  measure_pipe<Pipe::max>(rows), measure_pipe<Pipe::pack>(rows), measure_pipe<Pipe::shuffle>(rows);
  measure_pipe<Pipe::ldmatrix>(rows), measure<Pipe::mma_sync, 8>(rows);
  return rows;
}

}  // namespace attest::hardware
