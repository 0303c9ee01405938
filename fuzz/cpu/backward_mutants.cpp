#include "attest/cpu/backward_mutants.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace attest {
namespace {

// An offset in an integer that is too narrow. Tensors here are small: what 32 bits are to a tensor of 2^32 elements, 16
// bits are to one of 2^16.
constexpr std::int64_t narrow(std::int64_t index, std::int64_t stride) {
  return static_cast<std::int16_t>(static_cast<std::uint64_t>(index * stride) & 0xffff);
}

float to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fffu + (bits >> 16 & 1)) & 0xffff0000u);
}

// ---- masks and tails

struct NoTailMask : BackwardPlan {
  constexpr bool visible(const Work& w, int row, int key) const {
    return key >= key_begin(w, row) && (w.right < 0 || key <= row + w.diagonal + w.right);
  }
};
struct TailMaskOnlyOnDiagonal : BackwardPlan {
  constexpr bool visible(const Work& w, int row, int key) const {
    const int last_of_tile = key / tile_n * tile_n + tile_n - 1;
    if (w.causal && row + w.diagonal >= last_of_tile) return key >= key_begin(w, row);
    return BackwardPlan::visible(w, row, key);
  }
};
struct TailMaskSkippedWithBias : BackwardPlan {
  constexpr bool visible(const Work& w, int row, int key) const {
    return bias ? key >= key_begin(w, row) && (w.right < 0 || key <= row + w.diagonal + w.right)
                : BackwardPlan::visible(w, row, key);
  }
};
struct FirstLsePastRows : BackwardPlan {
  constexpr int row_past_limit(BackwardTile x) const { return x == BackwardTile::lse ? 0 : -1; }
};
struct QueryTailSkippedOnFullTiles : BackwardPlan {
  constexpr int row_limit(BackwardTile x, const BackwardWork& w, TileClass seen) const {
    const int limit = BackwardPlan::row_limit(x, w, seen);
    return seen == TileClass::full && x != BackwardTile::dq ? round_up(limit, tile_m) : limit;
  }
};
struct CausalWithoutOffset : BackwardPlan {
  constexpr BackwardWork work(BackwardWork w) const { return w.diagonal = w.causal ? 0 : w.diagonal, w; }
};
struct AlwaysCausal : BackwardPlan {
  constexpr BackwardWork work(BackwardWork w) const { return w.right = 0, w; }
};
struct WindowLeftExclusive : BackwardPlan {
  constexpr bool visible(const Work& w, int row, int key) const {
    return BackwardPlan::visible(w, row, key) && (w.left < 0 || key > row + w.diagonal - w.left);
  }
};
struct KeyTailReadPastTheEnd : BackwardPlan {
  constexpr int row_limit(BackwardTile x, const BackwardWork& w, TileClass seen) const {
    return x == BackwardTile::k ? round_up(w.seqlen_k, tile_n) : BackwardPlan::row_limit(x, w, seen);
  }
};

// ---- nothing to do

struct NoStoreWithoutQueries : BackwardPlan {
  constexpr bool writes_without_queries(const BackwardWork& w) const { return w.seqlen_q > 0; }
};
struct NoStoreForUnseenKeys : BackwardPlan {
  constexpr bool writes_without_queries(const BackwardWork& w) const { return w.seqlen_q == 0; }
};

// ---- offsets, strides, columns, heads

struct NarrowAccumulatorOffset : BackwardPlan {
  constexpr std::int64_t accumulator_offset(std::int64_t row, std::int64_t columns) const {
    return narrow(row, columns);
  }
};
struct NarrowOffsetOfDout : BackwardPlan {
  constexpr std::int64_t offset(BackwardTile x, std::int64_t index, std::int64_t stride) const {
    return x == BackwardTile::dout ? narrow(index, stride) : BackwardPlan::offset(x, index, stride);
  }
};
struct OutputWithStridesOfDout : BackwardPlan {
  constexpr BackwardArgs arguments(BackwardArgs a) const {
    a.forward.o.batch_stride = a.dout.batch_stride;
    a.forward.o.row_stride = a.dout.row_stride;
    a.forward.o.head_stride = a.dout.head_stride;
    return a;
  }
};
struct StridesOfDkAndDvSwapped : BackwardPlan {
  constexpr BackwardArgs arguments(BackwardArgs a) const {
    std::swap(a.dk.batch_stride, a.dv.batch_stride);
    std::swap(a.dk.row_stride, a.dv.row_stride);
    std::swap(a.dk.head_stride, a.dv.head_stride);
    return a;
  }
};
struct DvColumnsOfHeaddim : BackwardPlan {
  constexpr int column_limit(BackwardTile x) const {
    return x == BackwardTile::dv ? std::min(headdim, columns(x)) : BackwardPlan::column_limit(x);
  }
};
struct HeadsByRemainder : BackwardPlan {
  constexpr int kv_head(int head, int nheads, int nheads_k) const { return head % nheads_k; }
};
struct OneHeadOfTheGroup : BackwardPlan {
  constexpr bool restarts_each_head() const { return true; }
};

// ---- synchronisation

struct NoBarrierBeforeDq : BackwardPlan {
  constexpr bool barrier_before_dq() const { return false; }
};
struct NoBarrierAfterDq : BackwardPlan {
  constexpr bool barrier_after_dq() const { return false; }
};
struct NoBarrierAtTop : BackwardPlan {
  constexpr bool barrier_at_top() const { return false; }
};
struct NoBarrierBeforeProducts : BackwardPlan {
  constexpr bool barrier_before_products() const { return false; }
};
struct NoBarrierBeforeRefill : BackwardPlan {
  constexpr bool barrier_before_refill() const { return false; }
};
struct WaitsForOneGroupTooFew : BackwardPlan {
  constexpr int queries_pending() const { return BackwardPlan::queries_pending() + 1; }
};
struct NoWaitForPreprocess : BackwardPlan {
  constexpr bool waits_for_preprocess() const { return false; }
};

// ---- arithmetic

struct DqWithoutScale : BackwardPlan {
  constexpr float dq_scale(float) const { return 1.0f; }
};
struct DkWithoutScale : BackwardPlan {
  constexpr float dk_scale(float) const { return 1.0f; }
};
struct NoSoftcapSlope : BackwardPlan {
  template <class Tanh>
  constexpr float softcap_slope(const ScoreNumbers&, float, Tanh) const {
    return 1.0f;
  }
};
struct RowProductsRounded : BackwardPlan {
  float keep_row_product(float x) const { return element_bytes == 2 ? to_bf16(x) : x; }
};
struct NoRowProducts : BackwardPlan {
  constexpr float score_gradient(float p, float dp, float) const { return p * dp; }
};

// ---- bookkeeping

struct StatisticsOfFirstBlock : BackwardPlan {
  constexpr int statistics_row(BackwardTile, int, int first_tile) const { return first_tile * tile_m; }
};
struct RowProductsOfNextRow : BackwardPlan {
  constexpr int statistics_row(BackwardTile x, int q_tile, int) const {
    return q_tile * tile_m + (x == BackwardTile::d ? 1 : 0);
  }
};
struct DeterministicIgnored : BackwardPlan {
  constexpr bool adds_in_order() const { return false; }
};
struct AddsPastRows : BackwardPlan {
  constexpr bool adds_past_rows() const { return true; }
};

template <class Plan>
std::unique_ptr<BackwardBehaviour> backward_of(const BackwardPlan& plan) {
  return std::make_unique<BackwardBehaviourOf<Plan>>(plan);
}

template <class Plan>
Mutant mutant(const std::string& id, std::string bug) {
  return {id + "-backward", std::move(bug), [](const CpuPlanSpec& spec) {
            return std::make_unique<CpuKernel>(spec, CpuKernel::right_behaviour, backward_of<Plan>);
          }};
}

}  // namespace

const std::vector<Mutant>& backward_mutants() {
  static const std::vector<Mutant> all = {
      mutant<NoTailMask>("01-no-tail-mask", "no key-tail mask, zero-fill kept (FA a4f148b6)"),
      mutant<TailMaskOnlyOnDiagonal>("02-tail-mask-only-on-diagonal",
                                     "tail mask only on tiles the diagonal touches (FA c65b5106)"),
      mutant<FirstLsePastRows>("04-first-lse-past-rows", "rows past seqlen_q use LSE[0] (cudnn-frontend#1072)"),
      mutant<QueryTailSkippedOnFullTiles>("08-query-tail-skipped-on-full-tiles",
                                          "query-tail bound skipped when the key tile is full (NATTEN#341)"),
      mutant<TailMaskSkippedWithBias>("10-tail-mask-skipped-with-bias",
                                      "tail mask skipped where a bias is on (pytorch#153799)"),
      mutant<CausalWithoutOffset>("20-causal-without-offset", "mask without the bottom-right offset (ffpa-attn#300)"),
      mutant<AlwaysCausal>("21-always-causal", "always causal (triton#4541)"),
      mutant<WindowLeftExclusive>("24-window-left-exclusive",
                                  "< for <= at the window's left edge (TransformerEngine#1197)"),
      mutant<NoStoreWithoutQueries>("37-no-store-without-queries", "dK, dV unwritten at seqlen_q = 0 (FA db2f8069)"),
      mutant<NoStoreForUnseenKeys>("38-no-store-for-unseen-keys",
                                   "dK, dV unwritten for keys that no query sees (FA 6998e0ec)"),
      mutant<NarrowAccumulatorOffset>("45-narrow-accumulator-offset",
                                      "offset of dQ's accumulator wraps, here at 16 bits (FA 6865e601)"),
      mutant<NarrowOffsetOfDout>("47-narrow-offset-of-dout", "row * stride of dO wraps, here at 16 bits (FA#2611)"),
      mutant<NoBarrierBeforeDq>("53-no-barrier-before-dq",
                                "no barrier before the shared dQ is stored again (FA ea38d3d2)"),
      mutant<NoBarrierAfterDq>("56-no-barrier-after-dq", "shared dQ read without a barrier (ninfer-3090#49)"),
      mutant<NoBarrierAtTop>("57-no-barrier-at-top", "no barrier at the loop's top (FlashInfer 6dff34d1)"),
      mutant<NoWaitForPreprocess>("59-no-wait-for-preprocess", "no wait for the previous kernel (FA 3a7694c0)"),
      mutant<OutputWithStridesOfDout>("62-output-with-strides-of-dout", "O read with dO's strides (FA 9ee0ff1d)"),
      mutant<StridesOfDkAndDvSwapped>("65-strides-of-dk-and-dv-swapped", "dK's and dV's strides swapped"),
      mutant<DvColumnsOfHeaddim>("70-dv-columns-of-headdim", "dV's column predicate uses headdim (FA 6d199aa2)"),
      mutant<HeadsByRemainder>("71-heads-by-remainder", "key head h % nheads_k (HipKittens#22)"),
      mutant<OneHeadOfTheGroup>("72-one-head-of-the-group", "dK, dV of one head of the group (levanter#449)"),
      mutant<RowProductsRounded>("92-row-products-rounded", "terms of D rounded before the cancelling sum (jax#40128)"),
      mutant<StatisticsOfFirstBlock>("100-statistics-of-first-block",
                                     "LSE and D indexed by the first block (FA b3f1b6a5)"),
      mutant<DeterministicIgnored>("102-deterministic-ignored", "deterministic flag ignored (FA c5f6ff49)"),
      mutant<AddsPastRows>("104-adds-past-rows", "0 added to row -1 for rows that do not exist (FA c68c592f)"),
      mutant<KeyTailReadPastTheEnd>("114-key-tail-read-past-the-end", "tail read past K (cudnn-frontend 1.16.0)"),
      mutant<NoBarrierBeforeProducts>("no-barrier-before-products", "P and dS read without a barrier"),
      mutant<NoBarrierBeforeRefill>("no-barrier-before-refill", "Q and dO filled again without a barrier"),
      mutant<WaitsForOneGroupTooFew>("wait-one-group-too-few", "the wait leaves one group too many in flight"),
      mutant<DqWithoutScale>("dq-without-scale", "dQ not multiplied by the softmax scale"),
      mutant<DkWithoutScale>("dk-without-scale", "dK not multiplied by the softmax scale"),
      mutant<NoSoftcapSlope>("no-softcap-slope", "derivative of the softcap dropped"),
      mutant<NoRowProducts>("no-row-products", "dS = P dP without D"),
      mutant<RowProductsOfNextRow>("row-products-of-next-row", "D of the next row"),
  };
  return all;
}

}  // namespace attest
