// The clocks of an H200's GPCs while our own forward runs: SMs of one GPC run at one clock, GPCs do not under load.
//
//     gpc_clocks > docs/results/h200-sm/gpc_clocks_first_chip.csv
//
// Of each launch, a GPC's clock over the mean of the GPCs, from readings of each SM's clock and the global timer before
// and after it.
#include <cmath>
#include <cstdio>
#include <map>
#include <vector>

#include "attest/gpu/cuda_error.h"
#include "attest/hardware/device.h"
#include "attest/hardware/placement.h"
#include "attest/sm80/sm80_forward.h"

namespace {

using namespace attest;
using hardware::DeviceArray;

constexpr int kReadings = 32, kLaunches = 3;

struct Reading {
  long long clock;
  std::uint64_t ns;
};

__global__ void read_clocks(Reading* out) {
  if (threadIdx.x != 0) return;
  for (int i = 0; i < kReadings; ++i) {
    const std::uint64_t before = hardware::global_time_ns();
    std::uint64_t now = before;
    while (now == before) now = hardware::global_time_ns();
    out[hardware::sm_id() * kReadings + i] = {clock64(), now};
  }
}

// Numbers between -2 and 2, as bits of bf16.
__global__ void fill(std::uint16_t* out, std::int64_t count, unsigned seed) {
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
    unsigned x = static_cast<unsigned>(i) * 2654435761u ^ seed;
    x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu, x ^= x >> 16;
    out[i] = static_cast<std::uint16_t>(__float_as_uint(static_cast<float>(x) * 0x1p-30F - 2) >> 16);
  }
}

// Cycles a ns of each GPC, by its lowest SM.
std::map<int, double> clocks_of_gpcs(const std::vector<Reading>& before, const std::vector<Reading>& after,
                                     const std::vector<hardware::SmPlace>& sms) {
  std::map<int, double> clocks, counted;
  for (std::size_t sm = 0; sm < sms.size(); ++sm) {
    double cycles = 0, ns = 0;
    for (std::size_t i = sm * kReadings; i < (sm + 1) * kReadings; ++i) {
      cycles += static_cast<double>(after[i].clock - before[i].clock);
      ns += static_cast<double>(after[i].ns - before[i].ns);
    }
    clocks[sms[sm].gpc] += cycles / ns, counted[sms[sm].gpc] += 1;
  }
  for (auto& [gpc, clock] : clocks) clock /= counted[gpc];
  return clocks;
}

void measure(const Case& c, const std::vector<hardware::SmPlace>& sms, const DeviceLimits& device) {
  const Problem& p = c.problem;
  const std::int64_t elements = p.batch * p.seqlen_q * p.nheads * p.headdim;
  DeviceMemory memory[5], workspace;
  for (DeviceMemory& tensor : memory) tensor.reserve(static_cast<std::size_t>(2 * elements));
  const auto tensor = [&](int i) {
    return TensorRef{memory[i].data(), p.seqlen_q * p.nheads * p.headdim, p.nheads * p.headdim, p.headdim};
  };
  for (unsigned i = 0; i < 3; ++i)
    fill<<<1024, 256>>>(reinterpret_cast<std::uint16_t*>(memory[i].data()), elements, i + 1);
  ForwardArgs args;
  args.q = tensor(0), args.k = tensor(1), args.v = tensor(2), args.o = tensor(3);
  args.lse = reinterpret_cast<float*>(memory[4].data());
  const auto forward = make_sm80_forward();
  workspace.reserve(forward->workspace_bytes(c, device));
  const auto count = static_cast<unsigned>(sms.size());
  const DeviceArray<Reading> before(count * kReadings), after(count * kReadings);
  for (int launch = 0; launch < kLaunches; ++launch) {
    cuda_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    read_clocks<<<count, 32, hardware::kSmemOneCtaAnSm>>>(before.data());
    forward->launch(c, args, workspace.data(), nullptr);
    read_clocks<<<count, 32, hardware::kSmemOneCtaAnSm>>>(after.data());
    cuda_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const std::map<int, double> clocks = clocks_of_gpcs(before.download(), after.download(), sms);
    double mean = 0, deviation = 0;
    for (const auto& [gpc, clock] : clocks) mean += clock / static_cast<double>(clocks.size());
    for (const auto& [gpc, clock] : clocks)
      deviation += std::pow(clock / mean - 1, 2) / static_cast<double>(clocks.size());
    std::printf("%lld,%lld,%lld,%lld,%d,%d,%.1f,%.5f", static_cast<long long>(p.batch),
                static_cast<long long>(p.nheads), static_cast<long long>(p.seqlen_q), static_cast<long long>(p.headdim),
                p.causal == Causal::none ? 0 : 1, launch, 1000 * mean, std::sqrt(deviation));
    for (const auto& [gpc, clock] : clocks) std::printf(",%.5f", clock / mean);
    std::printf("\n");
  }
}

}  // namespace

int main() {
  try {
    const DeviceLimits device = open_device();
    const std::vector<hardware::SmPlace> sms = hardware::locate_sms();
    cuda_check(
        cudaFuncSetAttribute(read_clocks, cudaFuncAttributeMaxDynamicSharedMemorySize, hardware::kSmemOneCtaAnSm),
        "cudaFuncSetAttribute");
    std::printf("batch,nheads,seqlen,headdim,causal,launch,mhz,deviation");
    std::map<int, int> sides;
    for (const hardware::SmPlace& sm : sms) sides[sm.gpc] = sm.side;
    for (const auto& [gpc, side] : sides) std::printf(",gpc_%d_side_%d", gpc, side);
    std::printf("\n");
    const struct {
      std::int64_t batch, heads, length, headdim;
      bool causal;
    } calls[] = {{4, 16, 4096, 128, false}, {4, 16, 4096, 128, true}, {1, 16, 16384, 128, false},
                 {32, 16, 512, 128, false}, {4, 32, 4096, 64, false}, {4, 32, 4096, 64, true}};
    for (const auto& call : calls) {
      Case c;
      c.problem.batch = call.batch, c.problem.nheads = c.problem.nheads_k = call.heads;
      c.problem.seqlen_q = c.problem.seqlen_k = call.length;
      c.problem.headdim = c.problem.headdim_v = call.headdim;
      c.problem.dtype = Dtype::bf16;
      c.problem.causal = call.causal ? Causal::bottom_right : Causal::none;
      measure(c, sms, device);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpc_clocks: %s\n", error.what());
    return 1;
  }
}
