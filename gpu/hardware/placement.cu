#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>

#include "attest/hardware/device.h"
#include "attest/hardware/placement.h"

namespace attest::hardware {
namespace {

constexpr int kTestPages = 16;
constexpr int kChains = 3;
constexpr int kAtomicsAChain = 3;
constexpr int kMeasuringSmsASide = 8;
constexpr int kLeastGpc = 16;  // SMs
constexpr std::uint64_t kStartDeadlineNs = 5'000'000;

// The cycles of one atomic, on average over a chain of them in which each needs the one before; the least of a few
// chains. Atomics run at the line's home, wherever copies of it are. The memory holds zeros, which the compiler cannot
// know: adding what was read keeps it waiting for each.
__device__ unsigned atomic_latency(std::uint8_t* line) {
  unsigned least = ~0u;
  for (int chain = 0; chain < kChains; ++chain) {
    unsigned value = 0;
    const long long begin = clock64();
    for (int i = 0; i < kAtomicsAChain; ++i) value = atomicAdd(reinterpret_cast<unsigned*>(line + value), value);
    if (value != 0) return 0;
    least = min(least, static_cast<unsigned>(clock64() - begin) / kAtomicsAChain);
  }
  return least;
}

// latency[sm][page]; the SMs take turns, so that none disturbs another
__global__ void latency_of_every_sm(std::uint8_t* pages, unsigned* latency, unsigned* turn) {
  while (*static_cast<volatile unsigned*>(turn) != blockIdx.x) __nanosleep(200);
  for (int p = 0; p < kTestPages; ++p)
    latency[sm_id() * kTestPages + p] = atomic_latency(pages + static_cast<std::int64_t>(p) * kPageBytes);
  __threadfence();
  atomicAdd(turn, 1);
}

// worker[sm] is the rank of a measuring SM on its side, or -1; latency[page][side]
__global__ void latency_of_every_page(std::uint8_t* buffer, int pages, const int* worker, const int* side,
                                      unsigned* latency) {
  const unsigned sm = sm_id();
  if (worker[sm] < 0) return;
  for (int p = worker[sm]; p < pages; p += kMeasuringSmsASide)
    latency[2 * p + side[sm]] = atomic_latency(buffer + static_cast<std::int64_t>(p) * kPageBytes);
}

__global__ void record_start(int2* starts, unsigned* ticket) {
  if (threadIdx.x != 0) return;
  const unsigned order = atomicAdd(ticket, 1);
  starts[blockIdx.x] = make_int2(static_cast<int>(sm_id()), static_cast<int>(order));
  // nobody leaves before the last has come; the deadline is for a grid that is not resident as a whole
  const std::uint64_t deadline = global_time_ns() + kStartDeadlineNs;
  while (*static_cast<volatile unsigned*>(ticket) < gridDim.x && global_time_ns() < deadline) __nanosleep(200);
}

// A launch of record_start.
struct ClusterLaunch {
  cudaLaunchAttribute attribute{};
  cudaLaunchConfig_t config{};
  ClusterLaunch(int ctas, int cluster, int smem_bytes) {
    check(cudaFuncSetAttribute(record_start, cudaFuncAttributeMaxDynamicSharedMemorySize, smem_bytes));
    check(cudaFuncSetAttribute(record_start, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
    config.gridDim = dim3(ctas);
    config.blockDim = dim3(128);
    config.dynamicSmemBytes = smem_bytes;
    config.attrs = &attribute;
    config.numAttrs = cluster > 1 ? 1 : 0;
  }
  ClusterLaunch(const ClusterLaunch&) = delete;  // config points into it
};

int resident_clusters(int cluster) {
  const ClusterLaunch launch(cluster, cluster, kSmemOneCtaAnSm);
  int count = 0;
  check(cudaOccupancyMaxActiveClusters(&count, record_start, &launch.config));
  return count;
}

int sm_count() {
  int count = 0;
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
  return count;
}

// GPCs as the unions of the SMs that clusters of several sizes ran on.
std::vector<int> gpcs_from_clusters(int sms) {
  std::vector<int> parent(sms);
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](int sm) {
    while (parent[sm] != sm) sm = parent[sm];
    return sm;
  };
  for (const int cluster : {16, 8, 6, 4, 2}) {
    const std::vector<CtaStart> starts =
        observe_dispatch(cluster * resident_clusters(cluster), cluster, kSmemOneCtaAnSm);
    for (std::size_t cta = 0; cta < starts.size(); ++cta) {
      const int a = root(starts[cta].sm);
      const int b = root(starts[cta - cta % static_cast<std::size_t>(cluster)].sm);
      parent[std::max(a, b)] = std::min(a, b);
    }
  }
  // SMs that no large cluster was placed on are taken for one GPC, as merge_pair shows them to be on an H200
  std::vector<int> size(sms);
  for (int sm = 0; sm < sms; ++sm) ++size[root(sm)];
  std::vector<int> gpc(sms);
  int rest = -1;
  for (int sm = 0; sm < sms; ++sm) {
    const bool alone = size[root(sm)] < kLeastGpc;
    if (alone && rest < 0) rest = sm;
    gpc[sm] = alone ? rest : root(sm);
  }
  return gpc;
}

}  // namespace

std::vector<CtaStart> observe_dispatch(int ctas, int cluster, int smem_bytes) {
  const DeviceArray<int2> starts(ctas);
  const DeviceArray<unsigned> ticket(1);
  const ClusterLaunch launch(ctas, cluster, smem_bytes);
  check(cudaLaunchKernelEx(&launch.config, record_start, starts.data(), ticket.data()));
  check(cudaDeviceSynchronize());
  std::vector<CtaStart> result;
  for (const int2& s : starts.download()) result.push_back({s.x, s.y});
  return result;
}

std::vector<SmPlace> locate_sms() {
  const int sms = sm_count();
  const DeviceArray<std::uint8_t> pages(static_cast<std::size_t>(kTestPages) * kPageBytes);
  const DeviceArray<unsigned> latency(static_cast<std::size_t>(sms) * kTestPages);
  const DeviceArray<unsigned> turn(1);
  check(cudaFuncSetAttribute(latency_of_every_sm, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemOneCtaAnSm));
  latency_of_every_sm<<<sms, 1, kSmemOneCtaAnSm>>>(pages.data(), latency.data(), turn.data());
  check(cudaDeviceSynchronize());

  // An SM's latencies to the pages, less their mean: those of the other side have the opposite sign.
  const std::vector<unsigned> cycles = latency.download();
  const auto deviation = [&](int sm, int page) {
    const auto row = cycles.begin() + static_cast<std::ptrdiff_t>(sm) * kTestPages;
    return row[page] - std::accumulate(row, row + kTestPages, 0.0) / kTestPages;
  };
  const std::vector<int> gpc = gpcs_from_clusters(sms);
  std::vector<SmPlace> places(sms);
  int count[2] = {0, 0};
  for (int sm = 0; sm < sms; ++sm) {
    double agreement = 0;
    for (int p = 0; p < kTestPages; ++p) agreement += deviation(0, p) * deviation(sm, p);
    const int side = agreement > 0 ? 0 : 1;
    places[sm] = {.side = side, .rank_of_side = count[side]++, .gpc = gpc[sm]};
  }
  return places;
}

std::vector<double> sides_of_gpcs(const std::vector<SmPlace>& sms) {
  std::map<int, int> side_of_gpc;
  for (const SmPlace& place : sms)
    if (side_of_gpc.try_emplace(place.gpc, place.side).first->second != place.side)
      throw std::runtime_error("SMs of GPC " + std::to_string(place.gpc) + " lie on both sides of L2");
  std::vector<double> sides;
  for (const auto& [gpc, side] : side_of_gpc) sides.push_back(side);
  return sides;
}

std::vector<double> means_of_gpcs(const std::vector<OfSm>& all, const std::vector<SmPlace>& sms) {
  std::map<int, std::vector<double>> of_gpc;
  for (const OfSm& of : all) of_gpc[sms.at(of.sm).gpc].push_back(of.value);
  std::vector<double> means;
  for (const auto& [gpc, values] : of_gpc)
    means.push_back(std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()));
  return means;
}

std::vector<std::uint8_t> page_homes(std::uint8_t* buffer, std::int64_t bytes, const std::vector<SmPlace>& sms) {
  const int pages = static_cast<int>(bytes / kPageBytes);
  std::vector<int> worker(sms.size(), -1);
  std::vector<int> side(sms.size());
  for (std::size_t sm = 0; sm < sms.size(); ++sm) {
    side[sm] = sms[sm].side;
    if (sms[sm].rank_of_side < kMeasuringSmsASide) worker[sm] = sms[sm].rank_of_side;
  }
  const DeviceArray<int> worker_on_device(worker);
  const DeviceArray<int> side_on_device(side);
  const DeviceArray<unsigned> latency(2 * static_cast<std::size_t>(pages));
  check(cudaFuncSetAttribute(latency_of_every_page, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemOneCtaAnSm));
  latency_of_every_page<<<static_cast<unsigned>(sms.size()), 1, kSmemOneCtaAnSm>>>(
      buffer, pages, worker_on_device.data(), side_on_device.data(), latency.data());
  check(cudaDeviceSynchronize());
  const std::vector<unsigned> cycles = latency.download();
  std::vector<std::uint8_t> home(pages);
  for (int p = 0; p < pages; ++p) home[p] = cycles[2 * p] <= cycles[2 * p + 1] ? 0 : 1;
  return home;
}

}  // namespace attest::hardware
