// Hopper's instructions for the compile-only kernel of this folder: barriers in shared memory, bulk tensor copies,
// warpgroups' registers. wgmma itself has as many operands as it has accumulators: compile_grid.py writes it.
#pragma once
#include "skeleton.cuh"

struct alignas(64) TensorMap {
  char bytes[128];
};

// ---- barriers in shared memory
__device__ inline void barrier_init(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ inline void barrier_expect(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ inline void barrier_arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ inline void barrier_wait(unsigned barrier, unsigned phase) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n@done bra over;\nbra "
      "again;\nover:\n}" ::"r"(barrier),
      "r"(phase)
      : "memory");
}
__device__ inline void named_barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ inline void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// ---- bulk tensor copies of a box at (column, row, head, batch)
__device__ inline void copy_box(unsigned smem, const TensorMap& map, unsigned barrier, int column, int row, int head,
                                int batch) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
      "[%2];" ::"r"(smem),
      "l"(&map), "r"(barrier), "r"(column), "r"(row), "r"(head), "r"(batch)
      : "memory");
}
__device__ inline void store_box(const TensorMap& map, unsigned smem, int column, int row, int head, int batch) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map),
               "r"(smem), "r"(column), "r"(row), "r"(head), "r"(batch)
               : "memory");
}
__device__ inline void store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ inline void store_wait() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ inline void fence_shared_for_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- warpgroups
template <int registers>
__device__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int pending>
__device__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}
// Until what is in flight has ended the compiler may not touch these registers.
template <int n>
__device__ void pin(float (&x)[n][4]) {
#pragma unroll
  for (int i = 0; i < n; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) asm volatile("" : "+f"(x[i][j])::"memory");
}

// A matrix in panels of `panel_bytes` a row, swizzled over 8 rows: 128 bytes, 64 or 32.
__device__ inline unsigned long long descriptor(unsigned smem, int panel_bytes, int leading_bytes) {
  const unsigned long long swizzle = panel_bytes == 128 ? 1 : panel_bytes == 64 ? 2 : 3;
  const auto stride = static_cast<unsigned long long>(8 * panel_bytes / 16);
  return (smem & 0x3ffff) / 16 | static_cast<unsigned long long>(leading_bytes / 16) << 16 | stride << 32 |
         swizzle << 62;
}
__device__ inline void stmatrix(unsigned smem, const unsigned (&f)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(smem), "r"(f[0]), "r"(f[1]),
               "r"(f[2]), "r"(f[3])
               : "memory");
}
