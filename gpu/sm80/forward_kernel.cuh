// The forward as a kernel: one CTA a query tile, head, batch entry and split.
#pragma once
#include "attest/plan/forward.h"
#include "forward_ops.cuh"
#include "kernels.h"

namespace attest::sm80 {

template <Dtype T, Sm80Tile Tile, Sm80Kind Kind>
struct Config {
  static constexpr Dtype dtype = T;
  static constexpr Sm80Kind kind = Kind;
  using Plan = LaunchPlan<Kind>;
  static constexpr KernelPlan plan = sm80_plan(Tile);
  static constexpr int min_ctas = sm80_min_ctas(Tile);
  static_assert(plan.invalid() == nullptr);
  // wide copies look at no tile's end
  static_assert(plan.rows(Operand::q) % plan.copy_rows(Operand::q) == 0 &&
                plan.rows(Operand::k) % plan.copy_rows(Operand::k) == 0 &&
                plan.rows(Operand::v) % plan.copy_rows(Operand::v) == 0);
};

template <class Cfg>
__global__ void __launch_bounds__(Cfg::plan.threads(), Cfg::min_ctas)
    forward_kernel(const __grid_constant__ ForwardParams params) {
  extern __shared__ __align__(1024) char shared[];
  constexpr KernelPlan shape = Cfg::plan;
  const typename Cfg::Plan plan(shape, params);
  CtaIndex at = plan.cta_of_block(params.grid(), blockIdx.x, blockIdx.y, blockIdx.z);
  at.head *= plan.packed_heads;  // the first of them
  Work work = plan.work(
      make_work(params.launch, params.args, at.batch, static_cast<int>(at.q_tile), static_cast<int>(at.split)));
  if (Cfg::kind == Sm80Kind::fast) work.prefix = work.num_documents = work.page_size = 0;  // known here: they fold
  ForwardOps<Cfg> ops(plan, work, params, at, ptx::shared_address(shared));
  forward(plan, work, ops);
}

template <Dtype T, Sm80Tile Tile, Sm80Kind Kind>
const void* forward_function() {
  return reinterpret_cast<const void*>(&forward_kernel<Config<T, Tile, Kind>>);
}

}  // namespace attest::sm80
