#include "combine_time.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "address.h"
#include "attest/plan/combine.h"
#include "attest/plan/combine_shape.h"
#include "attest/simulator/compulsory.h"
#include "attest/simulator/occupancy.h"
#include "attest/simulator/step_time.h"
#include "grid.h"

namespace attest {
namespace {

// Of the lines of a kernel's arguments those that the kernels of `launch` have, too (docs/results/h200-sm.md).
constexpr double launched_lines = 2;

/// On an SM; CTAs have no shared memory.
double ctas_that_fit(const DeviceSpec& device) {
  KernelPlan plan;
  plan.num_warps = combine_rows;
  const Occupancy o = occupancy(plan, combine_registers, device);
  return std::min({o.by_registers, o.by_warps, o.by_ctas});
}

}  // namespace

CombineWork combine_work(const Problem& p, const KernelPlan& plan, const TileWalk& walk) {
  CombineWork work;
  for (const Lengths& n : lengths_of(p)) {
    const std::int64_t rows = n.queries * plan.packed_heads, groups = n.entries * p.nheads / plan.packed_heads;
    const std::int64_t q_tiles = (rows + combine_rows - 1) / combine_rows;
    work.ctas += static_cast<double>(groups * q_tiles);
  }
  work.splits = plan.num_splits;
  work.bytes = walk.partial_bytes + walk.partial_lse_bytes;
  work.from_dram = std::min(1.0, walk.partial_missed_bytes / work.bytes);  // lines bring more than is asked for
  work.lines = static_cast<double>(partial_columns(p.headdim_v)) * sizeof(float) / LineSampler::line_bytes;
  return work;
}

std::int64_t combined_lse_sectors(const Case& c, const KernelPlan& plan, const DeviceSpec& device, double ctas) {
  const Grid grid(c, plan);
  std::int64_t all_rows = 0;
  for (const LengthClass& lengths : grid.classes) all_rows += lengths.entries * grid.nheads * lengths.seqlen_q;
  // from a split's LSE to the next one's are all rows of the batch
  const Problem& p = c.problem;
  const double bytes_apart = 4.0 * static_cast<double>(p.batch * p.nheads * p.seqlen_q);
  const double lines = grid.splits * std::min(1.0, bytes_apart / LineSampler::line_bytes);
  if (ctas > static_cast<double>(device.num_sms) || lines > lines_of_warps_together) return all_rows;
  std::int64_t sectors = 0;
  for (std::int64_t batch = 0; batch < p.batch; ++batch)
    for (std::int64_t head = 0; head < grid.nheads; ++head) {
      const int rows = grid.entry(batch).seqlen_q;  // of all heads of a pack
      for (int row0 = 0; row0 < rows; row0 += combine_rows) {
        std::set<std::int64_t> of_cta;
        for (int row = row0; row < std::min(rows, row0 + combine_rows); ++row)
          of_cta.insert(grid.lse_row(batch, head, row) * 4 / LineSampler::sector_bytes);
        sectors += static_cast<std::int64_t>(of_cta.size());
      }
    }
  return sectors;
}

double combine_cycles(const CombineWork& work, const DeviceSpec& device) {
  if (work.ctas == 0) return 0;
  constexpr int lanes = 32;
  const double turns = std::ceil(static_cast<double>(work.splits) / combine_splits_a_turn);
  const double weighed = std::ceil(static_cast<double>(work.splits) / lanes);
  const auto executed = [&](double CombineCode::*what) {
    return device.kernel_code_scale *
           (combine_row.*what + weighed * (combine_weights.*what) + turns * (combine_turn.*what));
  };
  // What a warp waits for together are rows of 4/3 splits; beyond a hit in L1, for DRAM where one of their lines has
  // left L2.
  const double in_l2 = cycles_from_l2(2, device), in_dram = cycles_from_dram(2, device);
  const auto wait = [&](double lines) {
    const double missed = 1 - std::pow(1 - work.from_dram, lines);
    return in_l2 + missed * (in_dram - in_l2) - cycles_from_l1(device);
  };
  const double arguments = (combine_argument_lines - launched_lines) * device.argument_line_cycles;
  const double alone = arguments + executed(&CombineCode::cycles) + wait(std::min(work.splits, lanes)) +
                       turns * combine_turn.waits * wait(work.lines * combine_splits_a_turn / combine_turn.waits);

  const auto sms = static_cast<double>(device.num_sms);
  const double of_sm = std::ceil(work.ctas / sms);
  const double together = ctas_that_fit(device);
  const double issue = executed(&CombineCode::instructions) * combine_rows /
                       static_cast<double>(device.warp_schedulers_per_sm);  // of a CTA
  const double waves = std::ceil(of_sm / together);
  const double moved = work.bytes / (l2_bytes_per_clock(device) * sms);
  return launch_cycles(work.ctas, device) +
         std::max({(of_sm - 1) * issue + alone, waves * alone + (waves - 1) * device.cta_launch_cycles, moved});
}

}  // namespace attest
