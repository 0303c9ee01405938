#include "attest/gpu/cuda_error.h"
#include "attest/plan/combine_shape.h"
#include "attest/plan/num_splits.h"
#include "attest/sm80/sm80_forward.h"
#include "kernels.h"

namespace attest::sm80 {
namespace {

// Null where the library has no such kernel.
template <Dtype T>
const void* function_of(Sm80Tile tile, Sm80Kind kind) {
  using enum Sm80Tile;
  using enum Sm80Kind;
  const bool is_fast = kind == fast;
  switch (tile) {
    case d64:
      return is_fast ? forward_function<T, d64, fast>() : forward_function<T, d64, general>();
    case d96:
      return is_fast ? forward_function<T, d96, fast>() : nullptr;
    case d128:
      return is_fast ? forward_function<T, d128, fast>() : forward_function<T, d128, general>();
    case d192v128:
      return is_fast ? forward_function<T, d192v128, fast>() : nullptr;
    case d192:
      return is_fast ? forward_function<T, d192, fast>() : nullptr;
    case d256:
      return is_fast ? forward_function<T, d256, fast>() : forward_function<T, d256, general>();
    case d128_short:
      return is_fast ? nullptr : forward_function<T, d128_short, general>();
    case d256_short:
      return is_fast ? nullptr : forward_function<T, d256_short, general>();
  }
  return nullptr;
}

const void* function_of(Dtype dtype, Sm80Tile tile, Sm80Kind kind) {
  return dtype == Dtype::bf16 ? function_of<Dtype::bf16>(tile, kind) : function_of<Dtype::fp16>(tile, kind);
}

void allow_smem(const char* name, const void* function, std::uint32_t bytes) {
  if (bytes > 48 << 10)
    cuda_check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
               name);
}

void launch(const char* name, const void* function, const GridExtents& grid, int threads, std::uint32_t smem_bytes,
            const ForwardParams& params, cudaStream_t stream) {
  if (grid.size() == 0) return;
  allow_smem(name, function, smem_bytes);
  const dim3 blocks(static_cast<unsigned>(grid.q_tiles * grid.splits), static_cast<unsigned>(grid.nheads),
                    static_cast<unsigned>(grid.num_batches));
  void* arguments[] = {const_cast<ForwardParams*>(&params)};
  cuda_check(cudaLaunchKernel(function, blocks, dim3(static_cast<unsigned>(threads)), arguments, smem_bytes, stream),
             name);
}

}  // namespace

Sm80Choice choice_of(const ForwardParams& params) { return sm80_compiled(params.tile, params.kind()); }

bool has_kernel(Sm80Tile tile, Sm80Kind kind) { return function_of<Dtype::bf16>(tile, kind) != nullptr; }

KernelResources resources_of(Dtype dtype, Sm80Tile tile, Sm80Kind kind) {
  constexpr const char* name = "resources of an sm80 forward";
  const void* function = function_of(dtype, tile, kind);
  const KernelPlan plan = sm80_plan(tile);
  cudaFuncAttributes attributes{};
  cuda_check(cudaFuncGetAttributes(&attributes, function), name);
  allow_smem(name, function, plan.smem_bytes());
  KernelResources resources{attributes.numRegs, static_cast<int>(attributes.localSizeBytes), 0};
  cuda_check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resources.ctas_per_sm, function, plan.threads(),
                                                           plan.smem_bytes()),
             name);
  return resources;
}

int choose_splits(const Case& c, const DeviceLimits& device) {
  const Sm80Choice choice = sm80_choice(c);
  KernelPlan plan = sm80_plan(choice.tile);
  plan.packed_heads = sm80_packed_heads(c.problem);
  const int ctas_per_sm = resources_of(c.problem.dtype, choice.tile, choice.kind).ctas_per_sm;
  return choose_num_splits(plan, c.problem, device.num_sms, ctas_per_sm);
}

void launch_forward(const Case& c, const ForwardParams& params, cudaStream_t stream) {
  const auto [tile, kind] = choice_of(params);
  const void* function = function_of(c.problem.dtype, tile, kind);
  launch_forward(c, params, function, sm80_plan(params.tile), stream);
}

void launch_forward(const Case& c, const ForwardParams& params, const void* function, const KernelPlan& plan,
                    cudaStream_t stream) {
  const bool bf16 = c.problem.dtype == Dtype::bf16;
  GridExtents grid = params.grid();
  launch("sm80 forward", function, grid, plan.threads(), plan.smem_bytes(), params, stream);
  if (params.num_splits == 1) return;
  grid.splits = 1;
  grid.q_tiles = (params.launch.seqlen_q * params.launch.packed_heads + combine_rows - 1) / combine_rows;
  launch("sm80 combine", bf16 ? combine_function<Dtype::bf16>() : combine_function<Dtype::fp16>(), grid,
         32 * combine_rows, 0, params, stream);
}

}  // namespace attest::sm80
