// The operations of gpu/plan's forward() for one warp, in PTX.
#pragma once
#include "attest/plan/combine.h"
#include "attest/sm80/params.h"
#include "copies.cuh"
#include "softmax.cuh"

namespace attest::sm80 {

/// A CTA's head of a tensor. `packed`: rows of all batch entries follow each other.
template <class Plan>
ATTEST_DEVICE Rows head_rows(const Plan& plan, const TensorRef& t, int element_bytes, const std::int32_t* cu_seqlens,
                             std::int64_t batch, std::int64_t head) {
  const std::int64_t first = cu_seqlens != nullptr ? plan.offset(plan.first_row(cu_seqlens, batch), t.row_stride)
                                                   : plan.offset(batch, t.batch_stride);
  const std::int64_t elements = first + plan.offset(head, t.head_stride);
  Rows rows;
  rows.base = static_cast<const char*>(t.data) + elements * element_bytes;
  rows.row_bytes = t.row_stride * element_bytes;
  rows.head_bytes = t.head_stride * element_bytes;
  return rows;
}

template <class Plan>
ATTEST_DEVICE Rows key_rows(const Plan& plan, const TensorRef& t, const ForwardArgs& args, std::int64_t batch,
                            std::int64_t head) {
  if (args.page_table == nullptr) return head_rows(plan, t, plan.element_bytes, args.cu_seqlens_k, batch, head);
  Rows rows = head_rows(plan, t, plan.element_bytes, nullptr, 0, head);
  rows.pages = args.page_table + plan.offset(batch, args.pages_per_sequence);
  rows.page_size = args.page_size;
  rows.page_bytes = t.batch_stride * plan.element_bytes;
  return rows;
}

template <class Plan>
ATTEST_DEVICE HeadPlace head_place(const Plan& plan, const ForwardParams& p, std::int64_t batch, std::int64_t head) {
  HeadPlace at{batch, head, p.num_batches, p.nheads, p.launch.seqlen_q};
  if (p.args.cu_seqlens_q != nullptr) {
    at.packed = true;
    at.first_row = plan.first_row(p.args.cu_seqlens_q, batch);
    at.total_q = p.args.cu_seqlens_q[p.num_batches];
  }
  return at;
}

/// Copies of any granule, of pages and of packed heads. Not inlined: it is rare, and would stand in the way of what
/// is not; so it finds its rows again.
template <class Cfg>
__device__ __noinline__ void copy_general(const ForwardParams& p, unsigned batch, unsigned head, std::uint32_t smem,
                                          Operand x, int slot, int row0, int limit) {
  constexpr KernelPlan shape = Cfg::plan;
  const typename Cfg::Plan plan(shape, p);
  const std::int64_t head_k = plan.kv_head(static_cast<int>(head), p.nheads, p.nheads_k);
  const Rows rows = x == Operand::q ? head_rows(plan, p.args.q, plan.element_bytes, p.args.cu_seqlens_q, batch, head)
                                    : key_rows(plan, x == Operand::k ? p.args.k : p.args.v, p.args, batch, head_k);
  GeneralCopy<typename Cfg::Plan> ins(plan, rows, smem);
  emit_copy(plan, ins, copy_lanes(plan, ins, x), x, slot, row0, limit);
}

template <class Cfg>
class ForwardOps {
 public:
  using Plan = typename Cfg::Plan;
  using Query = typename Registers<Cfg>::Query;
  using Scores = typename Registers<Cfg>::Scores;
  using Output = typename Registers<Cfg>::Output;
  using RowState = typename Registers<Cfg>::Rows;
  using Rows = RowState;  // the role's name for it

  ATTEST_DEVICE ForwardOps(const Plan& plan, const Work& work, const ForwardParams& p, const CtaIndex& at,
                           std::uint32_t smem)
      : plan_(plan), work_(work), p_(p), at_(at), ins_{{}, smem}, lanes_(fragment_lanes(plan, ins_)) {
    const std::int64_t head_k = plan.kv_head(static_cast<int>(at.head), p.nheads, p.nheads_k);
    q_ = head_rows(plan, p.args.q, plan.element_bytes, p.args.cu_seqlens_q, at.batch, at.head);
    k_ = key_rows(plan, p.args.k, p.args, at.batch, head_k);
    v_ = key_rows(plan, p.args.v, p.args, at.batch, head_k);
    // without modifiers the softmax scale stands in the exponent
    scale_log2_ = plan.scale_log2(plan.modifies_scores() ? 1.0f : p.softmax_scale);
  }

  ATTEST_DEVICE int warp() const { return warp_id(); }

  ATTEST_DEVICE void copy(Operand x, int slot, int /*tile*/, int row0, int limit) {
    copy_rows<true>(true, x, slot, row0, limit);
  }
  ATTEST_DEVICE void copy_whole(bool there, Operand x, int slot, int /*tile*/, int row0, int limit) {
    copy_rows<false>(there, x, slot, row0, limit);
  }
  ATTEST_DEVICE void commit() { ptx::commit_group(); }
  ATTEST_DEVICE void wait(int pending) { ptx::wait_group(pending); }
  ATTEST_DEVICE void barrier() { __syncthreads(); }
  ATTEST_DEVICE void warp_barrier() { __syncwarp(); }

  ATTEST_DEVICE void clear(Output& o, RowState& rows) {
#pragma unroll
    for (int m = 0; m < Registers<Cfg>::m_blocks; ++m) {
#pragma unroll
      for (int d = 0; d < Registers<Cfg>::d_blocks; ++d)
#pragma unroll
        for (int e = 0; e < 4; ++e) o.x[m][d][e] = 0;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        rows.max[m][h] = plan_.masked_score();
        rows.sum[m][h] = 0;
      }
    }
  }
  ATTEST_DEVICE void load_query(Query& q) {
#pragma unroll
    for (int step = 0; step < Registers<Cfg>::k_steps; ++step) emit_load_query(plan_, ins_, lanes_, q, step);
  }
  ATTEST_DEVICE void scores(Scores& s, Query& q, int slot, int /*tile*/) {
    emit_scores(plan_, ins_, lanes_, s, q, slot);
  }
  ATTEST_DEVICE void modify(Scores& s, int tile, int row_limit) {
    modify_scores<Cfg>(plan_, work_, score_numbers(), first_row(), tile * plan_.tile_n, row_limit, s);
  }
  ATTEST_DEVICE void mask(Scores& s, int tile) { mask_scores<Cfg>(plan_, work_, first_row(), tile * plan_.tile_n, s); }
  ATTEST_DEVICE void softmax(Scores& s, Output& o, RowState& rows, bool /*first*/) {
    update_softmax<Cfg>(plan_, scale_log2_, s, o, rows);
  }
  ATTEST_DEVICE void output(Output& o, Scores& s, int slot, int /*tile*/) {
    emit_output(plan_, ins_, lanes_, o, s, slot);
  }

  ATTEST_DEVICE void finish(Output& o, RowState& rows) {
    const bool sink = plan_.takes_sink(work_);
    const float sink_score = sink ? p_.args.sink[at_.head] : 0.0f;
    const HeadPlace place = head_place(plan_, p_, at_.batch, at_.head);
    const bool partial = plan_.num_splits > 1;
    float* lse = partial ? p_.partial_lse + plan_.partial_row(place, work_.split) : p_.args.lse + plan_.lse_row(place);
#pragma unroll
    for (int m = 0; m < Registers<Cfg>::m_blocks; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const RowEnd end = end_row(plan_, scale_log2_, rows.max[m][h], ptx::quad_sum(rows.sum[m][h]), sink, sink_score);
        const int row = first_row() + row_of(m, h);
        if (first_key() == 0 && row < work_.seqlen_q)
          lse[partial ? row : plan_.lse_offset(place, row, plan_.lse_stride(place))] = end.lse;
        rescale_row<Cfg>(o, rows, m, h, end.inverse);
      }
  }
  ATTEST_DEVICE void stage(const Output& o) { emit_stage(plan_, ins_, lanes_, o); }
  ATTEST_DEVICE void store(int limit) {
    const sm80::Rows rows =
        head_rows(plan_, p_.args.o, plan_.output_bytes(), p_.args.cu_seqlens_q, at_.batch, at_.head);
    const int row0 = work_.q_tile * plan_.tile_m;
    if (Cfg::kind == Sm80Kind::fast || plan_.copy_bytes_o == 16) {
      Plan wide = plan_;
      wide.copy_bytes_o = 16;
      Store<Plan> ins(wide, rows, ins_.smem);
      emit_store(wide, ins, row0, limit);
    } else {
      Store<Plan> ins(plan_, rows, ins_.smem);
      emit_store(plan_, ins, row0, limit);
    }
  }
  ATTEST_DEVICE void store_partial(const Output& o, int limit) {
    const HeadPlace place = head_place(plan_, p_, at_.batch, at_.head);
    const std::int64_t row0 = plan_.partial_row(place, work_.split);
#pragma unroll
    for (int m = 0; m < Registers<Cfg>::m_blocks; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = first_row() + row_of(m, h);
        float* to = p_.partial_o + plan_.offset(row0 + row, partial_columns(plan_.headdim_v)) + first_key();
#pragma unroll
        for (int d = 0; d < Registers<Cfg>::d_blocks; ++d)
          if (row < limit && first_key() + 8 * d < plan_.headdim_v)
            ptx::store_pair(to + 8 * d, o.x[m][d][2 * h], o.x[m][d][2 * h + 1]);
      }
  }

 private:
  template <bool Ragged>
  ATTEST_DEVICE void copy_rows(bool there, Operand x, int slot, int row0, int limit) {
    const sm80::Rows& rows = x == Operand::q ? q_ : x == Operand::k ? k_ : v_;
    const bool wide_path = x == Operand::q ? p_.wide_q : x == Operand::k ? p_.wide_k : p_.wide_v;
    if (Cfg::kind == Sm80Kind::fast || wide_path) {
      Plan wide = plan_;
      wide.copy_bytes_q = wide.copy_bytes_k = wide.copy_bytes_v = 16;
      WideCopy<Plan, Ragged> ins(wide, rows, ins_.smem, x, row0, there);
      emit_copy(wide, ins, copy_lanes(wide, ins, x), x, slot, row0, limit);
    } else if constexpr (Cfg::kind == Sm80Kind::general) {
      if (there)
        copy_general<Cfg>(p_, static_cast<unsigned>(at_.batch), static_cast<unsigned>(at_.head), ins_.smem, x, slot,
                          row0, limit);
    }
  }
  ATTEST_DEVICE int first_row() const { return work_.q_tile * plan_.tile_m + warp() * plan_.rows_per_warp(); }
  ATTEST_DEVICE ScoreNumbers score_numbers() const {
    ScoreNumbers n;
    n.scale = p_.softmax_scale;
    n.softcap = p_.softcap_value;
    if (plan_.alibi) n.slope = p_.args.alibi_slopes[at_.batch * p_.nheads + at_.head];
    if (plan_.bias) {
      n.bias = p_.args.bias + plan_.offset(at_.batch, p_.args.bias_batch_stride) +
               plan_.offset(at_.head, p_.args.bias_head_stride);
      n.bias_row_stride = p_.args.bias_row_stride;
    }
    return n;
  }

  const Plan& plan_;
  const Work& work_;
  const ForwardParams& p_;
  const CtaIndex& at_;
  MatrixInstructions<Cfg> ins_;
  FragmentLanes<MatrixInstructions<Cfg>> lanes_;
  sm80::Rows q_, k_, v_;
  float scale_log2_ = 1;
};

}  // namespace attest::sm80
