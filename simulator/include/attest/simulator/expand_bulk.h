// The steps of a warp-specialised kernel as accesses to memory: bulk tensor copies (TMA), wgmma's operand reads, P and
// O staged by stmatrix. Sinks as in expand.h.
#pragma once
#include "attest/simulator/expand.h"

namespace attest {

/// Calls f(SharedAccess) for 16-byte chunks of `rows` rows from `row0` and of all columns of a tile: 8 rows of a chunk
/// at a time and four such groups an access, which is how ldmatrix, stmatrix and wgmma read or write a tile.
template <class F>
void for_chunk_groups(const PanelLayout& layout, std::uint32_t base, SharedAccess::Kind kind, Operand x, int row0,
                      int rows, F&& f) {
  SharedAccess access{kind, x, 16, 0, {}};
  int lane = 0;
  for (int row = row0; row < row0 + rows; row += 8) {
    for (int chunk = 0; chunk < layout.row_chunks; ++chunk) {
      for (int r = 0; r < 8; ++r, ++lane) {
        access.address[static_cast<std::size_t>(lane)] = base + layout.offset({row + r, chunk});
        access.active |= 1u << lane;
      }
      if (lane < 32) continue;
      f(access);
      access.active = 0;
      lane = 0;
    }
  }
  if (lane != 0) f(access);
}

/// A whole box of a tensor: rows past the end are filled with zeros and move all the same; a store leaves them out.
template <class Plan, class Sink>
void expand_bulk_copy(const Plan& plan, const Step& step, Sink& sink) {
  const PanelLayout layout = plan.panel_layout(step.operand);
  for_chunk_groups(layout, plan.base(step.operand, step.slot), SharedAccess::Kind::fill_bulk, step.operand, 0,
                   plan.rows(step.operand), [&](const SharedAccess& a) { sink.shared(a); });
  for (int row = 0; row < plan.rows(step.operand); ++row)
    sink.bulk_row(step.operand, step.row0 + row, layout.row_chunks * 16, false);
}

template <class Plan, class Sink>
void expand_warp_specialized(const Plan& plan, const Work& work, const Step& step, int warp, Sink& sink) {
  const auto shared = [&](const SharedAccess& a) { sink.shared(a); };
  const int rows = plan.rows_per_warp(), row0 = warp * rows;
  const bool leads = warp % 4 == 0;  // what a warpgroup reads once stands with its first warp
  const auto steps = [&](int columns, int k) {
    for (int i = 0; i < columns / 16 * (k / plan.k_step()); ++i) sink.matrix_step();
  };
  switch (step.kind) {
    case Step::Kind::next_tile: {  // a word: written by the producer, who has it from an atomic, read by the others
      SharedAccess word{SharedAccess::Kind::load_word, Operand::q, 4, 1, {}};
      sink.shared(word);
      if (warp == plan.num_warps) sink.atomic();
      break;
    }
    case Step::Kind::copy:
      expand_bulk_copy(plan, step, sink);
      break;
    case Step::Kind::scores:
      for_chunk_groups(plan.panel_layout(Operand::q), plan.base(Operand::q, 0), SharedAccess::Kind::multiply,
                       Operand::q, row0, rows, shared);
      if (leads)
        for_chunk_groups(plan.panel_layout(Operand::k), plan.base(Operand::k, step.slot), SharedAccess::Kind::multiply,
                         Operand::k, 0, plan.tile_n, shared);
      steps(plan.tile_n, plan.columns(Operand::k));
      break;
    case Step::Kind::softmax:
      sink.exponentials(rows, plan.tile_n);
      break;
    case Step::Kind::stage_probabilities:
      for_chunk_groups(plan.probability_layout(), plan.p_base(), SharedAccess::Kind::stage, Operand::q, row0, rows,
                       shared);
      break;
    case Step::Kind::output:
      if (plan.p_in_smem)
        for_chunk_groups(plan.probability_layout(), plan.p_base(), SharedAccess::Kind::multiply, Operand::q, row0, rows,
                         shared);
      if (leads)
        for_chunk_groups(plan.panel_layout(Operand::v), plan.base(Operand::v, step.slot), SharedAccess::Kind::multiply,
                         Operand::v, 0, plan.tile_n, shared);
      steps(plan.columns(Operand::v), plan.tile_n);
      break;
    case Step::Kind::stage:
      for_chunk_groups(plan.panel_layout(Operand::o), plan.base(Operand::o, 0), SharedAccess::Kind::stage, Operand::o,
                       row0, rows, shared);
      break;
    case Step::Kind::store:
      for (int row = row0; row < row0 + rows; ++row)
        if (work.q_tile * plan.tile_m + row < step.limit)
          sink.bulk_row(Operand::o, work.q_tile * plan.tile_m + row,
                        plan.valid_columns(Operand::o) * plan.output_bytes(), true);
      break;
    default:
      break;
  }
}

}  // namespace attest
