// The sm_80 forward's plan for head dimension 128 with one mechanism taken away, so that what it is worth can be
// measured and predicted.
#pragma once
#include <string_view>

#include "attest/plan/sm80_tiles.h"

namespace attest {

enum class Sm80Ablation : std::uint8_t { no_swizzle, sync_copies, no_skip, spill };

struct NamedAblation {
  std::string_view name, description;
  Sm80Ablation ablation;
};
inline constexpr NamedAblation sm80_ablations[] = {
    {"sm80-no-swizzle", "the sm80 kernel with rows in shared memory as they come", Sm80Ablation::no_swizzle},
    {"sm80-sync-copies", "the sm80 kernel with copies through registers", Sm80Ablation::sync_copies},
    {"sm80-no-skip", "the sm80 kernel, visiting key tiles that no query sees", Sm80Ablation::no_skip},
    {"sm80-spill", "the sm80 kernel in 168 registers, which spills", Sm80Ablation::spill},
};
constexpr const NamedAblation& named(Sm80Ablation ablation) { return sm80_ablations[static_cast<int>(ablation)]; }

constexpr KernelPlan with_ablation(KernelPlan plan, Sm80Ablation ablation) {
  switch (ablation) {
    case Sm80Ablation::no_swizzle:
      plan.swizzled = false;
      break;
    case Sm80Ablation::sync_copies:
      plan.copy_kind = CopyKind::synchronous;
      break;
    case Sm80Ablation::no_skip:
      plan.skips_tiles = false;
      break;
    // Stores of nvcc 13.0's code for sm_90 where no row needs its O rescaled; the simulator has each architecture's.
    case Sm80Ablation::spill:
      plan.known_registers = 168;
      plan.spill_words_per_key_tile = 150;
      break;
  }
  return plan;
}
/// CTAs an SM that registers are kept free for: with three, 128 threads get 168 registers each.
constexpr int min_ctas(Sm80Ablation ablation) {
  return ablation == Sm80Ablation::spill ? 3 : sm80_min_ctas(Sm80Tile::d128);
}

}  // namespace attest
