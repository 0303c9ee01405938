#include "attest/hardware/wgmma.h"
#include "drift_kernels.cuh"

namespace attest::hardware {
namespace {

/// A kernel's tiles, and what of shared memory they take.
template <int TileN, int Headdim, int Warpgroups, bool PInSmem, bool Turns, int Slots>
struct Shape {
  static constexpr int tile_n = TileN, headdim = Headdim, warpgroups = Warpgroups, slots = Slots;  // of K, and of V
  static constexpr bool p_in_smem = PInSmem, turns = Turns;
  static constexpr int threads = (Warpgroups + 1) * 128;
  static constexpr int rows_bytes = 64 * Headdim * 2;  // a warpgroup's of Q, or of O
  static constexpr int p_bytes = PInSmem ? 64 * TileN * 2 : 0;
  static constexpr int tile_bytes = TileN * Headdim * 2;
  static constexpr int q = 0, k = Warpgroups * rows_bytes, v = k + Slots * tile_bytes, p = v + Slots * tile_bytes;
  // O leaves from where Q lies: the next Q is asked for when O has been read
  static constexpr int bytes = 1024 + p + Warpgroups * p_bytes;
};

__device__ void arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ void named_sync(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
__device__ void named_arrive(int id) { asm volatile("bar.arrive %0, 256;" ::"r"(id) : "memory"); }

// A slot's tile has arrived (`full`), and all warpgroups are done with it (`empty`).
struct Ring {
  std::uint32_t tiles, full, empty;
  int slots, bytes;
  __device__ std::uint32_t tile(int t) const { return tiles + t % slots * bytes; }
  __device__ void wait_full(int t) const { wait_for(full + t % slots * 8, t / slots & 1); }
  __device__ void wait_empty(int t) const {
    if (t >= slots) wait_for(empty + t % slots * 8, (t / slots - 1) & 1);
  }
  __device__ void release(int t) const {
    if (threadIdx.x % 128 == 0) arrive(empty + t % slots * 8);
  }
  __device__ void copy(int t, const std::uint8_t* from) const {
    const std::uint32_t bar = full + t % slots * 8;
    if (from == nullptr) {
      arrive(bar);
      return;
    }
    copy_bulk(tile(t), from, bytes, bar);
  }
};

__device__ void produce(const DriftArguments& a, const Ring& q, const Ring& k, const Ring& v, long long began) {
  DriftLog& log = a.logs[blockIdx.x];
  const auto now = [&] { return static_cast<std::uint32_t>(clock64() - began); };
  const auto keys = [&](int t) { return a.share == 0 ? nullptr : a.tiles + tile_at(a, t, 2 * k.bytes); };
  const auto ask_v = [&](int t) {
    v.wait_empty(t);
    log.asked_v[t] = now();
    v.copy(t, a.share == 0 ? nullptr : keys(t) + v.bytes);
  };
  for (int t = 0; t < drift_tiles; ++t) {
    k.wait_empty(t);
    log.asked[t] = now();
    k.copy(t, keys(t));
    const int query = t / a.keys_a_query;
    if (t % a.keys_a_query == 0) {
      q.wait_empty(query);
      q.copy(query, a.share == 0 ? nullptr : a.queries + query_at(a, query, q.bytes));
    } else {
      ask_v(t - 1);
    }
    if (t % a.keys_a_query == a.keys_a_query - 1) ask_v(t);
  }
}

template <class S>
__device__ void consume(const DriftArguments& a, std::uint32_t base, const Ring& q, const Ring& k, const Ring& v,
                        int group, long long began) {
  constexpr int TileN = S::tile_n, Headdim = S::headdim;
  DriftLog& log = a.logs[blockIdx.x];
  const std::uint32_t q_at = base + S::q + group * S::rows_bytes, p_at = base + S::p + group * S::p_bytes;
  float s[TileN / 2], o[Headdim / 2];
  std::uint32_t p[TileN / 4];
  const float c = a.start[0];
  float most[2], sum[2], scale[2];
  const int turn = 1 + group, next = 1 + (group + 1) % S::warpgroups;
  if (S::turns && group == S::warpgroups - 1) named_arrive(next);
  float all = 0;

  const auto output = [&](int t) {
#pragma unroll
    for (int i = 0; i < TileN / 16; ++i) {
      const std::uint64_t b = tile_descriptor(v.tile(t) + i * 16 * 128, TileN * 128);
      if constexpr (S::p_in_smem)
        Wgmma<Headdim, true>::multiply(o, tile_descriptor(p_at + i / 4 * 64 * 128 + i % 4 * 32, 16), b, 1);
      else
        Wgmma<Headdim, true>::multiply(o, p + 4 * i, b, 1);
    }
    wgmma_commit();
  };
  const auto pack = [&] {
#pragma unroll
    for (int i = 0; i < TileN / 4; ++i) p[i] = packed(s[2 * i], s[2 * i + 1]);
    if constexpr (S::p_in_smem) {
      const std::uint32_t row = stored_row(p_at);
#pragma unroll
      for (int i = 0; i < TileN / 16; ++i) store_columns(row, i, p[4 * i], p[4 * i + 1], p[4 * i + 2], p[4 * i + 3]);
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      __syncwarp();
    }
  };
  // store_columns() written out: with it ptxas orders one kernel's code otherwise than what was measured
  const auto store = [&](int query) {
    const std::uint32_t row = q_at + threadIdx.x % 128 / 32 * 16 * 128 + threadIdx.x % 16 * 128;
#pragma unroll
    for (int i = 0; i < Headdim / 16; ++i)
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                       row + i / 4 * 64 * 128 + (((i % 4 * 2 + threadIdx.x / 16 % 2) ^ threadIdx.x % 8) << 4)),
                   "r"(packed(o[8 * i], o[8 * i + 1])), "r"(packed(o[8 * i + 2], o[8 * i + 3])),
                   "r"(packed(o[8 * i + 4], o[8 * i + 5])), "r"(packed(o[8 * i + 6], o[8 * i + 7]))
                   : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    named_sync(8 + group, 128);
    if (threadIdx.x % 128 == 0) {
      if (a.share > 0) {
        std::uint8_t* to = a.outputs + query_at(a, query, q.bytes) + group * S::rows_bytes;
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(q_at),
                     "n"(S::rows_bytes)
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::: "memory");
      }
    }
    q.release(query);
  };

  for (int t = 0; t < drift_tiles;) {
    const int query = t / a.keys_a_query, first = t;
    for (float& x : most) x = a.start[1];
    sum[0] = sum[1] = 0, scale[0] = scale[1] = 1;
    for (float& x : o) x = a.start[2];
    q.wait_full(query);
#pragma unroll 1
    do {
      k.wait_full(t);
      if (S::turns) named_sync(turn, 256);
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < Headdim / 16; ++i)
        Wgmma<TileN, false>::multiply(s, tile_descriptor(q_at + i / 4 * 64 * 128 + i % 4 * 32, 16),
                                      tile_descriptor(k.tile(t) + i / 4 * TileN * 128 + i % 4 * 32, 16), i > 0);
      wgmma_commit();
      if (t > first) {
        v.wait_full(t - 1);
        output(t - 1);
      } else {
        wgmma_commit();
      }
      if (S::turns) named_arrive(next);
      wgmma_wait<1>();
      k.release(t);
      online_softmax(s, c, most, sum, scale);
      wgmma_wait<0>();
      if (t > first) v.release(t - 1);
      pack();
#pragma unroll
      for (int i = 0; i < Headdim / 2; ++i) o[i] *= scale[i / 2 % 2];
      if (threadIdx.x == 0) log.ended[t] = static_cast<std::uint32_t>(clock64() - began);
      ++t;
    } while (t % a.keys_a_query != 0);
    v.wait_full(t - 1);
    wgmma_fence();
    output(t - 1);
    wgmma_wait<0>();
    v.release(t - 1);
    const float per_row[2] = {1 / (sum[0] + 1), 1 / (sum[1] + 1)};
#pragma unroll
    for (int i = 0; i < Headdim / 2; ++i) o[i] *= per_row[i / 2 % 2], all += o[i];
    store(query);
  }
  if (S::turns && group == 0) named_sync(turn, 256);  // the arrival that nobody waited for
  a.sink[threadIdx.x] = all;
  if (threadIdx.x == 0) read_clock(log.after);
}

template <class S>
__global__ void __launch_bounds__(S::threads, 1) probe_drift_wgmma(DriftArguments a) {
  extern __shared__ __align__(1024) std::uint8_t smem[];
  __shared__ std::uint64_t barriers[2 + 4 * S::slots];
  const std::uint32_t base = (static_cast<std::uint32_t>(__cvta_generic_to_shared(smem)) + 1023) / 1024 * 1024;
  const auto bars = static_cast<std::uint32_t>(__cvta_generic_to_shared(barriers));
  for (int i = threadIdx.x; i < S::bytes / 4; i += blockDim.x)
    reinterpret_cast<std::uint32_t*>(smem)[i] = random_pair(i);
  if (threadIdx.x < 2 + 4 * S::slots) {
    const bool full = threadIdx.x < 1 + 2 * S::slots;
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bars + threadIdx.x * 8), "r"(full ? 1 : S::warpgroups));
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  const std::uint32_t full = bars, empty = bars + (1 + 2 * S::slots) * 8;
  const Ring q{base + S::q, full, empty, 1, S::warpgroups * S::rows_bytes};
  const Ring k{base + S::k, full + 8, empty + 8, S::slots, S::tile_bytes};
  const Ring v{base + S::v, full + 8 + S::slots * 8, empty + 8 + S::slots * 8, S::slots, S::tile_bytes};
  const long long began = start_together(a);
  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
  if (group < S::warpgroups) {
    if constexpr (S::warpgroups == 2)
      asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    else
      asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
    consume<S>(a, base, q, k, v, group, began);
  } else {
    if constexpr (S::warpgroups == 2)
      asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    else
      asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
    if (threadIdx.x % 128 == 0) produce(a, q, k, v, began);
  }
}

template <class S>
void launch(int sms, const DriftArguments& a) {
  check(cudaFuncSetAttribute(probe_drift_wgmma<S>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::bytes));
  probe_drift_wgmma<S><<<sms, S::threads, S::bytes>>>(a);
  check(cudaGetLastError());
}

template <int TileN, int Headdim, int Warpgroups, bool PInSmem, bool Turns, int Slots = 2>
DriftKernel kernel() {
  using S = Shape<TileN, Headdim, Warpgroups, PInSmem, Turns, Slots>;
  return {"wgmma", TileN, Headdim, Warpgroups, Turns, 1, S::tile_bytes, Warpgroups * S::rows_bytes, launch<S>};
}

}  // namespace

std::vector<DriftKernel> drift_kernels_wgmma() {
  return {kernel<128, 128, 2, false, true>(),    kernel<128, 128, 2, false, false>(),
          kernel<176, 128, 2, false, true>(),    kernel<128, 64, 3, false, true>(),
          kernel<128, 64, 3, false, false>(),    kernel<192, 64, 3, true, true>(),
          kernel<192, 64, 3, true, false>(),     kernel<80, 256, 2, false, true>(),
          kernel<128, 192, 2, false, true, 1>(), kernel<128, 256, 2, false, true, 1>()};
}

}  // namespace attest::hardware
