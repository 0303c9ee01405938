// The rules that other projects' tests apply to a forward, written from their descriptions: what each would say of the
// same outputs.
#pragma once
#include <string_view>
#include <vector>

#include "attest/reference/compare.h"
#include "attest/reference/inputs.h"

namespace attest::power {

/// What the low-precision attention that FlashAttention and PyTorch compare with gives: each product rounded to the
/// inputs' dtype, softmax in fp32.
struct Baselines {
  Tensor scaled_k;   // K scaled first, as FlashAttention's tests do
  Tensor scaled_qk;  // Q and K each by the root of the scale, as PyTorch's do
};
Baselines low_precision(const Problem& problem, const Inputs& inputs);

struct PeerVerdict {
  std::string_view name;
  bool accuses;
};

/// FlashAttention 3 and 4: max |O - O*| <= 2 max |base - O*| + 2 max |O* + 0.3 - 0.3 - O*| in the dtype, O* the fp32
/// result rounded to it. PyTorch: max |O - O*| <= max(10^-5, 4 max |base - O*|), O* unrounded. cuDNN frontend: no
/// element of O or LSE off by 2e-2 both absolutely and relatively. FlashInfer: |x - x*| <= t + t |x*|, t = 1e-3 for LSE
/// and fp16, 1e-2 for bf16. CUTLASS's FMHA examples: maximum below 1e-2 and mean below 1e-3, O and LSE.
std::vector<PeerVerdict> peer_verdicts(const Problem& problem, const Forward& truth, const Baselines& baselines,
                                       const Outputs& outputs);

}  // namespace attest::power
