#include <fmt/format.h>

#include <algorithm>

#include "attest/plan/catalog.h"
#include "attest/plan/launch.h"
#include "attest/simulator/tune.h"

namespace attest {
namespace {

std::string describe(const KernelPlan& p) {
  std::string name = fmt::format("{}x{} {}w", p.tile_m, p.tile_n, p.num_warps);
  if (p.producer_warps != 0) name += fmt::format("+{}", p.producer_warps);
  name += fmt::format(" {}s", p.stages);
  const std::pair<bool, const char*> words[] = {{p.merged_wait, " merged"},
                                                {p.q_in_registers, " qreg"},
                                                {p.lazy_rescale, " lazy"},
                                                {p.matrix_kind == MatrixKind::wgmma, " wgmma"},
                                                {p.p_in_smem, " psmem"},
                                                {p.cluster == 2, " cluster2"},
                                                {p.persistence == Persistence::static_stride, " static"},
                                                {p.persistence == Persistence::dynamic, " dynamic"}};
  for (const auto& [said, word] : words)
    if (said) name += word;
  return name;
}

void add(std::vector<DescribedPlan>& space, const KernelPlan& plan, const Case& c) {
  space.push_back({describe(plan), with_layout(plan, c)});
}

/// mma.sync: every warp copies and computes.
void add_mma_sync(std::vector<DescribedPlan>& space, const KernelPlan& base, const Case& c) {
  KernelPlan plan = base;
  for (const int warps : {2, 4, 8})
    for (const int rows : {16, 32})
      for (const int tile_n : {16, 32, 64, 96, 128}) {
        // What a key tile costs beside its keys (barriers, row maxima across lanes, a loop's turn) is in no model, so
        // that tiles of one matrix step would win; they are for heads that leave no room for more.
        if (tile_n == 16 && std::max(plan.columns(Operand::q), plan.columns(Operand::v)) <= 128) continue;
        for (const int stages : {1, 2, 3})
          for (const bool merged : {false, true}) {
            if (merged && stages == 1) continue;
            for (const bool q_in_registers : {false, true})
              for (const bool lazy : {false, true}) {
                plan.num_warps = warps, plan.tile_m = warps * rows, plan.tile_n = tile_n;
                plan.stages = stages, plan.merged_wait = merged;
                plan.q_in_registers = q_in_registers, plan.lazy_rescale = lazy;
                add(space, plan, c);
              }
          }
      }
}

/// wgmma: a warpgroup that copies by tma, and one to three that compute 64 queries each.
void add_wgmma(std::vector<DescribedPlan>& space, const KernelPlan& base, const Case& c) {
  KernelPlan plan = base;
  plan.matrix_kind = MatrixKind::wgmma;
  plan.copy_kind = CopyKind::tma;
  plan.producer_warps = 4;
  plan.other_smem_bytes = 3072;  // as FlashAttention 3's launches have it
  plan.evict_first_q = true;
  plan.prefetches_q = true;
  const bool masked = c.problem.causal != Causal::none || c.problem.window_left >= 0 || c.problem.window_right >= 0;
  plan.longest_first = masked;
  for (const int warpgroups : {1, 2, 3})
    for (int tile_n = 64; tile_n <= 256; tile_n += 16)
      for (const int stages : {2, 3})
        for (const bool p_in_smem : {false, true})
          for (const int cluster : {1, 2}) {
            // clusters walk the same keys in step, which a mask undoes
            if (cluster == 2 && masked) continue;
            for (const Persistence persistence :
                 {Persistence::none, Persistence::static_stride, Persistence::dynamic}) {
              if (persistence == (masked ? Persistence::static_stride : Persistence::dynamic)) continue;
              plan.num_warps = 4 * warpgroups, plan.tile_m = 64 * warpgroups, plan.tile_n = tile_n;
              plan.stages = stages, plan.p_in_smem = p_in_smem;
              plan.cluster = cluster, plan.persistence = persistence;
              plan.l2_section_bytes = persistence == Persistence::dynamic ? 32 << 20 : 0;
              add(space, plan, c);
            }
          }
}

/// Cube and vector cores: their model knows tiles and stages only.
void add_tiles(std::vector<DescribedPlan>& space, const KernelPlan& base, const Case& c) {
  KernelPlan plan = base;
  plan.num_warps = 1;
  for (const int tile_m : {16, 32, 64, 96, 128, 192, 256, 384, 512})
    for (const int tile_n : {16, 32, 64, 96, 128, 192, 256, 384, 512})
      for (const int stages : {1, 2, 3, 4}) {
        plan.tile_m = tile_m, plan.tile_n = tile_n, plan.stages = stages;
        add(space, plan, c);
      }
}

}  // namespace

std::vector<DescribedPlan> plan_space(const Case& c, const DeviceSpec& device) {
  KernelPlan base;
  base.headdim = static_cast<int>(c.problem.headdim);
  base.headdim_v = static_cast<int>(c.problem.headdim_v);
  base.element_bytes = bytes_of(c.problem.dtype);
  base = with_features(base, c);
  std::vector<DescribedPlan> space;
  if (device.kind == DeviceKind::cube_vector) {
    add_tiles(space, base, c);
    return space;
  }
  add_mma_sync(space, base, c);
  if (device.wgmma_fma_per_clock_16bit > 0 && base.element_bytes < 4) add_wgmma(space, base, c);
  return space;
}

}  // namespace attest
