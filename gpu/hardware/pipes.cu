#include "attest/hardware/pipes.h"
#include "pipes.cuh"

namespace attest::hardware {
namespace {

constexpr int kRounds = 1024;   // so that a chain's start and its code's first fetch are under a tenth of a per cent
constexpr int kUnrolled = 256;  // instructions of a loop, whose own are one to three in a hundred; the code is near

template <Pipe P, int Chains>
__global__ void __launch_bounds__(512, 1) probe_pipe(float* sink, const float* start, long long* cycles) {
  extern __shared__ __align__(128) std::uint8_t smem[];
  const auto at =
      static_cast<std::uint32_t>(__cvta_generic_to_shared(smem)) + threadIdx.x % 32 / 8 * 128 + (threadIdx.x % 8 * 144);
  float x[Chains][4];
  std::uint32_t u[Chains][4];
  const float a = start[0], b = start[1];
  for (int c = 0; c < Chains; ++c)
    for (int i = 0; i < 4; ++i) x[c][i] = start[2] + static_cast<float>(threadIdx.x), u[c][i] = threadIdx.x * c + i;
  const MmaOperands operands = operands_of(threadIdx.x);
  __syncthreads();
  const long long began = clock64();
#pragma unroll(kUnrolled / Chains)
  for (int round = 0; round < kRounds; ++round)
#pragma unroll
    for (int c = 0; c < Chains; ++c) {
      issue<P, Chains>(x[c], u[c], operands, a, b, at, round);
    }
  float all = 0;
  std::uint32_t bits = 0;
  for (int c = 0; c < Chains; ++c)
    for (int i = 0; i < 4; ++i) all += x[c][i], bits ^= u[c][i];
  const long long ended = clock64();
  sink[threadIdx.x] = all + __uint_as_float(bits);
  if (threadIdx.x % 32 == 0) cycles[threadIdx.x / 32] = ended - began;
}

template <Pipe P, int Chains>
void measure_pipe(std::vector<PipeRate>& rows) {
  constexpr int smem = 8192;
  const DeviceArray<float> sink(512), start(std::vector<float>{1.0F, 0.0F, 0.5F, 0.0F});
  const DeviceArray<long long> cycles(16);
  for (int warps = 1; warps <= 4; ++warps) {
    const double t = longest_of_five(cycles, 4 * warps, [&] {
      probe_pipe<P, Chains><<<1, 128 * warps, smem>>>(sink.data(), start.data(), cycles.data());
    });
    rows.push_back({kPipeNames[static_cast<int>(P)], warps, Chains, t / (kRounds * Chains * warps)});
  }
}

}  // namespace

std::vector<PipeRate> measure_pipes() {
  std::vector<PipeRate> rows;
  measure_pipe<Pipe::ex2, 1>(rows), measure_pipe<Pipe::ex2, 16>(rows);
  measure_pipe<Pipe::fma, 1>(rows), measure_pipe<Pipe::fma, 16>(rows);
  measure_pipe<Pipe::add, 1>(rows), measure_pipe<Pipe::add, 16>(rows);
  measure_pipe<Pipe::max, 1>(rows), measure_pipe<Pipe::max, 16>(rows);
  measure_pipe<Pipe::select, 1>(rows), measure_pipe<Pipe::select, 16>(rows);
  measure_pipe<Pipe::pack, 1>(rows), measure_pipe<Pipe::pack, 16>(rows);
  measure_pipe<Pipe::shuffle, 1>(rows), measure_pipe<Pipe::shuffle, 16>(rows);
  measure_pipe<Pipe::mma_sync, 1>(rows), measure_pipe<Pipe::mma_sync, 2>(rows), measure_pipe<Pipe::mma_sync, 8>(rows);
  measure_pipe<Pipe::ldmatrix, 1>(rows), measure_pipe<Pipe::ldmatrix, 8>(rows);
  measure_pipe<Pipe::ldmatrix_trans, 8>(rows);
  return rows;
}

}  // namespace attest::hardware
