// Softcap, ALiBi, bias, sinks, descales.
#include "mutant_parts.h"

namespace attest {
namespace {

struct MasksBeforeCap : KernelPlan {
  constexpr bool masks_first() const { return true; }
};
struct BiasInsideCap : KernelPlan {
  template <class Tanh>
  float score(const ScoreNumbers& n, float dot, int distance, float bias_value, Tanh tanh) const {
    float s = dot * n.scale + (bias ? bias_value : 0.0f);
    if (softcap) s = n.softcap * tanh(s / n.softcap);
    return alibi ? s - n.slope * static_cast<float>(distance) : s;
  }
};
struct BiasBeforeScale : KernelPlan {
  template <class Tanh>
  float score(const ScoreNumbers& n, float dot, int distance, float bias_value, Tanh tanh) const {
    return KernelPlan::score(n, bias ? dot + bias_value : dot, distance, 0.0f, tanh);
  }
};
struct CapWithoutDivision : KernelPlan {
  template <class Tanh>
  float score(const ScoreNumbers& n, float dot, int distance, float bias_value, Tanh tanh) const {
    return KernelPlan::score(n, dot * (softcap ? n.softcap : 1.0f), distance, bias_value, tanh);
  }
};
struct AlibiAdded : KernelPlan {
  constexpr int distance(const Work& w, int row, int key) const { return -KernelPlan::distance(w, row, key); }
};
struct AlibiWithoutOffset : KernelPlan {
  constexpr int distance(const Work& w, int row, int key) const {
    Work top_left = w;
    top_left.diagonal = 0;
    return KernelPlan::distance(top_left, row, key);
  }
};
struct AlibiOfPastKeysAlone : KernelPlan {
  constexpr int distance(const Work& w, int row, int key) const { return row + w.diagonal - key; }
};
struct BiasOfFirstHead : KernelPlan {
  constexpr ForwardArgs arguments(ForwardArgs a, const GridExtents&) const { return a.bias_head_stride = 0, a; }
};
struct ValueDescaleDropped : KernelPlan {
  constexpr float output_scale(float) const { return 1.0f; }
};
struct KeyDescaleTwice : KernelPlan {
  constexpr float score_scale(float softmax_scale, float q_descale, float k_descale) const {
    return KernelPlan::score_scale(softmax_scale, q_descale, k_descale) * k_descale;
  }
};
struct SinkForgotten : KernelPlan {
  constexpr bool takes_sink(const Work&) const { return false; }
};
struct SinkInEverySplit : KernelPlan {
  constexpr bool takes_sink(const Work&) const { return sink; }
};

}  // namespace

std::vector<Mutant> modifier_mutants() {
  return {
      mutant<MasksBeforeCap>("83-masks-before-cap", "softcap applied after the mask (FlashInfer f5f7a2a2)"),
      mutant<BiasInsideCap>("85-bias-inside-cap", "bias inside the softcap (TransformerEngine#3391)"),
      mutant<BiasBeforeScale>("85-bias-before-scale", "bias added before the scale (TransformerEngine#236)"),
      mutant<ValueDescaleDropped>("107-value-descale-dropped", "V's descale is dropped (FlashInfer f1533693)"),
      mutant<KeyDescaleTwice>("107-key-descale-twice", "K's descale is applied twice (vLLM#51363)"),
      mutant<CapWithoutDivision>("softcap-without-division", "c tanh(x) in place of c tanh(x / c)"),
      mutant<AlibiAdded>("alibi-added", "ALiBi with the other sign"),
      mutant<AlibiWithoutOffset>("alibi-without-offset",
                                 "ALiBi counts from the query, not from the key that it is aligned with"),
      mutant<AlibiOfPastKeysAlone>("alibi-without-magnitude", "ALiBi without the absolute value"),
      mutant<BiasOfFirstHead>("bias-of-first-head", "every head takes the first one's bias"),
      mutant<SinkForgotten>("sink-forgotten", "the sink is left out"),
      mutant<SinkInEverySplit>("sink-in-every-split", "every split adds the sink"),
  };
}

}  // namespace attest
