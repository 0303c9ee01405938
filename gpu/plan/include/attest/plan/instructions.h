// The tile steps of a kernel as warp instructions. CUDA compiles these with instructions that issue PTX; the host runs
// them to learn the addresses that each warp touches. Written once, so a count is the kernel's own.
//
// `Ins` supplies, for one warp:
//   Lanes, lanes(f)         a number a lane: f(lane)
//   copy(x, granule)        global to shared, asynchronous where the granule is 4 bytes or more
//   load_matrix<transposed> ldmatrix.x4;   load_words: 4 words a lane
//   part_columns(f)         four byte permutations: f = even columns' operand, then odd ones' (see b_bytes_cell)
//   mma_scores, mma_output  one 16 x 16 block of S or O, one matrix step
//   stage                   a pair of O's accumulators to shared memory, or of two blocks' pairs with 8-bit inputs
//   store                   shared memory to global
#pragma once
#include <algorithm>

#include "attest/plan/fragment.h"
#include "attest/plan/kernel_plan.h"

namespace attest {

/// One warp-wide copy of a granule a lane. Lanes whose row in the tile is `tile_rows` or more have none; rows from
/// `limit` on and bytes from `row_bytes` on are filled with zeros instead of read.
template <class Lanes>
struct Granule {
  Operand operand;
  int bytes;
  const Lanes &smem, &row, &byte;         // lane parts: address, row in this pass, byte in the row
  std::uint32_t smem_xor, smem_add;       // address = (smem ^ smem_xor) + smem_add
  int row0, pass_row0, byte0, tile_rows;  // global row = row0 + pass_row0 + row; byte in the row = byte0 + byte
  int limit, row_bytes;
};

template <class Ins>
struct CopyLanes {
  typename Ins::Lanes row, byte, smem;
};

/// The lane parts of copies of `x` by this warp: computed once a kernel.
template <class Plan, class Ins>
ATTEST_ROLE CopyLanes<Ins> copy_lanes(const Plan& plan, const Ins& ins, Operand x) {
  const int warp = ins.warp(), lanes = plan.copy_lanes(x), bytes = plan.copy_bytes(x);
  const auto layout = plan.layout(x);
  return {ins.lanes([&](int lane) { return static_cast<std::uint32_t>((warp * 32 + lane) / lanes); }),
          ins.lanes([&](int lane) { return static_cast<std::uint32_t>((warp * 32 + lane) % lanes * bytes); }),
          ins.lanes([&](int lane) {
            const int thread = warp * 32 + lane, byte = thread % lanes * bytes;
            return layout.lane_part({thread / lanes, byte / 16}) + static_cast<std::uint32_t>(byte % 16);
          })};
}

/// This warp's share of a tile of `x`, from global row `row0`, into `slot`.
template <class Plan, class Ins>
ATTEST_ROLE void emit_copy(const Plan& plan, Ins& ins, const CopyLanes<Ins>& at, Operand x, int slot, int row0,
                           int limit) {
  const auto layout = plan.layout(x);
  const int rows = plan.copy_rows(x), panel_bytes = plan.copy_lanes(x) * plan.copy_bytes(x);
  const int row_bytes = plan.columns(x) * plan.element_bytes;
  ATTEST_UNROLL
  for (int row = 0; row < plan.rows(x); row += rows) {
    ATTEST_UNROLL
    for (int byte = 0; byte < row_bytes; byte += panel_bytes) {
      const int chunk = byte / 16;
      ins.copy(Granule<typename Ins::Lanes>{
          x, plan.copy_bytes(x), at.smem, at.row, at.byte, layout.step_xor(chunk),
          plan.base(x, slot) + layout.step_add(row, chunk) + static_cast<std::uint32_t>(byte % 16), row0, row, byte,
          plan.rows(x), limit, plan.column_limit(x) * plan.element_bytes});
    }
  }
}

/// Lane parts of fragment loads and of O's staging.
template <class Ins>
struct FragmentLanes {
  typename Ins::Lanes q, k, v, v_words[4], o;
};

template <class Plan, class Ins>
ATTEST_ROLE FragmentLanes<Ins> fragment_lanes(const Plan& plan, const Ins& ins) {
  const auto part = [&](Operand x, auto cell) {
    const auto layout = plan.layout(x);
    return ins.lanes([&](int lane) { return layout.lane_part(cell(lane)); });
  };
  const auto word = [&](int reg) {  // V as 32-bit words: the column's word within its chunk
    const auto layout = plan.layout(Operand::v);
    return ins.lanes([&](int lane) {
      const Element e = b_word(lane, reg);
      return layout.lane_part({e.row, e.col / 4}) + static_cast<std::uint32_t>(e.col % 4) * 4;
    });
  };
  const auto pair = [&] {  // a lane's two accumulators of a row, or four of even and odd columns
    const auto layout = plan.layout(Operand::o);
    return ins.lanes([&](int lane) {
      const int byte = plan.element_bytes == 1 ? 8 * (lane & 3) : accumulator(lane, 0).col * plan.element_bytes;
      return layout.lane_part({accumulator(lane, 0).row, byte / 16}) + static_cast<std::uint32_t>(byte % 16);
    });
  };
  return {part(Operand::q, a_cell),
          part(Operand::k, b_cell),
          part(Operand::v,
               [&](int lane) { return plan.element_bytes == 1 ? b_bytes_cell(lane) : b_transposed_cell(lane); }),
          {word(0), word(1), word(2), word(3)},
          pair()};
}

/// Q's fragments of one matrix step.
template <class Plan, class Ins, class Query>
ATTEST_ROLE void emit_load_query(const Plan& plan, Ins& ins, const FragmentLanes<Ins>& at, Query& q, int step) {
  const auto layout = plan.layout(Operand::q);
  const int row0 = ins.warp() * plan.rows_per_warp();
  ATTEST_UNROLL
  for (int m = 0; m < plan.m_blocks(); ++m)
    ins.template load_matrix<false>(Operand::q, q.at(m, step), at.q, layout.step_xor(2 * step),
                                    plan.base(Operand::q, 0) + layout.step_add(row0 + 16 * m, 2 * step));
}

/// S = Q K^T for this warp's rows and the keys of `slot`.
template <class Plan, class Ins, class Query, class Scores>
ATTEST_ROLE void emit_scores(const Plan& plan, Ins& ins, const FragmentLanes<Ins>& at, Scores& s, Query& q, int slot) {
  const auto layout = plan.layout(Operand::k);
  const int steps = plan.columns(Operand::k) / plan.k_step();
  ATTEST_UNROLL
  for (int step = 0; step < steps; ++step) {
    if (!plan.q_in_registers) emit_load_query(plan, ins, at, q, step);
    ATTEST_UNROLL
    for (int n = 0; n < plan.tile_n / 16; ++n) {
      typename Ins::Fragment b;
      ins.template load_matrix<false>(Operand::k, b, at.k, layout.step_xor(2 * step),
                                      plan.base(Operand::k, slot) + layout.step_add(16 * n, 2 * step));
      ATTEST_UNROLL
      for (int m = 0; m < plan.m_blocks(); ++m) ins.mma_scores(s, m, n, q.at(m, step), b, step == 0);
    }
  }
}

/// O += P V for this warp's rows and the keys of `slot`. P is made of the scores' registers, a step of keys at a time.
template <class Plan, class Ins, class Output, class Scores>
ATTEST_ROLE void emit_output(const Plan& plan, Ins& ins, const FragmentLanes<Ins>& at, Output& o, Scores& s, int slot) {
  const auto layout = plan.layout(Operand::v);
  const int keys = plan.k_step();  // 16 keys of 16-bit elements, 8 of 32-bit, 32 of 8-bit
  const int chunks = 16 / plan.chunk_elements();
  ATTEST_UNROLL
  for (int step = 0; step < plan.tile_n / keys; ++step) {
    typename Ins::Probabilities p;
    ATTEST_UNROLL
    for (int m = 0; m < plan.m_blocks(); ++m) ins.probability(p.at(m), s, m, step);
    ATTEST_UNROLL
    for (int d = 0; d < plan.columns(Operand::v) / 16; ++d) {
      typename Ins::Fragment b;
      const std::uint32_t add = plan.base(Operand::v, slot) + layout.step_add(keys * step, chunks * d);
      if (plan.element_bytes <= 2)
        ins.template load_matrix<true>(Operand::v, b, at.v, layout.step_xor(chunks * d), add);
      if (plan.element_bytes == 1) ins.part_columns(b);
      if (plan.element_bytes == 4) ins.load_words(Operand::v, b, at.v_words, layout.step_xor(chunks * d), add);
      ATTEST_UNROLL
      for (int m = 0; m < plan.m_blocks(); ++m) ins.mma_output(o, m, d, p.at(m), b);
    }
  }
}

/// This warp's rows of O, from registers to shared memory.
template <class Plan, class Ins, class Output>
ATTEST_ROLE void emit_stage(const Plan& plan, Ins& ins, const FragmentLanes<Ins>& at, const Output& o) {
  const auto layout = plan.layout(Operand::o);
  const int row0 = ins.warp() * plan.rows_per_warp();
  // columns staged at once, and their chunks: a block of 8 is one chunk of 16-bit elements, two of 32-bit; with 8-bit
  // inputs two blocks lie interleaved in 16 columns of 16 bits
  const int columns = plan.element_bytes == 1 ? 16 : 8, chunks = columns * plan.output_bytes() / 16;
  ATTEST_UNROLL
  for (int m = 0; m < plan.m_blocks(); ++m) {
    ATTEST_UNROLL
    for (int d = 0; d < plan.columns(Operand::o) / columns; ++d) {
      ATTEST_UNROLL
      for (int half = 0; half < 2; ++half)
        ins.stage(o, m, d, half, at.o, layout.step_xor(chunks * d),
                  plan.base(Operand::o, 0) + layout.step_add(row0 + 16 * m + 8 * half, chunks * d));
    }
  }
}

/// This warp's rows of O, from shared memory to global, whole rows at a time. `row0` is the CTA's first row.
template <class Plan, class Ins>
ATTEST_ROLE void emit_store(const Plan& plan, Ins& ins, int row0, int limit) {
  const auto layout = plan.layout(Operand::o);
  const int lanes = plan.store_lanes(), bytes = plan.copy_bytes_o, warp_row0 = ins.warp() * plan.rows_per_warp();
  const int row_bytes = plan.columns(Operand::o) * plan.output_bytes();
  const bool idle = plan.stores_with_idle_lanes();  // past the end of a row they look at its last granule
  const auto row = ins.lanes([&](int lane) { return static_cast<std::uint32_t>(lane / lanes); });
  const auto byte = ins.lanes([&](int lane) { return static_cast<std::uint32_t>(lane % lanes * bytes); });
  ATTEST_UNROLL
  for (int r = 0; r < plan.rows_per_warp(); r += plan.store_rows()) {
    ATTEST_UNROLL
    for (int b = 0; b < row_bytes; b += lanes * bytes) {
      // a pass may be of fewer than 8 rows, so the swizzle is computed anew
      const auto smem = ins.lanes([&](int lane) {
        const int at_byte = idle ? std::min(b + lane % lanes * bytes, row_bytes - bytes) : b + lane % lanes * bytes;
        return layout.offset({warp_row0 + r + lane / lanes, at_byte / 16}) + static_cast<std::uint32_t>(at_byte % 16);
      });
      ins.store(Granule<typename Ins::Lanes>{Operand::o, bytes, smem, row, byte, 0u, plan.base(Operand::o, 0),
                                             row0 + warp_row0, r, b, plan.rows_per_warp(), limit,
                                             plan.column_limit(Operand::o) * plan.output_bytes()});
    }
  }
}

}  // namespace attest
