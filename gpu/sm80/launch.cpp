#include "attest/gpu/cuda_error.h"
#include "attest/sm80/sm80_forward.h"
#include "kernels.h"

namespace attest::sm80 {
namespace {

template <Dtype T>
const void* function_of(Sm80Tile tile, Sm80Kind kind) {
  using enum Sm80Tile;
  using enum Sm80Kind;
  const bool is_fast = kind == fast;
  switch (tile) {
    case d64:
      return is_fast ? forward_function<T, d64, fast>() : forward_function<T, d64, general>();
    case d96:
      return forward_function<T, d96, fast>();
    case d128:
      return is_fast ? forward_function<T, d128, fast>() : forward_function<T, d128, general>();
    case d192v128:
      return forward_function<T, d192v128, fast>();
    case d192:
      return forward_function<T, d192, fast>();
    case d256:
      return is_fast ? forward_function<T, d256, fast>() : forward_function<T, d256, general>();
    case d128_short:
      return forward_function<T, d128_short, general>();
    case d256_short:
      return forward_function<T, d256_short, general>();
  }
  return nullptr;
}

void launch(const char* name, const void* function, const GridExtents& grid, int threads, std::uint32_t smem_bytes,
            const ForwardParams& params, cudaStream_t stream) {
  if (grid.size() == 0) return;
  if (smem_bytes > 48 << 10)
    cuda_check(
        cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(smem_bytes)),
        name);
  const dim3 blocks(static_cast<unsigned>(grid.q_tiles * grid.splits), static_cast<unsigned>(grid.nheads),
                    static_cast<unsigned>(grid.num_batches));
  void* arguments[] = {const_cast<ForwardParams*>(&params)};
  cuda_check(cudaLaunchKernel(function, blocks, dim3(static_cast<unsigned>(threads)), arguments, smem_bytes, stream),
             name);
}

}  // namespace

void launch_forward(const Case& c, const ForwardParams& params, cudaStream_t stream) {
  const void* function = c.problem.dtype == Dtype::bf16 ? function_of<Dtype::bf16>(params.tile, params.kind())
                                                        : function_of<Dtype::fp16>(params.tile, params.kind());
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
