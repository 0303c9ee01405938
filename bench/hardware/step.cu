#include <algorithm>
#include <stdexcept>

#include "attest/hardware/device.h"
#include "attest/hardware/key_tile.cuh"
#include "attest/hardware/wgmma.h"
#include "step.h"

namespace attest::hardware {
namespace {

constexpr int kWarmUp = 24;
constexpr int kTimed = 64;
constexpr int kMoments = 5;
constexpr int kSeen = 8;  // key tiles whose moments are kept

__device__ void named_sync(int id) { asm volatile("bar.sync %0, 256;" ::"r"(id) : "memory"); }
__device__ void named_arrive(int id) { asm volatile("bar.arrive %0, 256;" ::"r"(id) : "memory"); }

template <int TileN, int Headdim, int Warpgroups, bool PInSmem, bool Overlap, bool Turns, int Parts>
__global__ void __launch_bounds__(Warpgroups * 128, 1)
    probe_step(float* sink, const float* start, long long* cycles, long long* moments) {
  extern __shared__ __align__(1024) std::uint8_t smem[];
  const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(smem));
  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
  constexpr int q_bytes = 64 * Headdim * 2, k_bytes = TileN * Headdim * 2;
  const std::uint32_t q = base + group * q_bytes, k = base + Warpgroups * q_bytes, v = k + k_bytes,
                      p_at = v + k_bytes + group * 64 * TileN * 2;
  for (int i = threadIdx.x; i < (Warpgroups * q_bytes + 2 * k_bytes) / 2; i += blockDim.x)
    reinterpret_cast<std::uint16_t*>(smem)[i] = 0x3c00 + (i * 2654435761u >> 20 & 0xff);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();

  float s[TileN / 2], o[Headdim / 2];
  std::uint32_t p[TileN / 4];
  const float c = start[0];
  float most[2] = {start[1], start[1]}, sum[2] = {0, 0};
  for (float& x : s) x = start[2];
  for (float& x : o) x = start[2];
  for (std::uint32_t& x : p) x = __float_as_uint(start[3]);
  const auto scores = [&] {
#pragma unroll
    for (int i = 0; i < Headdim / 16; ++i)  // a panel of 64 columns after the other, 32 bytes a step within it
      Wgmma<TileN, false>::multiply(s, tile_descriptor(q + i / 4 * 64 * 128 + i % 4 * 32, 16),
                                    tile_descriptor(k + i / 4 * TileN * 128 + i % 4 * 32, 16), i > 0);
    wgmma_commit();
  };
  const auto output = [&] {
#pragma unroll
    for (int i = 0; i < TileN / 16; ++i) {
      const std::uint64_t b = tile_descriptor(v + i * 16 * 128, TileN * 128);
      if constexpr (PInSmem)
        Wgmma<Headdim, true>::multiply(o, tile_descriptor(p_at + i / 4 * 64 * 128 + i % 4 * 32, 16), b, 1);
      else
        Wgmma<Headdim, true>::multiply(o, p + 4 * i, b, 1);
    }
    wgmma_commit();
  };
  float scale[2] = {1, 1};
  const auto pack = [&] {
#pragma unroll
    for (int i = 0; i < TileN / 4; ++i) p[i] = packed(s[2 * i], s[2 * i + 1]);
    if constexpr (PInSmem) {
      const std::uint32_t row = stored_row(p_at);
#pragma unroll
      for (int i = 0; i < TileN / 16; ++i) store_columns(row, i, p[4 * i], p[4 * i + 1], p[4 * i + 2], p[4 * i + 3]);
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      __syncwarp();
    }
  };
  const auto rescale = [&] {
#pragma unroll
    for (int i = 0; i < Headdim / 2; ++i) o[i] *= scale[i / 2 % 2];
  };
  const int turn = 1 + group, next = 1 + (group + 1) % Warpgroups;
  constexpr bool in_turn = Turns && Warpgroups > 1;
  if (in_turn && group == Warpgroups - 1) named_arrive(next);

  long long began = 0, ended = 0;
  for (int step = 0; step < kWarmUp + kTimed; ++step) {
    if (step == kWarmUp) began = clock64();
    const int seen = step - kWarmUp;
    const auto moment = [&](int which) {
      if (moments != nullptr && seen >= 0 && seen < kSeen && threadIdx.x % 128 == 0)
        moments[(group * kSeen + seen) * kMoments + which] = clock64();
    };
    if constexpr (in_turn) named_sync(turn);
    moment(0);
    wgmma_fence();
    if constexpr ((Parts & kScores) != 0) scores();
    if constexpr ((Parts & kOutput) != 0 && Overlap) output();
    if constexpr (in_turn) named_arrive(next);
    if constexpr ((Parts & kOutput) != 0 && Overlap)
      wgmma_wait<1>();
    else
      wgmma_wait<0>();
    moment(1);
    if constexpr ((Parts & kSoftmax) != 0) online_softmax(s, c, most, sum, scale);
    moment(2);
    if constexpr (Overlap) wgmma_wait<0>();
    moment(3);
    if constexpr ((Parts & kSoftmax) != 0) {
      pack();
      rescale();
    }
    if constexpr ((Parts & kOutput) != 0 && !Overlap) {
      wgmma_fence();
      output();
      wgmma_wait<0>();
    }
    moment(4);
  }
  ended = clock64();
  if (in_turn && group == 0) named_sync(turn);  // the arrival that nobody waited for
  float all = sum[0] + sum[1];
  for (const float x : s) all += x;
  for (const float x : o) all += x;
  if constexpr (!PInSmem)
    for (const std::uint32_t x : p) all += __uint_as_float(x);
  sink[threadIdx.x] = all;
  if (threadIdx.x % 128 == 0) cycles[group] = ended - began;
}

template <int TileN, int Headdim, int Warpgroups, bool PInSmem, bool Overlap, bool Turns, int Parts>
StepTimes run_one() {
  constexpr int bytes =
      1024 + (Warpgroups * 64 * Headdim + 2 * TileN * Headdim) * 2 + (PInSmem ? Warpgroups * 64 * TileN * 2 : 0);
  const auto kernel = probe_step<TileN, Headdim, Warpgroups, PInSmem, Overlap, Turns, Parts>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  const DeviceArray<float> sink(512), start(std::vector<float>{0.125F, -1e30F, 0.0F, 0.0F});
  const DeviceArray<long long> cycles(Warpgroups), moments(std::size_t{Warpgroups} * kSeen * kMoments);
  StepTimes times;
  std::vector<double> all;
  for (int i = 0; i < 5; ++i) {
    kernel<<<1, Warpgroups * 128, bytes>>>(sink.data(), start.data(), cycles.data(), nullptr);
    check(cudaGetLastError());
    const std::vector<long long> each = cycles.download();
    all.push_back(static_cast<double>(*std::max_element(each.begin(), each.end())) / kTimed);
  }
  std::sort(all.begin(), all.end());
  times.cycles = all[2];
  kernel<<<1, Warpgroups * 128, bytes>>>(sink.data(), start.data(), cycles.data(), moments.data());
  check(cudaGetLastError());
  const std::vector<long long> at = moments.download();
  times.moments.resize(Warpgroups);
  for (int g = 0; g < Warpgroups; ++g)
    for (int t = 0; t < kSeen; ++t) {
      auto& of_tile = times.moments[static_cast<std::size_t>(g)].emplace_back();
      for (int m = 0; m < kMoments; ++m)
        of_tile.push_back(at[static_cast<std::size_t>((g * kSeen + t) * kMoments + m)] - at[0]);
    }
  return times;
}

struct Entry {
  StepRun run;
  StepTimes (*times)();
};

template <int TileN, int Headdim, int Warpgroups, bool PInSmem, bool Overlap, bool Turns, int Parts = kWholeStep>
Entry entry() {
  return {{TileN, Headdim, Warpgroups, PInSmem, Overlap, Turns, Parts},
          run_one<TileN, Headdim, Warpgroups, PInSmem, Overlap, Turns, Parts>};
}

template <int TileN, int Headdim, bool PInSmem, int Warpgroups>
void add(std::vector<Entry>& all) {
  all.push_back(entry<TileN, Headdim, Warpgroups, PInSmem, true, false, kScores>());
  all.push_back(entry<TileN, Headdim, Warpgroups, PInSmem, true, false, kOutput>());
  all.push_back(entry<TileN, Headdim, Warpgroups, PInSmem, true, false, kScores + kOutput>());
  all.push_back(entry<TileN, Headdim, Warpgroups, PInSmem, true, false, kSoftmax>());
  all.push_back(entry<TileN, Headdim, Warpgroups, PInSmem, false, false>());
  all.push_back(entry<TileN, Headdim, Warpgroups, PInSmem, true, false>());
  if constexpr (Warpgroups > 1) all.push_back(entry<TileN, Headdim, Warpgroups, PInSmem, true, true>());
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = [] {
    std::vector<Entry> list;
    add<128, 128, false, 1>(list), add<128, 128, false, 2>(list);
    add<176, 128, false, 1>(list), add<176, 128, false, 2>(list);
    add<96, 128, false, 2>(list), add<64, 128, false, 2>(list), add<64, 128, false, 3>(list);
    add<128, 64, false, 1>(list), add<128, 64, false, 2>(list), add<128, 64, false, 3>(list);
    add<192, 64, true, 1>(list), add<192, 64, true, 2>(list), add<192, 64, true, 3>(list);
    return list;
  }();
  return all;
}

}  // namespace

std::vector<StepRun> step_runs() {
  std::vector<StepRun> runs;
  for (const Entry& e : entries()) runs.push_back(e.run);
  return runs;
}

std::string StepRun::name() const {
  return std::to_string(tile_n) + ',' + std::to_string(headdim) + ',' + std::to_string(warpgroups) + ',' +
         std::to_string(p_in_smem) + ',' + std::to_string(overlap) + ',' + std::to_string(turns) + ',' +
         std::to_string(parts);
}

StepTimes run_step(const StepRun& run) {
  for (const Entry& e : entries())
    if (e.run.name() == run.name()) return e.times();
  throw std::runtime_error("no step " + run.name());
}

}  // namespace attest::hardware
