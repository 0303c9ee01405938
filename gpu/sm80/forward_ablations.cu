#include "ablations.h"
#include "forward_kernel.cuh"

namespace attest::sm80 {
namespace {

template <Sm80Ablation Ablation>
struct AblationConfig : Config<Dtype::bf16, Sm80Tile::d128, Sm80Kind::fast> {
  static constexpr KernelPlan plan = with_ablation(sm80_plan(Sm80Tile::d128), Ablation);
  static constexpr int min_ctas = attest::min_ctas(Ablation);
};

template <Sm80Ablation Ablation>
const void* function() {
  return reinterpret_cast<const void*>(&forward_kernel<AblationConfig<Ablation>>);
}

}  // namespace

const void* ablation_function(Sm80Ablation ablation) {
  using enum Sm80Ablation;
  switch (ablation) {
    case no_swizzle:
      return function<no_swizzle>();
    case sync_copies:
      return function<sync_copies>();
    case no_skip:
      return function<no_skip>();
    case spill:
      return function<spill>();
  }
  return nullptr;
}

}  // namespace attest::sm80
