#include <cuda.h>

#include "attest/hardware/device.h"
#include "attest/hardware/key_tile.cuh"
#include "phases.h"

namespace attest::hardware {
namespace {

constexpr int kThreads = 1024;
constexpr int kChunkBytes = 4096;
constexpr int kThreadsAChunk = kChunkBytes / 16;
constexpr int kChunksAStep = kThreads / kThreadsAChunk;

struct PhaseList {
  Phase phase[kMostPhases];
  int count = 0;
};

struct Worker {
  int rank = -1;  // -1: takes no part
  int of = 1;
};

__device__ Worker worker_of_gpc(const SmPlace* places, int sm, int sms) {
  Worker worker{0, 0};
  for (int other = 0; other < sms; ++other)
    if (places[other].gpc == places[sm].gpc) worker.rank += other < sm ? 1 : 0, ++worker.of;
  return worker;
}

__device__ Worker worker_of(const Phase& phase, const SmPlace* places, int sm, int sms, int sms_of_side0) {
  const SmPlace& place = places[sm];
  const int of_side = place.side == 0 ? sms_of_side0 : sms - sms_of_side0;
  switch (phase.workers) {
    case Workers::split:
      return {sm, sms};
    case Workers::both_sides:
      return {place.rank_of_side, of_side};
    case Workers::every_gpc:
      return worker_of_gpc(places, sm, sms);
    case Workers::gpcs_of_side0:
      return place.side == 0 ? worker_of_gpc(places, sm, sms) : Worker{};
    case Workers::side0:
      return {place.side == 0 ? place.rank_of_side : -1, of_side};
    case Workers::side1:
      return {place.side == 1 ? place.rank_of_side : -1, of_side};
  }
  return {};
}

__device__ std::uint8_t* address(const Phase& phase, std::uint8_t* buffer, std::int64_t chunk, int offset) {
  if (phase.pages != nullptr) return buffer + static_cast<std::int64_t>(phase.pages[chunk]) * kChunkBytes + offset;
  const std::int64_t x = chunk * kChunkBytes + offset;
  return buffer + phase.base + x / phase.row_bytes * phase.row_stride + x % phase.row_bytes;
}

/// 16 bytes past L1, with L2's hint that the policy is.
__device__ int4 load_hinted(const int4* at, std::uint64_t policy) {
  int4 v;
  asm volatile("ld.global.cg.L2::cache_hint.v4.s32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at), "l"(policy));
  return v;
}

constexpr int kLineBytes = 128;

__device__ void store_bulk(std::uint8_t* at, std::uint32_t from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(at), "r"(from), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
}

/// Waits for the bytes; `turn` is the barrier's phase, changed for the next copy.
__device__ void load_bulk(std::uint32_t to, const std::uint8_t* at, int bytes, std::uint32_t barrier, int& turn) {
  copy_bulk(to, at, bytes, barrier);
  wait_for(barrier, turn);
  turn ^= 1;
}

// A chunk of the buffer as 32 rows of a tensor of 128-byte rows.
constexpr int kBoxRows = kChunkBytes / kLineBytes;
constexpr std::int64_t kMappedBytes = std::int64_t{512} << 20;  // of the buffer

CUtensorMap map_of(std::uint8_t* buffer, std::int64_t rows) {
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult found;
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found));
  CUtensorMap map;
  const cuuint64_t sizes[] = {kLineBytes / 2, static_cast<cuuint64_t>(rows)}, strides[] = {kLineBytes};
  const cuuint32_t box[] = {kLineBytes / 2, kBoxRows}, steps[] = {1, 1};
  const CUresult made = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
      &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, buffer, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (made != CUDA_SUCCESS) throw std::runtime_error("cuTensorMapEncodeTiled");
  return map;
}

__device__ std::uint64_t policy_of(PhaseOp op) {
  std::uint64_t policy = 0;
  if (op == PhaseOp::read_evict_first || op == PhaseOp::read_box_evict_first)
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  else if (op == PhaseOp::read_evict_last || op == PhaseOp::read_box_evict_last)
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

__device__ void load_box(std::uint32_t to, const CUtensorMap& map, int row, PhaseOp op, std::uint32_t barrier,
                         int& turn) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(kChunkBytes));
  if (op == PhaseOp::read_box)
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            to),
        "l"(&map), "r"(0), "r"(row), "r"(barrier)
        : "memory");
  else
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, "
        "%3}], [%4], %5;" ::"r"(to),
        "l"(&map), "r"(0), "r"(row), "r"(barrier), "l"(policy_of(op))
        : "memory");
  wait_for(barrier, turn);
  turn ^= 1;
}

__device__ void prefetch_box(const CUtensorMap& map, int row) {
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(&map), "r"(0), "r"(row) : "memory");
}

__device__ void load_async(std::uint32_t to, const std::uint8_t* at, PhaseOp op) {
  if (op == PhaseOp::read_async)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(at));
  else
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(at));
  asm volatile("cp.async.wait_all;" ::: "memory");
}

__device__ void store_box(const CUtensorMap& map, int row, std::uint32_t from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(0),
               "r"(row), "r"(from)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
}

__device__ int4 load(const int4* at, PhaseOp op) {
  return op == PhaseOp::read ? __ldcg(at) : load_hinted(at, policy_of(op));
}

__device__ int sum_of(int4 v) { return v.x + v.y + v.z + v.w; }

__global__ void __launch_bounds__(kThreads, 1)
    probe_phases(PhaseList list, std::uint8_t* buffer, const SmPlace* sms, int sms_of_side0,
                 const __grid_constant__ CUtensorMap map, unsigned* arrived, int* sink) {
  unsigned generation = 0;
  const int sm = static_cast<int>(sm_id());
  const int lane_chunk = static_cast<int>(threadIdx.x) / kThreadsAChunk;
  const int offset = static_cast<int>(threadIdx.x) % kThreadsAChunk * 16;
  extern __shared__ __align__(1024) std::uint8_t smem[];
  __shared__ std::uint64_t barriers[kChunksAStep];
  const std::uint32_t staged = static_cast<std::uint32_t>(__cvta_generic_to_shared(smem)) + lane_chunk * kChunkBytes;
  const std::uint32_t barrier = static_cast<std::uint32_t>(__cvta_generic_to_shared(barriers)) + lane_chunk * 8;
  int turn = 0;
  if (offset == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier));
  __syncthreads();
  int sum = 0;
  for (int p = 0; p < list.count; ++p) {
    const Phase& phase = list.phase[p];
    if (phase.op == PhaseOp::spin) {
      const std::uint64_t end = global_time_ns() + 1000ull * static_cast<unsigned>(phase.microseconds);
      while (global_time_ns() < end) __nanosleep(500);
    }
    const Worker worker = worker_of(phase, sms, sm, static_cast<int>(gridDim.x), sms_of_side0);
    const std::int64_t chunks = phase.bytes / kChunkBytes;
    for (int round = 0; round < phase.rounds; ++round) {
      if (worker.rank >= 0) {
        const int rank = (worker.rank + round * phase.rotate) % worker.of;
        for (std::int64_t c = static_cast<std::int64_t>(rank) * kChunksAStep + lane_chunk; c < chunks;
             c += static_cast<std::int64_t>(worker.of) * kChunksAStep) {
          std::uint8_t* const byte = address(phase, buffer, c, offset);
          int4* at = reinterpret_cast<int4*>(byte);
          const int row = static_cast<int>((byte - buffer) / kLineBytes);
          if (phase.op == PhaseOp::read_box || phase.op == PhaseOp::read_box_evict_first ||
              phase.op == PhaseOp::read_box_evict_last) {
            if (offset == 0) load_box(staged, map, row, phase.op, barrier, turn);
          } else if (phase.op == PhaseOp::prefetch_and_read_box) {
            if (offset == 0) prefetch_box(map, row), load_box(staged, map, row, PhaseOp::read_box, barrier, turn);
          } else if (phase.op == PhaseOp::prefetch_box) {
            if (offset == 0) prefetch_box(map, row);
          } else if (phase.op == PhaseOp::prefetch_bulk) {
            if (offset == 0)
              asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(byte), "r"(kChunkBytes) : "memory");
          } else if (phase.op == PhaseOp::prefetch) {
            if (offset % kLineBytes == 0) asm volatile("prefetch.global.L2 [%0];" ::"l"(byte) : "memory");
          } else if (phase.op == PhaseOp::read_async || phase.op == PhaseOp::read_async_line) {
            load_async(staged + offset, byte, phase.op);
          } else if (phase.op == PhaseOp::write_box) {
            if (offset == 0) store_box(map, row, staged);
          } else if (phase.op == PhaseOp::read_bulk) {
            if (offset == 0) load_bulk(staged, byte, kChunkBytes, barrier, turn);
          } else if (phase.op == PhaseOp::write_bulk) {
            if (offset == 0) store_bulk(byte, staged, kChunkBytes);
          } else if (phase.op == PhaseOp::write_bulk_lines) {
            if (offset % kLineBytes == 0) store_bulk(byte, staged + offset, kLineBytes);
          } else if (phase.op != PhaseOp::write) {
            sum += sum_of(load(at, phase.op));
          } else {
            __stcg(at, make_int4(round, p, static_cast<int>(c), offset));
            for (std::int64_t r = 0; r < phase.reads_a_write; ++r)
              sum += sum_of(__ldcg(reinterpret_cast<const int4*>(
                  buffer + phase.read_base + (c * phase.reads_a_write + r) * kChunkBytes + offset)));
          }
        }
      }
      grid_barrier(arrived, generation, gridDim.x);
    }
  }
  if (sum == 0x7fffffff) *sink = sum;
}

constexpr int kSpillThreads = 128;
constexpr int kSpillCtas = 264;
constexpr int kTileBytes = 32 * 1024;
constexpr int kMostWords = 16;

template <bool Local>
__device__ int walk_and_spill(const SpillWalk& walk, const std::uint8_t* buffer, std::uint8_t* spilled) {
  const int tiles = static_cast<int>(walk.shared_bytes / walk.groups / kTileBytes);
  const int group = static_cast<int>(blockIdx.x) * walk.groups / kSpillCtas;
  const std::uint8_t* head = buffer + static_cast<std::int64_t>(group) * tiles * kTileBytes;
  const std::int64_t place_bytes = static_cast<std::int64_t>(walk.words) * kSpillThreads * 4;
  volatile int local[kMostWords];
  int sum = 0;
  for (int step = 0; step < tiles * walk.rounds; ++step) {
    const int4* tile = reinterpret_cast<const int4*>(head + static_cast<std::int64_t>(step % tiles) * kTileBytes);
#pragma unroll
    for (int i = 0; i < kTileBytes / 16 / kSpillThreads; ++i)
      sum += sum_of(__ldcg(tile + i * kSpillThreads + threadIdx.x));
    const int place = step / walk.hold % walk.places;
    int* words =
        reinterpret_cast<int*>(spilled + (static_cast<std::int64_t>(blockIdx.x) * walk.places + place) * place_bytes);
    for (int w = 0; w < walk.words; ++w) {
      if constexpr (Local)
        local[w] = sum + w;
      else
        __stcg(words + w * kSpillThreads + threadIdx.x, sum + w);
    }
    __syncthreads();  // as a kernel's tile loop does: the warps of a CTA stay in one tile
  }
  if constexpr (Local) sum += local[sum & (kMostWords - 1)];
  return sum;
}

__global__ void __launch_bounds__(kSpillThreads, 2)
    probe_spill(SpillWalk walk, const std::uint8_t* buffer, std::uint8_t* spilled, int* sink) {
  const int sum =
      walk.local ? walk_and_spill<true>(walk, buffer, spilled) : walk_and_spill<false>(walk, buffer, spilled);
  if (sum == 0x7fffffff) *sink = sum;
}

}  // namespace

void run_phases(const std::vector<Phase>& phases, std::uint8_t* buffer, const std::vector<SmPlace>& sms) {
  PhaseList list;
  for (const Phase& phase : phases) list.phase[list.count++] = phase;
  int side0 = 0;
  for (const SmPlace& place : sms) side0 += place.side == 0 ? 1 : 0;
  const DeviceArray<SmPlace> places(sms);
  const DeviceArray<unsigned> arrived(1);
  const DeviceArray<int> sink(1);
  check(cudaFuncSetAttribute(probe_phases, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemOneCtaAnSm));
  probe_phases<<<static_cast<unsigned>(sms.size()), kThreads, kSmemOneCtaAnSm>>>(
      list, buffer, places.data(), side0, map_of(buffer, kMappedBytes / kLineBytes), arrived.data(), sink.data());
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
}

void run_spill(const SpillWalk& walk, std::uint8_t* buffer, std::int64_t spill_base) {
  const DeviceArray<int> sink(1);
  check(cudaFuncSetAttribute(probe_spill, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemTwoCtasAnSm));
  probe_spill<<<kSpillCtas, kSpillThreads, kSmemTwoCtasAnSm>>>(walk, buffer, buffer + spill_base, sink.data());
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
}

}  // namespace attest::hardware
