#include "attest/gpu/cuda_error.h"
#include "attest/gpu/device.h"
#include "copies.cuh"
#include "copy_probe.h"

namespace attest::test {
namespace {

template <class Ins>
__device__ void copy(const KernelPlan& plan, Ins ins, Operand x, int slot, int row0, int limit) {
  emit_copy(plan, ins, copy_lanes(plan, ins, x), x, slot, row0, limit);
}

__global__ void copy_kernel(KernelPlan plan, CopyWay way, Operand x, int slot, int row0, int limit, sm80::Rows rows,
                            std::uint8_t* out) {
  extern __shared__ __align__(1024) std::uint8_t shared[];
  const std::uint32_t smem = ptx::shared_address(shared);
  for (unsigned i = threadIdx.x; i < plan.smem_bytes(); i += blockDim.x) shared[i] = 0xee;
  __syncthreads();
  if (way == CopyWay::none || way == CopyWay::whole)
    copy(plan, sm80::WideCopy<KernelPlan, false>(plan, rows, smem, x, row0, way == CopyWay::whole), x, slot, row0,
         limit);
  else if (way == CopyWay::ragged)
    copy(plan, sm80::WideCopy<KernelPlan, true>(plan, rows, smem, x, row0, true), x, slot, row0, limit);
  else
    copy(plan, sm80::GeneralCopy<KernelPlan>(plan, rows, smem), x, slot, row0, limit);
  ptx::commit_group();
  ptx::wait_group(0);
  __syncthreads();
  for (unsigned i = threadIdx.x; i < plan.smem_bytes(); i += blockDim.x) out[i] = shared[i];
}

__global__ void store_kernel(KernelPlan plan, int row0, int limit, sm80::Rows rows, const std::uint8_t* from) {
  extern __shared__ __align__(1024) std::uint8_t shared[];
  for (unsigned i = threadIdx.x; i < plan.smem_bytes(); i += blockDim.x) shared[i] = from[i];
  __syncthreads();
  sm80::Store<KernelPlan> ins(plan, rows, ptx::shared_address(shared));
  emit_store(plan, ins, row0, limit);
}

std::uint8_t* upload(DeviceMemory& memory, const std::vector<std::uint8_t>& bytes) {
  memory.reserve(bytes.size());
  cuda_check(cudaMemcpy(memory.data(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "cudaMemcpy to the device");
  return reinterpret_cast<std::uint8_t*>(memory.data());
}

std::vector<std::uint8_t> download(const DeviceMemory& memory, std::size_t bytes) {
  cuda_check_launch("a probe");
  std::vector<std::uint8_t> result(bytes);
  cuda_check(cudaMemcpy(result.data(), memory.data(), bytes, cudaMemcpyDeviceToHost), "cudaMemcpy to the host");
  return result;
}

template <class Kernel>
void allow(Kernel* kernel, const KernelPlan& plan) {
  cuda_check(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(plan.smem_bytes())),
      "cudaFuncSetAttribute");
}

}  // namespace

std::vector<std::uint8_t> run_tile_copy(const KernelPlan& plan, CopyWay way, Operand x, int slot, int row0, int limit,
                                        const std::vector<std::uint8_t>& from, std::int64_t row_bytes) {
  DeviceMemory in, out;
  sm80::Rows rows;
  rows.base = reinterpret_cast<const char*>(upload(in, from));
  rows.row_bytes = row_bytes;
  out.reserve(plan.smem_bytes());
  allow(copy_kernel, plan);
  copy_kernel<<<1, static_cast<unsigned>(plan.threads()), plan.smem_bytes()>>>(
      plan, way, x, slot, row0, limit, rows, reinterpret_cast<std::uint8_t*>(out.data()));
  return download(out, plan.smem_bytes());
}

std::vector<std::uint8_t> run_tile_store(const KernelPlan& plan, int row0, int limit,
                                         const std::vector<std::uint8_t>& shared, std::size_t bytes,
                                         std::int64_t row_bytes) {
  DeviceMemory in, out;
  sm80::Rows rows;
  rows.base = reinterpret_cast<const char*>(upload(out, std::vector<std::uint8_t>(bytes, 0xee)));
  rows.row_bytes = row_bytes;
  const std::uint8_t* from = upload(in, shared);
  allow(store_kernel, plan);
  store_kernel<<<1, static_cast<unsigned>(plan.threads()), plan.smem_bytes()>>>(plan, row0, limit, rows, from);
  return download(out, bytes);
}

}  // namespace attest::test
