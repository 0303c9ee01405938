// What the kernels' device code is compiled with.
#pragma once
#include "attest/plan/sm80_tiles.h"
#include "attest/sm80/params.h"

namespace attest::test {

template <Sm80Tile Tile, Sm80Kind Kind>
struct HostConfig {
  static constexpr Dtype dtype = Dtype::bf16;
  static constexpr Sm80Kind kind = Kind;
  using Plan = sm80::LaunchPlan<Kind>;
  static constexpr KernelPlan plan = sm80_plan(Tile);
};

}  // namespace attest::test
