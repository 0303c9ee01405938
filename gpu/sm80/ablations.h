// Host stubs of forward_ablations.cu's kernels.
#pragma once
#include "attest/plan/sm80_ablations.h"

namespace attest::sm80 {

const void* ablation_function(Sm80Ablation ablation);

}  // namespace attest::sm80
