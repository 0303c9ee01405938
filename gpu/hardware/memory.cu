#include <algorithm>
#include <bit>
#include <vector>

#include "attest/hardware/device.h"
#include "attest/hardware/memory.h"
#include "attest/ptx/cp_async.cuh"

namespace attest::hardware {
namespace {

constexpr int kLineWords = 32, kSteps = 4096, kThreads = 512, kCtasAnSm = 2, kInFlight = 8;
constexpr std::int64_t kMiB = 1 << 20;

__global__ void probe_smem_latency(long long* cycles, int* sink) {
  __shared__ int next[1024];
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) next[i] = (i + 33) % 1024;
  __syncthreads();
  if (threadIdx.x != 0) return;
  int at = 0;
  const long long began = clock64();
  for (int i = 0; i < kSteps; ++i) at = next[at];
  *cycles = clock64() - began;
  *sink = at;
}

/// A ring of 2^n lines for each CTA, one after the other, each in the order of a linear congruential generator of full
/// period (Knuth: odd increment, a multiplier of 1 modulo 4).
__global__ void write_rings(unsigned* data, unsigned lines, unsigned rings) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < lines * rings; i += gridDim.x * blockDim.x)
    data[static_cast<std::int64_t>(i) * kLineWords] = (i % lines * 1664525U + 1013904223U) & (lines - 1);
}

/// Follows a CTA's ring of lines, whose first words say which is next; the second of two walks is timed.
__global__ void probe_latency(const unsigned* data, unsigned lines, long long* cycles, unsigned* sink) {
  const unsigned* const ring = data + static_cast<std::int64_t>(blockIdx.x) * lines * kLineWords;
  unsigned at = 0;
  long long began = 0;
  for (int walk = 0; walk < 2; ++walk) {
    began = clock64();
    for (unsigned i = 0; i < lines; ++i) at = __ldcg(ring + static_cast<std::int64_t>(at) * kLineWords);
  }
  cycles[blockIdx.x] = clock64() - began;
  sink[blockIdx.x] = at;
}

constexpr int kGroups = 8, kApart = (4096 + 128) / 4;  // words from line to line

/// A warp loads `Lines` lines, each of another page, and waits for all of them; eight times, of zeros.
template <int Lines>
__global__ void probe_groups(const std::uint32_t* data, std::uint32_t* sink, long long* cycles) {
  std::uint32_t x = threadIdx.x;
  const std::uint32_t* at = data + static_cast<std::int64_t>(blockIdx.x) * kGroups * Lines * kApart;
  const long long began = clock64();
#pragma unroll 1
  for (int group = 0; group < kGroups; ++group) {
    std::uint32_t loaded[Lines];
#pragma unroll
    for (int i = 0; i < Lines; ++i) loaded[i] = __ldg(at + x + static_cast<std::int64_t>(i) * kApart);
#pragma unroll
    for (int i = 0; i < Lines; ++i) x += loaded[i];
    at += Lines * kApart;
  }
  const long long took = clock64() - began;
  if (threadIdx.x == 0) cycles[blockIdx.x] = took;
  sink[threadIdx.x] = x;
}

/// Where the reads lie that a thread has under way together.
enum class Reads { apart, near };  // a row of all CTAs' reads from each other, or a row of its own CTA's

/// All of `bytes` by every round, a stretch of it by each CTA; the stretches move on so that no SM reads its own again.
template <Reads reads>
__global__ void __launch_bounds__(kThreads)
    probe_read(const uint4* data, std::int64_t bytes, int rounds, unsigned* sink) {
  constexpr int of_cta = reads == Reads::near ? kInFlight * kThreads : kThreads;
  const std::int64_t chunks = bytes / 16, all = static_cast<std::int64_t>(gridDim.x) * of_cta;
  const std::int64_t stride = reads == Reads::near ? kThreads : all;
  unsigned mixed = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::int64_t first = (blockIdx.x + round * 17) % gridDim.x * static_cast<std::int64_t>(of_cta) + threadIdx.x;
    for (std::int64_t i = first; i < chunks; i += kInFlight * kThreads * static_cast<std::int64_t>(gridDim.x)) {
      uint4 x[kInFlight];
#pragma unroll
      for (int j = 0; j < kInFlight; ++j) x[j] = i + j * stride < chunks ? __ldcg(data + i + j * stride) : uint4{};
#pragma unroll
      for (int j = 0; j < kInFlight; ++j) mixed ^= x[j].x ^ x[j].y ^ x[j].z ^ x[j].w;
    }
  }
  if (mixed == 1) *sink = mixed;  // the data are zeros
}

/// All of `bytes` as often as there are rounds, dealt out to the CTAs in turn: copies to shared memory of 16 bytes a
/// thread, as attention kernels read K and V.
__global__ void __launch_bounds__(kThreads) probe_copy(const uint4* data, std::int64_t bytes, int rounds) {
  constexpr int groups = 5;  // under way: 40 KB
  __shared__ uint4 shared[groups * kThreads];
  const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared + threadIdx.x));
  const std::int64_t chunks = bytes / (16 * kThreads);
  const auto of_cta = static_cast<int>((chunks * rounds - blockIdx.x + gridDim.x - 1) / gridDim.x);
  std::int64_t chunk = blockIdx.x % chunks;
  for (int i = 0, slot = 0; i < of_cta; ++i) {
    ptx::wait_group(groups - 1);
    ptx::copy_async_16(to + slot * 16 * kThreads, data + chunk * kThreads + threadIdx.x);
    ptx::commit_group();
    slot = slot == groups - 1 ? 0 : slot + 1;
    for (chunk += gridDim.x; chunk >= chunks;) chunk -= chunks;
  }
  ptx::wait_group(0);
}

/// All of `bytes` by every round, dealt out to the CTAs, each of which has another stretch in the next one.
__global__ void __launch_bounds__(kThreads) probe_write(uint4* data, std::int64_t bytes, int rounds) {
  for (int round = 0; round < rounds; ++round)
    for (std::int64_t i = (blockIdx.x + round * 17) % gridDim.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
         i < bytes / 16; i += static_cast<std::int64_t>(gridDim.x) * kThreads)
      data[i] = uint4{0, 0, 0, 0};
}

__global__ void __launch_bounds__(1024) probe_smem_rate(long long* cycles, unsigned* sink) {
  extern __shared__ uint4 shared[];
  shared[threadIdx.x] = uint4{0, 0, 0, 0};
  __syncthreads();
  unsigned mixed = 0;
  const long long began = clock64();
#pragma unroll 16
  for (int i = 0; i < 512; ++i) {
    uint4 x;
    asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(shared + threadIdx.x))));
    mixed ^= x.x ^ x.y ^ x.z ^ x.w;
  }
  __syncthreads();
  if (threadIdx.x == 0) *cycles = clock64() - began;
  if (mixed == 1) *sink = mixed;
}

int ctas_of_all_sms() { return kCtasAnSm * multiprocessors(); }

/// How long each of so many calls of `launch` takes, the shortest first.
template <class Launch>
std::vector<double> seconds_of(int launches, Launch launch) {
  cudaEvent_t began{}, ended{};
  check(cudaEventCreate(&began));
  check(cudaEventCreate(&ended));
  std::vector<double> seconds;
  for (int i = 0; i < launches; ++i) {
    check(cudaEventRecord(began));
    launch();
    check(cudaGetLastError());
    check(cudaEventRecord(ended));
    check(cudaEventSynchronize(ended));
    float ms = 0;
    check(cudaEventElapsedTime(&ms, began, ended));
    seconds.push_back(1e-3 * ms);
  }
  check(cudaEventDestroy(began));
  check(cudaEventDestroy(ended));
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

/// Bytes a second of `launch(data, CTAs)`, which moves `bytes` of the data `rounds` times: the median of five.
template <class Launch>
double rate_of(std::int64_t bytes, int rounds, Launch launch) {
  const DeviceArray<uint4> data(static_cast<std::size_t>(bytes / 16));
  const int ctas = ctas_of_all_sms();
  return static_cast<double>(bytes) * rounds / seconds_of(5, [&] { launch(data.data(), ctas); })[2];
}

std::int64_t l2_bytes() {
  int bytes = 0;
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, 0));
  return bytes;
}

/// `bytes`, or a quarter of an L2 that is small.
std::int64_t in_l2(std::int64_t bytes) {
  return std::min<std::int64_t>(bytes, std::bit_floor(std::max<std::uint64_t>(l2_bytes() / 4, 65536)));
}

template <int Lines>
void add_groups(std::vector<LinesTogether>& all, bool in_l2, const std::vector<int>& ctas_of_rows) {
  for (const int ctas : ctas_of_rows)
    for (int repeat = 0; repeat < 3; ++repeat) {
      const std::int64_t bytes = std::int64_t{ctas} * kGroups * Lines * kApart * 4;
      if (in_l2 && bytes > l2_bytes() / 2) continue;
      const DeviceArray<std::uint32_t> data(static_cast<std::size_t>(ctas) * kGroups * Lines * kApart), sink(32);
      const DeviceArray<long long> cycles(static_cast<std::size_t>(ctas));
      if (!in_l2) const DeviceArray<std::uint8_t> other(256 * kMiB);  // zeroed, which displaces the lines
      probe_groups<Lines><<<ctas, 32>>>(data.data(), sink.data(), cycles.data());
      check(cudaGetLastError());
      LinesTogether& row = all.emplace_back(Lines, ctas);
      for (const long long took : cycles.download()) {
        const double of_group = static_cast<double>(took) / kGroups;
        row.mean += of_group / ctas;
        row.most = std::max(row.most, of_group);
      }
    }
}

}  // namespace

double smem_latency_cycles() {
  const DeviceArray<long long> cycles(1);
  const DeviceArray<int> sink(1);
  probe_smem_latency<<<1, 32>>>(cycles.data(), sink.data());
  check(cudaGetLastError());
  return static_cast<double>(cycles.download()[0]) / kSteps;
}

double l2_latency_cycles() {
  const auto sms = static_cast<unsigned>(multiprocessors());
  const auto ring = static_cast<std::uint64_t>(std::max<std::int64_t>(in_l2(4 * kMiB) / sms, kLineWords * 4));
  const auto lines = static_cast<unsigned>(std::bit_floor(ring) / (kLineWords * 4));
  const DeviceArray<unsigned> data(std::size_t{sms} * lines * kLineWords);
  write_rings<<<1024, 256>>>(data.data(), lines, sms);
  check(cudaGetLastError());
  const DeviceArray<long long> cycles(sms);
  const DeviceArray<unsigned> sink(sms);
  probe_latency<<<sms, 1>>>(data.data(), lines, cycles.data(), sink.data());
  check(cudaGetLastError());
  double sum = 0;
  for (const long long each : cycles.download()) sum += static_cast<double>(each);
  return sum / sms / lines;
}
std::vector<LinesTogether> lines_together(bool in_l2, const std::vector<int>& ctas) {
  std::vector<LinesTogether> all;
  add_groups<1>(all, in_l2, ctas), add_groups<2>(all, in_l2, ctas), add_groups<4>(all, in_l2, ctas);
  add_groups<8>(all, in_l2, ctas), add_groups<16>(all, in_l2, ctas);
  return all;
}
double l2_bytes_per_second() {
  const std::int64_t bytes = in_l2(8 * kMiB);
  constexpr int rounds = 400;
  return rate_of(bytes, rounds,
                 [&](const uint4* data, int ctas) { probe_copy<<<ctas, kThreads>>>(data, bytes, rounds); });
}
DramRates dram_bytes_per_second() {
  constexpr std::int64_t bytes = 2048 * kMiB;
  constexpr int launches = 200;  // a tenth of a second, in which 40 GiB are cleared
  const DeviceArray<uint4> data(bytes / 16);
  const DeviceArray<unsigned> sink(1);
  const int ctas = ctas_of_all_sms();
  const auto rate = [&](auto launch) { return bytes / seconds_of(launches, launch)[launches / 8]; };
  const double apart = rate([&] { probe_read<Reads::apart><<<ctas, kThreads>>>(data.data(), bytes, 1, sink.data()); });
  const double near = rate([&] { probe_read<Reads::near><<<ctas, kThreads>>>(data.data(), bytes, 1, sink.data()); });
  const auto half = data.size() / 2;
  const double copy = rate(
      [&] { check(cudaMemcpyAsync(data.data() + half, data.data(), half * sizeof(uint4), cudaMemcpyDeviceToDevice)); });
  return {std::max(apart, near), copy};
}
double l2_write_bytes_per_second() {
  const std::int64_t bytes = in_l2(8 * kMiB);
  constexpr int rounds = 400;
  return rate_of(bytes, rounds, [&](uint4* data, int ctas) { probe_write<<<ctas, kThreads>>>(data, bytes, rounds); });
}

double smem_bytes_per_clock() {
  const DeviceArray<long long> cycles(1);
  const DeviceArray<unsigned> sink(1);
  for (int i = 0; i < 2; ++i) probe_smem_rate<<<1, 1024, 1024 * 16>>>(cycles.data(), sink.data());
  check(cudaGetLastError());
  return 512.0 * 1024 * 16 / static_cast<double>(cycles.download()[0]);
}

}  // namespace attest::hardware
