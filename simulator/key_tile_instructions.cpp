#include "attest/simulator/key_tile_instructions.h"

#include "attest/simulator/counts.h"

namespace attest {

KeyTileInstructions key_tile_instructions(const KernelPlan& plan) {
  Work work;
  work.seqlen_q = plan.tile_m;
  const auto counted = [&](int key_tiles) {
    Work longer = work;
    longer.seqlen_k = key_tiles * plan.tile_n * plan.num_splits;
    longer.diagonal = longer.seqlen_k - longer.seqlen_q;
    GlobalLayout layout;
    for (std::size_t x = 0; x < layout.row_stride_bytes.size(); ++x)
      layout.row_stride_bytes[x] = plan.columns(static_cast<Operand>(x)) * std::int64_t{plan.element_bytes};
    return Counter(plan, layout).count(longer);
  };
  const int direct = 2 * plan.stages + 2;  // the pipeline's start and end, and a period between them
  Counts period = counted(direct + plan.stages);
  period += counted(direct) * -1;
  const double tiles_of_warps = static_cast<double>(plan.stages) * plan.num_warps;
  const auto a_warp = [&](std::int64_t n) { return static_cast<double>(n) / tiles_of_warps; };

  KeyTileInstructions each;
  each.exponentials = a_warp(period.exponentials) / 32 + 2 * plan.m_blocks();  // a lane has two rows of a block
  if (plan.matrix_kind == MatrixKind::wgmma) {
    // four warps' blocks of 16 rows make one of 64
    const int steps = plan.columns(Operand::q) / plan.k_step() + plan.tile_n / plan.k_step();
    each.multiply_warpgroup = plan.m_blocks() * steps;
    return each;
  }
  constexpr int matrices_of_a_load = 4, steps_of_a_block = 2;  // a block of 16 columns is two of mma.sync's 8
  each.copies = a_warp(period.copies);
  each.load_matrix =
      a_warp(period.ideal_by_kind[static_cast<std::size_t>(SharedAccess::Kind::load_matrix)]) / matrices_of_a_load;
  each.multiply = a_warp(period.matrix_steps) * steps_of_a_block;
  each.barriers = a_warp(period.barriers);
  return each;
}

}  // namespace attest
