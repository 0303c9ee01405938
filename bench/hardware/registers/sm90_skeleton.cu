// A forward pass for sm_90a that is only compiled, to learn what the compiler does with its registers: a producer
// warpgroup issues bulk tensor copies, consumer warpgroups of 64 queries multiply by wgmma and take the next tile's
// scores before this one's O += P V; accumulators, descriptors, barriers, masks, setmaxnreg and epilogue are those of a
// real kernel. compile_grid.py gives the macros: HEADDIM, TILE_M, TILE_N, STAGES, P_IN_SMEM, CAUSAL.
//
// Q (tile_m x headdim, O in its place) | K slots | V slots | P where it goes through shared memory | barriers; bf16.
#include "sm90_skeleton.cuh"
#include "wgmma.cuh"

namespace {

constexpr int headdim = HEADDIM, tile_m = TILE_M, tile_n = TILE_N, stages = STAGES;
constexpr bool p_in_smem = P_IN_SMEM, causal = CAUSAL;
constexpr int consumers = tile_m / 64, threads = (consumers + 1) * 128;
constexpr int producer_registers = consumers == 1 ? 56 : consumers == 2 ? 24 : 32;
constexpr int consumer_registers = consumers == 1 ? 256 : consumers == 2 ? 240 : 160;
constexpr int head_panel = headdim % 64 == 0 ? 64 : 32, key_panel = tile_n % 64 == 0 ? 64 : tile_n % 32 == 0 ? 32 : 16;
constexpr unsigned q_bytes = tile_m * headdim * 2, slot_bytes = tile_n * headdim * 2;

enum Barrier {
  q_full,
  q_empty,
  k_full,
  k_empty = k_full + stages,
  v_full = k_empty + stages,
  v_empty = v_full + stages
};
enum NamedBarrier { turn = 2, rows_stored = 6 };

struct Work {
  int row0, head, batch;
};
struct Launch {
  Arguments a;
  TensorMap q, k, v, o;
  int* next_tile;
  int num_tiles, tiles_a_head, heads;
};

__device__ Work work_of(const Launch& l, int tile) {
  const int rest = tile / l.tiles_a_head, at = tile - rest * l.tiles_a_head;
  const int batch = rest / l.heads;
  return {(causal ? l.tiles_a_head - 1 - at : at) * tile_m, rest - batch * l.heads, batch};
}
__device__ int tiles_of_keys(const Arguments& a, const Work& w) {
  int last = (a.seqlen_k + tile_n - 1) / tile_n;
  if (causal) last = min(last, (w.row0 + tile_m + a.seqlen_k - a.seqlen_q + tile_n - 1) / tile_n);
  return last;
}

struct Place {
  unsigned smem, k, v, p, barriers;
  __device__ unsigned barrier(int which, int slot = 0) const { return barriers + (which + slot) * 8; }
};
struct Slot {
  int index = 0;
  unsigned phase = 0;
  __device__ void next() {
    if (++index == stages) index = 0, phase ^= 1;
  }
};

// ---- the producer: one thread copies Q, then K and V tile by tile
__device__ void produce(const Launch& l, const Place& at) {
  Slot slot;
  unsigned q_phase = 0;
  const auto copy = [&](const TensorMap& map, unsigned smem, int full, int empty, const Slot& s, int tile,
                        const Work& w) {
    barrier_wait(at.barrier(empty, s.index), s.phase ^ 1);
    barrier_expect(at.barrier(full, s.index), slot_bytes);
#pragma unroll
    for (int column = 0; column < headdim; column += head_panel)
      copy_box(smem + s.index * slot_bytes + column * tile_n * 2, map, at.barrier(full, s.index), column, tile * tile_n,
               w.head / l.a.group, w.batch);
  };
  for (int tile = blockIdx.x; tile < l.num_tiles;) {
    const Work w = work_of(l, tile);
    int key_tile = tiles_of_keys(l.a, w) - 1;
    if (key_tile >= 0) {
      copy(l.k, at.k, k_full, k_empty, slot, key_tile, w);
      barrier_wait(at.barrier(q_empty), q_phase ^ 1);
      barrier_expect(at.barrier(q_full), q_bytes);
#pragma unroll
      for (int column = 0; column < headdim; column += head_panel)
        copy_box(at.smem + column * tile_m * 2, l.q, at.barrier(q_full), column, w.row0, w.head, w.batch);
      q_phase ^= 1;
#pragma unroll 1
      for (; key_tile > 0; --key_tile) {
        Slot ahead = slot;
        ahead.next();
        copy(l.k, at.k, k_full, k_empty, ahead, key_tile - 1, w);
        copy(l.v, at.v, v_full, v_empty, slot, key_tile, w);
        slot = ahead;
      }
      copy(l.v, at.v, v_full, v_empty, slot, 0, w);
      slot.next();
    }
    tile = causal ? atomicAdd(l.next_tile, 1) : tile + gridDim.x;
  }
}

// ---- the consumers
using Scores = float[tile_n / 8][4];
using Output = float[headdim / 8][4];
using Probabilities = unsigned[tile_n / 16][4];

__device__ void issue_scores(Scores& s, const Place& at, int group, const Slot& slot) {
  const unsigned long long q = descriptor(at.smem + group * 64 * head_panel * 2, head_panel * 2, 16);
  const unsigned long long k = descriptor(at.k + slot.index * slot_bytes, head_panel * 2, 16);
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < headdim / 16; ++step) {
    const int panel = step * 16 / head_panel, within = step * 32 % (head_panel * 2);
    wgmma<tile_n>::from_shared(s, q + (panel * tile_m * head_panel * 2 + within) / 16,
                               k + (panel * tile_n * head_panel * 2 + within) / 16, step != 0);
  }
  wgmma_commit();
}
__device__ void issue_output(Output& o, const Probabilities& p, const Place& at, int group, const Slot& slot) {
  const unsigned long long v = descriptor(at.v + slot.index * slot_bytes, head_panel * 2, tile_n * head_panel * 2);
  const unsigned long long smem_p = descriptor(at.p + group * 64 * key_panel * 2, key_panel * 2, 16);
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < tile_n / 16; ++step) {
    if constexpr (p_in_smem) {
      const int panel = step * 16 / key_panel, within = step * 32 % (key_panel * 2);
      wgmma<headdim>::from_shared_transposed(o, smem_p + (panel * tile_m * key_panel * 2 + within) / 16,
                                             v + step * 16 * head_panel * 2 / 16);
    } else {
      wgmma<headdim>::from_registers_transposed(o, p[step], v + step * 16 * head_panel * 2 / 16);
    }
  }
  wgmma_commit();
}
__device__ void mask(Scores& s, const Arguments& a, const Work& w, int group, int tile) {
  const int row0 = w.row0 + group * 64 + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
  const int key0 = tile * tile_n + threadIdx.x % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    int end = a.seqlen_k;
    if (causal) end = min(end, row0 + half * 8 + a.seqlen_k - a.seqlen_q + 1);
#pragma unroll
    for (int n = 0; n < tile_n / 8; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        if (key0 + n * 8 + i >= end) s[n][2 * half + i] = minus_infinity;
  }
}
// S to P in its place; what O is to be multiplied by.
__device__ void softmax(Scores& s, float (&maximum)[2], float (&sum)[2], float (&factor)[2], float scale_log2) {
#pragma unroll
  for (int half = 0; half < 2; ++half)
    factor[half] = softmax_scores<tile_n>(s, half, maximum[half], sum[half], scale_log2);
}
__device__ void pack_all(Probabilities& p, const Scores& s) {
#pragma unroll
  for (int step = 0; step < tile_n / 16; ++step) pack_step(p[step], s[2 * step], s[2 * step + 1]);
}
// 16 rows of a warp, `columns` of 16, to swizzled panels.
template <int columns, int panel>
__device__ void store_rows(unsigned smem, int group, const unsigned (&p)[columns / 16][4]) {
  const int row = group * 64 + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 16;
#pragma unroll
  for (int step = 0; step < columns / 16; ++step) {
    const int chunk = step * 2 + threadIdx.x % 32 / 16, at = row * panel * 2 + chunk % (panel / 8) * 16;
    constexpr int mask_rows = panel / 8 - 1;
    stmatrix(smem + chunk / (panel / 8) * tile_m * panel * 2 + (at ^ (at / 128 & mask_rows) * 16), p[step]);
  }
}

__device__ void consume(const Launch& l, const Place& at, int group) {
  Slot slot;
  unsigned q_phase = 0;
  const auto my_turn = [&] {
    if (consumers > 1) named_barrier_sync(turn + group, 256);
  };
  const auto next_turn = [&] {
    if (consumers > 1) named_barrier_arrive(turn + (group + 1 == consumers ? 0 : group + 1), 256);
  };
  const auto release = [&](int empty, int index) {
    if (threadIdx.x % 128 == 0) barrier_arrive(at.barrier(empty, index));
  };
  for (int tile = blockIdx.x; tile < l.num_tiles;) {
    const Work w = work_of(l, tile);
    const int last = tiles_of_keys(l.a, w);
    Output o = {};
    Scores s;
    Probabilities p;
    float maximum[2] = {minus_infinity, minus_infinity}, sum[2] = {0, 0}, factor[2];
    const auto to_probabilities = [&] {
      pack_all(p, s);
      if (p_in_smem) {
        store_rows<tile_n, key_panel>(at.p, group, p);
        fence_shared_for_copies();
        __syncwarp();
      }
    };
    if (last > 0) {
      barrier_wait(at.barrier(q_full), q_phase);
      q_phase ^= 1;
      barrier_wait(at.barrier(k_full, slot.index), slot.phase);
      issue_scores(s, at, group, slot);
      wgmma_wait<0>();
      pin(s);
      release(k_empty, slot.index);
      mask(s, l.a, w, group, last - 1);
      softmax(s, maximum, sum, factor, l.a.scale_log2);
      to_probabilities();
      const auto step = [&](int key_tile, bool masked) {
        Slot ahead = slot;
        ahead.next();
        barrier_wait(at.barrier(k_full, ahead.index), ahead.phase);
        my_turn();
        issue_scores(s, at, group, ahead);
        barrier_wait(at.barrier(v_full, slot.index), slot.phase);
        issue_output(o, p, at, group, slot);
        next_turn();
        wgmma_wait<1>();
        pin(s);
        release(k_empty, ahead.index);
        if (masked) mask(s, l.a, w, group, key_tile);
        softmax(s, maximum, sum, factor, l.a.scale_log2);
        wgmma_wait<0>();
        pin(o);
        release(v_empty, slot.index);
        to_probabilities();
        rescale<headdim>(o, factor);
        slot = ahead;
      };
      int key_tile = last - 2;
      if constexpr (causal) {
        const int below = (w.row0 + l.a.seqlen_k - l.a.seqlen_q) / tile_n;
#pragma unroll 1
        for (; key_tile >= max(below, 0); --key_tile) step(key_tile, true);
      }
#pragma unroll 1
      for (; key_tile >= 0; --key_tile) step(key_tile, false);
      release(q_empty, 0);
      barrier_wait(at.barrier(v_full, slot.index), slot.phase);
      issue_output(o, p, at, group, slot);
      wgmma_wait<0>();
      pin(o);
      release(v_empty, slot.index);
      slot.next();
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float total = quad_sum(sum[half]);
      const float inverse = total == 0 ? 0 : 1 / total;
      const int row = w.row0 + group * 64 + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4 + half * 8;
#pragma unroll
      for (int n = 0; n < headdim / 8; ++n) o[n][2 * half] *= inverse, o[n][2 * half + 1] *= inverse;
      if (threadIdx.x % 4 == 0 && row < l.a.seqlen_q)
        l.a.lse[(static_cast<long long>(w.batch) * l.heads + w.head) * l.a.seqlen_q + row] =
            lse_of(maximum[half], total, l.a.scale_log2);
    }
    unsigned packed[headdim / 16][4];
#pragma unroll
    for (int column = 0; column < headdim / 16; ++column) pack_step(packed[column], o[2 * column], o[2 * column + 1]);
    store_rows<headdim, head_panel>(at.smem, group, packed);
    fence_shared_for_copies();
    named_barrier_sync(rows_stored + group, 128);
    if (threadIdx.x % 128 == 0) {
#pragma unroll
      for (int column = 0; column < headdim; column += head_panel)
        store_box(l.o, at.smem + (column * tile_m + group * 64 * head_panel) * 2, column, w.row0 + group * 64, w.head,
                  w.batch);
      store_commit();
      store_wait();
    }
    tile = causal ? atomicAdd(l.next_tile, 1) : tile + gridDim.x;
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads, 1) forward(const __grid_constant__ Launch l) {
  extern __shared__ __align__(1024) char shared[];
  Place at;
  at.smem = smem_address(shared);
  at.k = at.smem + q_bytes;
  at.v = at.k + stages * slot_bytes;
  at.p = at.v + stages * slot_bytes;
  at.barriers = at.p + (p_in_smem ? tile_m * tile_n * 2 : 0);
  if (threadIdx.x == 0)
    for (int i = 0; i < v_empty + stages; ++i) {
      const bool empty = i == q_empty || (i >= k_empty && i < v_full) || i >= v_empty;
      barrier_init(at.barrier(i), empty ? consumers : 1);
    }
  __syncthreads();
  const int group = static_cast<int>(threadIdx.x / 128) - 1;
  if (group < 0) {
    give_registers<producer_registers>();
    if (threadIdx.x == 0) produce(l, at);
  } else {
    take_registers<consumer_registers>();
    if (consumers > 1 && group == 0) named_barrier_arrive(turn, 256);
    consume(l, at, group);
  }
}
