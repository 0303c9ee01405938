// Scale, base of LSE, rounding.
#include <Eigen/Core>
#include <bit>

#include "mutant_parts.h"

namespace attest {
namespace {

float to_fp16(float x) { return static_cast<float>(Eigen::half(x)); }

struct ScaleWithoutLog2e : KernelPlan {
  constexpr float scale_log2(float softmax_scale) const { return softmax_scale; }
};
struct ScaleOnePercentOff : KernelPlan {
  constexpr float scale_log2(float softmax_scale) const { return KernelPlan::scale_log2(softmax_scale) * 1.01f; }
};
struct LseInBase2 : KernelPlan {
  constexpr float lse_of_log2(float log2_sum) const { return log2_sum; }
};
struct ScoresInFp16 : KernelPlan {
  float keep_score(float s) const { return to_fp16(s); }
};
struct OutputInFp16 : KernelPlan {
  float keep_output(float o) const { return to_fp16(o); }
};
struct RescaleInFp16 : KernelPlan {
  float rescale_factor(float log2_factor) const { return to_fp16(std::exp2(log2_factor)); }
};
struct ProbabilitiesInSixBits : KernelPlan {  // bf16 has eight
  float keep_probability(float p) const {
    return element_bytes == 2 ? std::bit_cast<float>((std::bit_cast<std::uint32_t>(p) + 0x20000u) & ~0x3ffffu) : p;
  }
};
struct AccumulatorRestarts : KernelPlan {
  constexpr bool restarts_accumulator(int step) const { return step == columns(Operand::q) / k_step() / 2; }
};

struct ProbabilitiesUpTo4096 : KernelPlan {  // of which an 8-bit P holds 448
  constexpr float lazy_growth_log2() const { return 12.0f; }
};
struct AnotherExpOnMaskedTiles : KernelPlan {  // a cubic in the fraction, with its relative error of 1e-4
  float keep_exponential(float p, bool masked) const {
    if (!masked || p <= 0 || !std::isfinite(p)) return p;
    int exponent = 0;
    const float f = std::log2(std::frexp(p, &exponent) * 2.0f);
    return std::ldexp(1.0f + f * (0.69514614f + f * (0.22764497f + f * 0.07706984f)), exponent - 1);
  }
  constexpr bool keeps_exponentials() const { return false; }
};

}  // namespace

std::vector<Mutant> precision_mutants() {
  return {
      mutant<ScaleWithoutLog2e>("82-scale-without-log2e", "scale not multiplied by log2(e) (FlashInfer 23413e00)"),
      mutant<LseInBase2>("86-lse-in-base-2", "LSE in base 2 (vLLM#47079)"),
      mutant<ScoresInFp16>("88-scores-in-fp16", "S rounded to fp16 (onnxruntime#28195)"),
      mutant<OutputInFp16>("89-output-in-fp16", "O accumulated in fp16 (llama.cpp#17558)"),
      mutant<RescaleInFp16>("90-rescale-in-fp16", "exp(m_old - m) in fp16 (llama.cpp#13991)"),
      mutant<ProbabilitiesUpTo4096>("93-probabilities-up-to-4096",
                                    "stale maximum: P up to 4096 against a largest fp8 of 448 (FA 2409214a)"),
      mutant<AnotherExpOnMaskedTiles>("94-another-exp-on-masked-tiles", "another exp on masked tiles (FA c2006099)"),
      mutant<AccumulatorRestarts>("95-accumulator-restarts",
                                  "second half of the k loop restarts its accumulator (FlashInfer 338b2f5b)"),
      mutant<ScaleOnePercentOff>("scale-one-percent-off", "softmax scale 1% too large"),
      mutant<ProbabilitiesInSixBits>("p-in-six-bits", "P rounded to six bits, two fewer than bf16 has"),
  };
}

}  // namespace attest
