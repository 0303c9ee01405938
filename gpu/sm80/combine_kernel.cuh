// The second kernel of a forward with splits: a warp adds one row's partial results.
#pragma once
#include "attest/plan/combine.h"
#include "attest/plan/combine_shape.h"
#include "forward_ops.cuh"
#include "kernels.h"

namespace attest::sm80 {

/// A warp a row, columns lane, lane + 32 and so on: any headdim_v and alignment.
constexpr KernelPlan combine_plan() {
  KernelPlan plan;
  plan.num_warps = plan.tile_m = combine_rows;
  return plan;
}

template <Dtype T, class Plan>
class CombineOps {
 public:
  struct Output {
    float x[8];
  };
  struct Weights {
    float shift, sum;  // the weight of a split is exp(LSE of the split - shift) / sum
    float mine;        // of the 32 splits that are being added, the lane's
  };

  ATTEST_DEVICE CombineOps(const Plan& plan, const Work& work, const ForwardParams& p, const CtaIndex& at)
      : plan_(plan),
        work_(work),
        p_(p),
        at_(at),
        place_(plan.combine_place(head_place(plan, p, at.batch, at.head))),
        row_(work.q_tile * plan.tile_m + warp_id()) {}

  ATTEST_DEVICE bool has_row() const { return row_ < work_.seqlen_q; }
  ATTEST_DEVICE void weigh(Output& o, Weights& w) {
#pragma unroll
    for (float& x : o.x) x = 0;
    float largest = -infinity;
    ATTEST_NO_UNROLL
    for (int split = lane_id(); split < plan_.num_splits; split += 32) largest = fmaxf(largest, partial_lse(split));
    for (int lane = 16; lane > 0; lane /= 2) largest = fmaxf(largest, __shfl_xor_sync(ptx::all_lanes, largest, lane));
    w.shift = plan_.combine_shift(largest);
    w.sum = 0;
    ATTEST_NO_UNROLL
    for (int split = lane_id(); split < plan_.num_splits; split += 32) w.sum += exponential(split, w);
    for (int lane = 16; lane > 0; lane /= 2) w.sum += __shfl_xor_sync(ptx::all_lanes, w.sum, lane);
    const float lse = w.sum == 0 ? plan_.lse_without_keys() : w.shift + logf(w.sum);
    const HeadPlace at = head_place(plan_, p_, at_.batch, at_.head);
    if (lane_id() == 0) p_.args.lse[plan_.lse_row(at) + plan_.lse_offset(at, row_, plan_.lse_stride(at))] = lse;
  }

  ATTEST_DEVICE void add_partial(Output& o, Weights& w, int split) {
    if (split % 32 == 0) w.mine = weight_of(split + lane_id(), w);
    const float weight = __shfl_sync(ptx::all_lanes, w.mine, split % 32);
    const std::int64_t row = plan_.partial_row(place_, split) + row_;
    const float* from = p_.partial_o + plan_.offset(row, partial_columns(plan_.headdim_v));
    float x[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i] = lane_id() + 32 * i < plan_.headdim_v ? from[lane_id() + 32 * i] : 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) o.x[i] += weight * x[i];
  }

  ATTEST_DEVICE void store_combined(const Output& o, const Weights&, int /*limit*/) {
    const sm80::Rows rows =
        head_rows(plan_, p_.args.o, plan_.output_bytes(), p_.args.cu_seqlens_q, at_.batch, at_.head);
    auto* to = reinterpret_cast<std::uint16_t*>(const_cast<char*>(query_address(plan_, rows, row_)));
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (lane_id() + 32 * i < plan_.headdim_v)
        to[lane_id() + 32 * i] = static_cast<std::uint16_t>(ptx::pack<T>(o.x[i], 0.0f));
  }

 private:
  ATTEST_DEVICE float partial_lse(int split) const { return p_.partial_lse[plan_.partial_row(place_, split) + row_]; }
  ATTEST_DEVICE float exponential(int split, const Weights& w) const {
    return exp2f(plan_.scale_log2(partial_lse(split) - w.shift));
  }

  ATTEST_DEVICE float weight_of(int split, const Weights& w) const {
    return split >= plan_.num_splits || w.sum == 0 ? 0.0f : __fdiv_rn(exponential(split, w), w.sum);
  }

  const Plan& plan_;
  const Work& work_;
  const ForwardParams& p_;
  const CtaIndex& at_;
  HeadPlace place_;
  int row_;
};

template <Dtype T>
__global__ void __launch_bounds__(combine_plan().threads())
    combine_kernel(const __grid_constant__ ForwardParams params) {
  constexpr KernelPlan shape = combine_plan();
  const LaunchPlan<Sm80Kind::general> plan(shape, params);
  GridExtents grid = params.grid();
  grid.splits = 1;
  grid.q_tiles = (params.launch.seqlen_q * plan.packed_heads + combine_rows - 1) / combine_rows;
  CtaIndex at = plan.cta_of_block(grid, blockIdx.x, blockIdx.y, blockIdx.z);
  at.head *= plan.packed_heads;
  const Work work = plan.work(make_work(params.launch, params.args, at.batch, static_cast<int>(at.q_tile), 0));
  CombineOps<T, LaunchPlan<Sm80Kind::general>> ops(plan, work, params, at);
  if (ops.has_row()) combine(plan, work, ops);
}

template <Dtype T>
const void* combine_function() {
  return reinterpret_cast<const void*>(&combine_kernel<T>);
}

}  // namespace attest::sm80
