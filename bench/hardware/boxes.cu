#include <cuda.h>

#include "attest/hardware/device.h"
#include "attest/hardware/key_tile.cuh"
#include "boxes.h"

namespace attest::hardware {
namespace {

constexpr int kBoxColumns = 64, kBoxRows = 32, kBoxBytes = kBoxColumns * kBoxRows * 2;

CUtensorMap map_of(const BoxWalk& walk, std::uint8_t* buffer) {
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult found;
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found));
  CUtensorMap map;
  const auto columns = static_cast<cuuint64_t>(walk.columns), heads = static_cast<cuuint64_t>(walk.heads);
  const cuuint64_t sizes[] = {columns, heads, static_cast<cuuint64_t>(walk.rows)};
  const cuuint64_t strides[] = {2 * columns, 2 * columns * heads};
  const cuuint32_t box[] = {kBoxColumns, 1, kBoxRows}, steps[] = {1, 1, 1};
  const CUresult made = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
      &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, buffer, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, static_cast<CUtensorMapL2promotion>(walk.promotion),
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (made != CUDA_SUCCESS) throw std::runtime_error("cuTensorMapEncodeTiled");
  return map;
}

__global__ void __launch_bounds__(32, 1) probe_boxes(BoxWalk walk, const __grid_constant__ CUtensorMap map,
                                                     const SmPlace* sms, int sms_of_side0, unsigned* arrived) {
  extern __shared__ __align__(1024) std::uint8_t smem[];
  __shared__ std::uint64_t barriers[1];
  const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(smem));
  const auto barrier = static_cast<std::uint32_t>(__cvta_generic_to_shared(barriers));
  unsigned generation = 0;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier));
  __syncthreads();
  const SmPlace& place = sms[sm_id()];
  const int of_side = place.side == 0 ? sms_of_side0 : static_cast<int>(gridDim.x) - sms_of_side0;
  int turn = 0;
  for (int round = 0; round < walk.rounds; ++round) {
    if (threadIdx.x == 0)
      for (int row = place.rank_of_side * kBoxRows; row < walk.rows; row += of_side * kBoxRows)
        for (int head = walk.first_head; head < walk.first_head + walk.heads_read; ++head)
          for (int column = 0; column < walk.columns; column += kBoxColumns) {
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(kBoxBytes));
            asm volatile(
                "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], "
                "[%5];" ::"r"(to),
                "l"(&map), "r"(column), "r"(head), "r"(row), "r"(barrier)
                : "memory");
            wait_for(barrier, turn);
            turn ^= 1;
          }
    grid_barrier(arrived, generation, gridDim.x);
  }
}

constexpr int kHalfBytes = 64;
constexpr int kLongestHit = 500;  // cycles: loads take up to 360 from L2 and 520 or more from DRAM

__global__ void probe_halves(const std::uint8_t* buffer, int halves, std::uint8_t* found, volatile int* sink) {
  for (int i = static_cast<int>(blockIdx.x); i < halves; i += static_cast<int>(gridDim.x)) {
    int value;
    const long long began = clock64();
    asm volatile("ld.global.cg.s32 %0, [%1];" : "=r"(value) : "l"(buffer + std::int64_t{i} * kHalfBytes) : "memory");
    if (value == 123456789) *sink = i;  // waits for it
    found[i] |= clock64() - began < kLongestHit;
  }
}

__global__ void probe_flush(const int4* bytes, std::int64_t words, volatile int* sink) {
  int sum = 0;
  for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < words;
       i += std::int64_t{gridDim.x} * blockDim.x)
    sum += __ldcg(bytes + i).x;
  if (sum == 123456789) *sink = sum;
}

}  // namespace

std::vector<int> halves_after_boxes(const BoxWalk& walk, std::uint8_t* buffer, std::int64_t bytes,
                                    const std::uint8_t* flushed, std::int64_t flushed_bytes,
                                    const std::vector<SmPlace>& sms) {
  const auto halves = static_cast<int>(bytes / kHalfBytes);
  DeviceArray<std::uint8_t> found(static_cast<std::size_t>(halves));
  const DeviceArray<int> sink(1);
  for (int repeat = 0; repeat < 3; ++repeat) {  // now and then a line is gone before it is looked for
    probe_flush<<<264, 512>>>(reinterpret_cast<const int4*>(flushed), flushed_bytes / 16, sink.data());
    run_boxes(walk, buffer, sms);
    probe_halves<<<8, 1>>>(buffer, halves, found.data(), sink.data());
    check(cudaGetLastError());
  }
  const std::vector<std::uint8_t> each = found.download();
  std::vector<int> all;
  for (int i = 0; i < halves; ++i)
    if (each[static_cast<std::size_t>(i)] != 0) all.push_back(i);
  return all;
}

void run_boxes(const BoxWalk& walk, std::uint8_t* buffer, const std::vector<SmPlace>& sms) {
  int side0 = 0;
  for (const SmPlace& place : sms) side0 += place.side == 0 ? 1 : 0;
  const DeviceArray<SmPlace> places(sms);
  const DeviceArray<unsigned> arrived(1);
  check(cudaFuncSetAttribute(probe_boxes, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemOneCtaAnSm));
  probe_boxes<<<static_cast<unsigned>(sms.size()), 32, kSmemOneCtaAnSm>>>(walk, map_of(walk, buffer), places.data(),
                                                                          side0, arrived.data());
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
}

}  // namespace attest::hardware
