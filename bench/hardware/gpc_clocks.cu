// The clocks of an H200's GPCs while our own forward runs: SMs of one GPC run at one clock, GPCs do not under load.
//
//     gpc_clocks > docs/results/h200-sm/gpc_clocks_first_chip.csv
//
// Of each launch, a GPC's clock over the mean of the GPCs, from readings of each SM's clock and the global timer before
// and after it.
#include <cstdio>
#include <map>
#include <numeric>
#include <vector>

#include "attest/gpu/cuda_error.h"
#include "attest/hardware/device.h"
#include "attest/hardware/placement.h"
#include "attest/hardware/random_numbers.h"
#include "attest/hardware/sm_clock.h"
#include "attest/simulator/calibration.h"
#include "attest/sm80/sm80_forward.h"

namespace {

using namespace attest;
using hardware::DeviceArray;

constexpr int kLaunches = 3;

__global__ void read_clocks(hardware::ClockReadings* of_sms) {
  if (threadIdx.x == 0) hardware::read_clock(of_sms[hardware::sm_id()]);
}

void measure(const Case& c, const std::vector<hardware::SmPlace>& sms, const DeviceLimits& device) {
  const Problem& p = c.problem;
  const std::int64_t elements = p.batch * p.seqlen_q * p.nheads * p.headdim;
  DeviceMemory memory[5], workspace;
  for (DeviceMemory& tensor : memory) tensor.reserve(static_cast<std::size_t>(2 * elements));
  const auto tensor = [&](int i) {
    return TensorRef{memory[i].data(), p.seqlen_q * p.nheads * p.headdim, p.nheads * p.headdim, p.headdim};
  };
  for (int i = 0; i < 3; ++i)
    hardware::fill_with_random_pairs(reinterpret_cast<std::uint32_t*>(memory[i].data()), elements / 2,
                                     i * elements / 2);
  ForwardArgs args;
  args.q = tensor(0), args.k = tensor(1), args.v = tensor(2), args.o = tensor(3);
  args.lse = reinterpret_cast<float*>(memory[4].data());
  const auto forward = make_sm80_forward();
  workspace.reserve(forward->workspace_bytes(c, device));
  const auto count = static_cast<unsigned>(sms.size());
  const DeviceArray<hardware::ClockReadings> before(count), after(count);
  for (int launch = 0; launch < kLaunches; ++launch) {
    cuda_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    read_clocks<<<count, 32, hardware::kSmemOneCtaAnSm>>>(before.data());
    forward->launch(c, args, workspace.data(), nullptr);
    read_clocks<<<count, 32, hardware::kSmemOneCtaAnSm>>>(after.data());
    cuda_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const std::vector<hardware::ClockReadings> first = before.download(), last = after.download();
    std::vector<hardware::OfSm> clocks;
    for (unsigned sm = 0; sm < count; ++sm) clocks.push_back({sm, 1000 * hardware::cycles_per_ns(first[sm], last[sm])});
    const std::vector<double> mhz = hardware::means_of_gpcs(clocks, sms);
    const double mean = std::accumulate(mhz.begin(), mhz.end(), 0.0) / static_cast<double>(mhz.size());
    const GpcClocks of_gpcs = gpc_clocks_of({mhz});
    std::printf("%lld,%lld,%lld,%lld,%d,%d,%.1f,%.5f", static_cast<long long>(p.batch),
                static_cast<long long>(p.nheads), static_cast<long long>(p.seqlen_q), static_cast<long long>(p.headdim),
                p.causal == Causal::none ? 0 : 1, launch, mean, of_gpcs.deviation);
    for (const double over_mean : of_gpcs.over_mean) std::printf(",%.5f", over_mean);
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
