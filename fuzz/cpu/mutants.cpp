#include "attest/cpu/mutants.h"

#include <Eigen/Core>
#include <bit>

namespace attest {
namespace {

float to_fp16(float x) { return static_cast<float>(Eigen::half(x)); }

// ---- masks and tails

struct TailMaskOnlyOnDiagonal : KernelPlan {
  constexpr bool visible(const Work& w, int row, int key) const {
    const int last_of_tile = key / tile_n * tile_n + tile_n - 1;
    if (w.causal && row + w.diagonal >= last_of_tile) return key >= key_begin(w, row);
    return KernelPlan::visible(w, row, key);
  }
};
struct TailMaskOnlyIfCausal : KernelPlan {
  constexpr bool visible(const Work& w, int row, int key) const {
    return (key < w.seqlen_k || !w.causal) && key >= key_begin(w, row) &&
           (w.right < 0 || key <= row + w.diagonal + w.right);
  }
};
struct UnsignedCausalCompare : KernelPlan {
  constexpr bool visible(const Work& w, int row, int key) const {
    const bool causal = !w.causal || static_cast<std::uint32_t>(key) <= static_cast<std::uint32_t>(row + w.diagonal);
    return causal && key < w.seqlen_k && key >= key_begin(w, row) && (w.causal || key < key_end(w, row));
  }
  constexpr TileRange range(const Work& w) const {  // the loop's bound is computed in the same type
    TileRange r = tile_range(*this, w);
    if (w.causal && w.q_tile * tile_m + w.diagonal < 0) {
      r.end = (w.seqlen_k + tile_n - 1) / tile_n;
      r.full_end = r.full_begin = r.begin;
    }
    return r;
  }
};
struct StoreWithoutRowPredicate
    : KernelPlan {  // writes the row past the last query; further ones would hit other tensors
  constexpr int row_limit(Operand x, const Work& w) const {
    return KernelPlan::row_limit(x, w) + (x == Operand::o ? 1 : 0);
  }
};
struct TailOfVNotZeroed : KernelPlan {
  constexpr bool zero_fills(Operand x) const { return x != Operand::v; }
};
struct NeverCausal : KernelPlan {
  constexpr int key_end(const Work& w, int row) const { return w.causal ? w.seqlen_k : KernelPlan::key_end(w, row); }
  constexpr bool visible(const Work& w, int row, int key) const {
    return key >= key_begin(w, row) && key < key_end(w, row);
  }
  constexpr TileRange range(const Work& w) const { return tile_range(*this, w); }
};
struct TopLeftAlways : KernelPlan {
  static constexpr Work top_left(Work w) { return w.diagonal = w.causal ? 0 : w.diagonal, w; }
  constexpr int key_end(const Work& w, int row) const { return KernelPlan::key_end(top_left(w), row); }
  constexpr int key_begin(const Work& w, int row) const { return KernelPlan::key_begin(top_left(w), row); }
  constexpr bool visible(const Work& w, int row, int key) const {
    return key >= key_begin(w, row) && key < key_end(w, row);
  }
  constexpr TileRange range(const Work& w) const { return tile_range(*this, w); }
};
struct WindowLeftExclusive : KernelPlan {
  constexpr bool visible(const Work& w, int row, int key) const {
    return KernelPlan::visible(w, row, key) && (w.left < 0 || key > row + w.diagonal - w.left);
  }
};
struct WindowRightExclusive : KernelPlan {
  constexpr bool visible(const Work& w, int row, int key) const {
    return KernelPlan::visible(w, row, key) && (w.causal || w.right < 0 || key < row + w.diagonal + w.right);
  }
};
struct FixedMaskedSteps : KernelPlan {  // as if only the last tile could hold a right edge
  constexpr TileRange range(const Work& w) const {
    TileRange r = tile_range(*this, w);
    r.full_end = r.end > r.begin ? r.end - 1 : r.end;
    r.full_begin = r.begin;
    return r;
  }
};
struct EarlyExitOffByOne : KernelPlan {
  constexpr TileRange range(const Work& w) const {
    const TileRange r = tile_range(*this, w);
    return r.end <= r.begin + 1 && r.begin > 0 ? TileRange{} : r;
  }
};
struct LastTileForgotten : KernelPlan {  // tiles = seqlen_k / tile, rounded down
  constexpr TileRange range(const Work& w) const {
    TileRange r = tile_range(*this, w);
    r.end = std::min(r.end, std::max(w.seqlen_k / tile_n, r.begin));
    r.full_end = std::min(r.full_end, r.end);
    r.full_begin = std::min(r.full_begin, r.full_end);
    return r;
  }
};

// ---- empty rows and sentinels

struct FiniteSentinel : KernelPlan {
  constexpr float masked_score() const { return -5e4f; }
};
struct LseOfEmptyRowFinite : KernelPlan {
  constexpr float lse_without_keys() const { return -5e4f; }
};
struct LseOfEmptyRowZero : KernelPlan {
  constexpr float lse_without_keys() const { return 0.0f; }
};
struct NoStoreWithoutKeys : KernelPlan {
  constexpr bool writes_without_keys(const Work&) const { return false; }
};

// ---- synchronisation

struct WaitsForOneGroupTooFew : KernelPlan {
  constexpr int k_pending() const { return KernelPlan::k_pending() + 1; }
};
struct NoWaitForV : KernelPlan {
  constexpr int v_pending() const { return KernelPlan::v_pending() + 2; }
};
struct NoBarrierAfterWait : KernelPlan {
  constexpr bool barrier_after_wait() const { return false; }
};
struct NoBarrierBeforeRefill : KernelPlan {
  constexpr bool barrier_before_refill() const { return false; }
};
struct NoBarrierBeforeStaging : KernelPlan {
  constexpr bool staging_needs_barrier() const { return false; }
};

// ---- strides, columns, heads

struct OutputColumnsOfHeaddim : KernelPlan {
  constexpr int column_limit(Operand x) const {
    return x == Operand::o ? std::min(headdim, columns(x)) : KernelPlan::column_limit(x);
  }
};
struct ValueColumnsOfHeaddim : KernelPlan {
  constexpr int column_limit(Operand x) const { return x == Operand::v ? headdim : KernelPlan::column_limit(x); }
};
struct StridesOfKAndVSwapped : KernelPlan {
  constexpr ForwardArgs arguments(ForwardArgs a) const {
    std::swap(a.k.batch_stride, a.v.batch_stride);
    std::swap(a.k.row_stride, a.v.row_stride);
    std::swap(a.k.head_stride, a.v.head_stride);
    return a;
  }
};
struct BatchStrideOfOneToken : KernelPlan {
  constexpr ForwardArgs arguments(ForwardArgs a) const { return a.k.batch_stride = a.k.row_stride, a; }
};
struct HeadsByRemainder : KernelPlan {
  constexpr int kv_head(int head, int nheads, int nheads_k) const { return head % nheads_k; }
};
struct HeadsByGroupRemainder : KernelPlan {
  constexpr int kv_head(int head, int nheads, int nheads_k) const { return head % (nheads / nheads_k) % nheads_k; }
};

// ---- scale, base of LSE, precision

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

template <class Plan>
std::unique_ptr<Behaviour> behaviour_of(const KernelPlan& plan) {
  return std::make_unique<BehaviourOf<Plan>>(plan);
}

template <class Plan>
Mutant mutant(std::string id, std::string bug) {
  return {std::move(id), std::move(bug),
          [](const CpuPlanSpec& spec) { return std::make_unique<CpuKernel>(spec, behaviour_of<Plan>); }};
}

}  // namespace

const std::vector<Mutant>& forward_mutants() {
  static const std::vector<Mutant> all = {
      mutant<TailMaskOnlyOnDiagonal>("02-tail-mask-only-on-diagonal",
                                     "tail mask only on tiles the diagonal touches (FA c65b5106)"),
      mutant<TailMaskOnlyIfCausal>("05-tail-mask-only-if-causal", "key-tail mask only if causal (FlashInfer 7f33b208)"),
      mutant<UnsignedCausalCompare>("07-unsigned-causal-compare", "causal compare in uint32 (FlashInfer 7adc8cf0)"),
      mutant<StoreWithoutRowPredicate>("12-store-without-row-predicate",
                                       "O store without its row predicate (llama.cpp#7465)"),
      mutant<TailOfVNotZeroed>("15-tail-of-v-not-zeroed", "V past seqlen_k loaded without zeroing (FA#1745)"),
      mutant<TopLeftAlways>("20-causal-without-offset", "mask without the bottom-right offset (ffpa-attn#300)"),
      mutant<NeverCausal>("22-never-causal", "causal flag has no effect (jax#19237)"),
      mutant<WindowLeftExclusive>("24-window-left-exclusive",
                                  "< for <= at the window's left edge (TransformerEngine#1197)"),
      mutant<WindowRightExclusive>("24-window-right-exclusive",
                                   "< for <= at the window's right edge (transformers#39408)"),
      mutant<FixedMaskedSteps>("26-fixed-masked-steps", "fixed number of masked iterations (FlashInfer 124daea8)"),
      mutant<LastTileForgotten>("27-last-tile-forgotten",
                                "number of tiles rounded down: loader and mask disagree (FA 7ff73af4)"),
      mutant<EarlyExitOffByOne>("29-early-exit-off-by-one",
                                "early exit on n_max <= n_min, off by one (TransformerEngine#3528)"),
      mutant<FiniteSentinel>("33-finite-sentinel", "finite sentinel -5e4 for -inf (FlashInfer d7f2c646)"),
      mutant<LseOfEmptyRowFinite>("34-lse-of-empty-row-finite", "finite LSE on an empty row (FlashInfer#4452)"),
      mutant<LseOfEmptyRowZero>("40-lse-of-empty-row-zero", "LSE 0 where no key is visible (FlashInfer 6ac28f4d)"),
      mutant<NoStoreWithoutKeys>("37-no-store-without-keys", "early return without a store (FA db2f8069)"),
      mutant<NoBarrierBeforeRefill>("53-no-barrier-before-refill", "slot filled again without a barrier (FA ea38d3d2)"),
      mutant<NoBarrierAfterWait>("56-no-barrier-after-wait", "wait_group without __syncthreads (ninfer-3090#49)"),
      mutant<NoBarrierBeforeStaging>("57-no-barrier-before-staging",
                                     "no barrier before shared memory is reused (FlashInfer 6dff34d1)"),
      mutant<StridesOfKAndVSwapped>("65-strides-of-k-and-v-swapped", "K and V strides swapped (FlagAttention#45)"),
      mutant<BatchStrideOfOneToken>("67-batch-stride-of-one-token", "batch stride = one token (FlashInfer#3800)"),
      mutant<ValueColumnsOfHeaddim>("70-value-columns-of-headdim", "V's column predicate uses headdim (FA 6d199aa2)"),
      mutant<OutputColumnsOfHeaddim>("70-output-columns-of-headdim", "O's column predicate uses headdim (FA#2552)"),
      mutant<HeadsByRemainder>("71-heads-by-remainder", "key head h % nheads_k (HipKittens#22)"),
      mutant<HeadsByGroupRemainder>("71-heads-by-group-remainder", "key head h % group (HipKittens#22)"),
      mutant<ScaleWithoutLog2e>("82-scale-without-log2e", "scale not multiplied by log2(e) (FlashInfer 23413e00)"),
      mutant<LseInBase2>("86-lse-in-base-2", "LSE in base 2 (vLLM#47079)"),
      mutant<ScoresInFp16>("88-scores-in-fp16", "S rounded to fp16 (onnxruntime#28195)"),
      mutant<OutputInFp16>("89-output-in-fp16", "O accumulated in fp16 (llama.cpp#17558)"),
      mutant<RescaleInFp16>("90-rescale-in-fp16", "exp(m_old - m) in fp16 (llama.cpp#13991)"),
      mutant<AccumulatorRestarts>("95-accumulator-restarts",
                                  "second half of the k loop restarts its accumulator (FlashInfer 338b2f5b)"),
      mutant<WaitsForOneGroupTooFew>("wait-one-group-too-few", "K's wait leaves one group too many in flight"),
      mutant<NoWaitForV>("no-wait-for-v", "V read while its copy is in flight"),
      mutant<ScaleOnePercentOff>("scale-one-percent-off", "softmax scale 1% too large"),
      mutant<ProbabilitiesInSixBits>("p-in-six-bits", "P rounded to six bits, two fewer than bf16 has"),
  };
  return all;
}

}  // namespace attest
