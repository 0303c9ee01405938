// unfused_bench: how fast the three-kernel baseline is, median of launches after a warm-up, on random inputs.
#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

#include "attest/gpu/cuda_error.h"
#include "attest/gpu/unfused.h"

namespace {

using attest::cuda_check;

constexpr int warm_up = 3, launches = 15;

// Standard normal bf16 values, a block of them over and over.
void fill_normal(std::byte* to, std::int64_t elements) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<std::uint16_t> block(1 << 20);
  for (std::uint16_t& x : block) {
    const float value = normal(random);
    std::uint32_t bits = 0;
    static_assert(sizeof bits == sizeof value);
    std::copy_n(reinterpret_cast<const std::byte*>(&value), sizeof bits, reinterpret_cast<std::byte*>(&bits));
    x = static_cast<std::uint16_t>(bits >> 16);
  }
  for (std::int64_t at = 0; at < elements; at += std::ssize(block))
    cuda_check(
        cudaMemcpy(to + 2 * at, block.data(), static_cast<std::size_t>(2 * std::min(elements - at, std::ssize(block))),
                   cudaMemcpyHostToDevice),
        "cudaMemcpy");
}

attest::TensorRef place(std::byte* data, std::int64_t seqlen, std::int64_t heads, std::int64_t dim) {
  return {data, seqlen * heads * dim, heads * dim, dim};
}

double median_ms(attest::DeviceForward& forward, const attest::Case& c, const attest::DeviceLimits& device) {
  const attest::Problem& p = c.problem;
  const std::int64_t elements = p.batch * p.seqlen_q * p.nheads * p.headdim;
  attest::DeviceMemory memory[5], workspace;
  for (attest::DeviceMemory& tensor : memory) tensor.reserve(static_cast<std::size_t>(2 * elements));
  for (int tensor = 0; tensor < 3; ++tensor) fill_normal(memory[tensor].data(), elements);
  workspace.reserve(forward.workspace_bytes(c, device));
  attest::ForwardArgs args;
  args.q = place(memory[0].data(), p.seqlen_q, p.nheads, p.headdim);
  args.k = place(memory[1].data(), p.seqlen_q, p.nheads, p.headdim);
  args.v = place(memory[2].data(), p.seqlen_q, p.nheads, p.headdim);
  args.o = place(memory[3].data(), p.seqlen_q, p.nheads, p.headdim);
  args.lse = reinterpret_cast<float*>(memory[4].data());
  const attest::Stream stream;
  cudaEvent_t begin = nullptr, end = nullptr;
  cuda_check(cudaEventCreate(&begin), "cudaEventCreate");
  cuda_check(cudaEventCreate(&end), "cudaEventCreate");
  cuda_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  std::vector<float> times;
  for (int n = 0; n < warm_up + launches; ++n) {
    cuda_check(cudaEventRecord(begin, stream.get()), "cudaEventRecord");
    forward.launch(c, args, workspace.data(), stream.get());
    cuda_check(cudaEventRecord(end, stream.get()), "cudaEventRecord");
    cuda_check(cudaEventSynchronize(end), "the kernels");
    float ms = 0;
    cuda_check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    if (n >= warm_up) times.push_back(ms);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::nth_element(times.begin(), times.begin() + launches / 2, times.end());
  return times[launches / 2];
}

}  // namespace

int main() {
  try {
    const attest::DeviceLimits device = attest::open_device();
    const auto forward = attest::make_unfused();
    std::printf("%s, bf16, 16384 tokens, 2048 wide; TFLOP/s counts 4 S S D H B, half of it where causal\n",
                device.name.c_str());
    for (const std::int64_t headdim : {64, 128, 256})
      for (const bool causal : {false, true})
        for (const std::int64_t seqlen : {512, 2048, 4096, 16384}) {
          attest::Case c;
          attest::Problem& p = c.problem;
          p.batch = 16384 / seqlen;
          p.seqlen_q = p.seqlen_k = seqlen;
          p.nheads = p.nheads_k = 2048 / headdim;
          p.headdim = p.headdim_v = headdim;
          p.causal = causal ? attest::Causal::bottom_right : attest::Causal::none;
          const double ms = median_ms(*forward, c, device);
          const double flops =
              4.0 * static_cast<double>(seqlen * seqlen * headdim * p.nheads * p.batch) / (causal ? 2 : 1);
          std::printf("d%-3d %-6s s=%-5d %8.3f ms %6.1f TFLOP/s\n", static_cast<int>(headdim),
                      causal ? "causal" : "full", static_cast<int>(seqlen), ms, flops / ms * 1e-9);
        }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "unfused_bench: %s\n", error.what());
    return 3;
  }
}
