#include <algorithm>
#include <array>

#include "attest/hardware/device.h"
#include "attest/hardware/key_tile.cuh"
#include "merge.h"

namespace attest::hardware {
namespace {

constexpr int kMostSms = 160;
constexpr int kPeriodCycles = 4000;  // from burst to burst: long enough for one to end before the next
constexpr std::uint64_t kCalibrationNs = 150'000;
constexpr std::uint64_t kLeadNs = 20'000;

struct MergeParams {
  short rank[kMostSms] = {};  // by SM id; -1 takes no part
  int skew = 0;
  bool random_skew = false;
  bool lines_in_l2 = true;
  bool bulk = false;
  int readers = 0;
  int copy_bytes = 16;
  int row_bytes = kBurstBytes, row_stride = kBurstBytes, offset = 0;
};

struct SharedState {
  unsigned arrived;
  unsigned turn;
  unsigned long long start_ns;
};

// This SM's clock as a line over the global timer, which all SMs see tick together: the regression over many ticks
// averages out how long after a tick the loop saw it.
struct Clock {
  std::uint64_t origin_ns = 0;
  long long origin_cycles = 0;
  double offset = 0;
  double cycles_a_ns = 0;
  __device__ double at(std::uint64_t ns) const {
    return offset + cycles_a_ns * static_cast<double>(static_cast<long long>(ns - origin_ns));
  }
};

__device__ Clock calibrate() {
  Clock clock;
  clock.origin_ns = global_time_ns();
  clock.origin_cycles = clock64();
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  std::uint64_t last = clock.origin_ns;
  while (last < clock.origin_ns + kCalibrationNs) {
    const std::uint64_t now = global_time_ns();
    const long long cycles = clock64();
    if (now == last) continue;
    last = now;
    const auto x = static_cast<double>(now - clock.origin_ns);
    const auto y = static_cast<double>(cycles - clock.origin_cycles);
    n += 1, sx += x, sy += y, sxx += x * x, sxy += x * y;
  }
  clock.cycles_a_ns = (n * sxy - sx * sy) / (n * sxx - sx * sx);
  clock.offset = (sy - clock.cycles_a_ns * sx) / n;
  return clock;
}

template <int Bytes>
__device__ void copy_rows(const MergeParams& params, const std::uint8_t* buffer, int burst, unsigned to) {
  for (int i = 0; i < kBurstBytes / 32 / Bytes; ++i) {
    const int in_burst = (i * 32 + static_cast<int>(threadIdx.x)) * Bytes;
    const std::int64_t at = static_cast<std::int64_t>(burst) * kBurstBytes + in_burst;
    const std::uint8_t* const from =
        buffer + params.offset + at / params.row_bytes * params.row_stride + at % params.row_bytes;
    if constexpr (Bytes == 16)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + in_burst), "l"(from));
    else
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to + in_burst), "l"(from), "n"(Bytes));
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
}

__device__ void read_burst(const MergeParams& params, const std::uint8_t* buffer, int burst, std::uint8_t* smem,
                           std::uint64_t* barrier, int& phase) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(smem));
  if (!params.bulk) {
    if (params.copy_bytes == 16)
      copy_rows<16>(params, buffer, burst, to);
    else
      copy_rows<8>(params, buffer, burst, to);
    return;
  }
  const std::uint8_t* const from = buffer + static_cast<std::int64_t>(burst) * kBurstBytes;
  const auto bar = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  if (threadIdx.x == 0) copy_bulk(to, from, kBurstBytes, bar);
  wait_for(bar, phase);
  phase ^= 1;
}

__device__ unsigned mixed(unsigned x) {
  x ^= x >> 16, x *= 0x7feb352dU, x ^= x >> 15, x *= 0x846ca68bU;
  return x ^ (x >> 16);
}

__global__ void __launch_bounds__(32, 1)
    probe_merge(MergeParams params, const std::uint8_t* buffer, SharedState* state, double* drift) {
  extern __shared__ __align__(128) std::uint8_t smem[];
  __shared__ std::uint64_t barrier;
  const int rank = params.rank[sm_id()];
  unsigned generation = 0;
  int phase = 0;
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(&barrier))));
  __syncwarp();

  if (rank < 0) return;
  const int bursts = static_cast<int>(kLineSetBytes) / kBurstBytes;
  const auto read = [&](int burst) { read_burst(params, buffer, burst, smem, &barrier, phase); };
  // in turn: all lines, or only one burst past them, which brings their page's translation
  if (threadIdx.x == 0)
    while (*static_cast<volatile unsigned*>(&state->turn) != static_cast<unsigned>(rank)) __nanosleep(500);
  __syncwarp();
  const int first = params.lines_in_l2 ? 0 : bursts;
  const int last = params.lines_in_l2 ? bursts : bursts + 1;
  for (int b = first; b < last; ++b) read(b);
  if (threadIdx.x == 0) atomicAdd(&state->turn, 1);

  const auto readers = static_cast<unsigned>(params.readers);
  grid_barrier(&state->arrived, generation, readers);
  const Clock clock = calibrate();
  grid_barrier(&state->arrived, generation, readers);
  if (rank == 0 && threadIdx.x == 0) state->start_ns = global_time_ns() + kLeadNs;
  grid_barrier(&state->arrived, generation, readers);
  const std::uint64_t start_ns = *static_cast<volatile unsigned long long*>(&state->start_ns);
  const long long start = clock.origin_cycles + static_cast<long long>(clock.at(start_ns));

  for (int b = 0; b < bursts * (params.lines_in_l2 ? kPasses : 1); ++b) {
    const int late = params.random_skew
                         ? static_cast<int>(mixed(b * 997 + rank) % static_cast<unsigned>(params.skew + 1))
                         : rank * params.skew;
    const long long when = start + static_cast<long long>(b) * kPeriodCycles + late;
    while (clock64() < when) {
    }
    read(b % bursts);
  }
  if (threadIdx.x == 0) {
    const Clock again = calibrate();
    drift[sm_id()] =
        again.offset + static_cast<double>(again.origin_cycles - clock.origin_cycles) - clock.at(again.origin_ns);
  }
}

}  // namespace

std::int64_t warm_bytes_an_sm(const MergeRun& run) { return run.lines_in_l2 ? kLineSetBytes : kBurstBytes; }
std::int64_t timed_bytes_an_sm(const MergeRun& run) { return (run.lines_in_l2 ? kPasses : 1) * kLineSetBytes; }

double run_merge(const MergeRun& run, std::uint8_t* buffer) {
  MergeParams params;
  params.skew = run.skew_cycles;
  params.random_skew = run.random_skew;
  params.lines_in_l2 = run.lines_in_l2;
  params.bulk = run.bulk;
  params.copy_bytes = run.copy_bytes;
  params.row_bytes = run.row_bytes, params.row_stride = run.row_stride, params.offset = run.offset;
  params.readers = static_cast<int>(run.sms.size());
  std::fill(std::begin(params.rank), std::end(params.rank), static_cast<short>(-1));
  for (std::size_t i = 0; i < run.sms.size(); ++i) params.rank[run.sms[i]] = static_cast<short>(i);
  int sms = 0;
  check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const DeviceArray<SharedState> state(1);
  const DeviceArray<double> drift(kMostSms);
  check(cudaFuncSetAttribute(probe_merge, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemOneCtaAnSm));
  probe_merge<<<sms, 32, kSmemOneCtaAnSm>>>(params, buffer, state.data(), drift.data());
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
  const std::vector<double> cycles = drift.download();
  double least = 1e30;
  double most = -1e30;
  for (const int sm : run.sms) least = std::min(least, cycles[sm]), most = std::max(most, cycles[sm]);
  return most - least;
}

}  // namespace attest::hardware
