// Masks, tails, prefixes and documents, and the tiles that a CTA walks.
#include "mutant_parts.h"

namespace attest {
namespace {

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

struct TailMaskSkippedWithBias : KernelPlan {
  constexpr bool visible(const Work& w, int row, int key) const {
    return bias ? key >= key_begin(w, row) && (w.right < 0 || key <= row + w.diagonal + w.right)
                : KernelPlan::visible(w, row, key);
  }
};
struct LoaderAndMathStartApart : KernelPlan {  // the copies start at the last tile of keys, whatever the mask says
  constexpr KeyWalk copied(KeyWalk walk, const Work& w) const {
    if (w.right >= 0) walk.range.end = (w.seqlen_k + tile_n - 1) / tile_n;
    return walk;
  }
};
struct PrefixOneShort : KernelPlan {
  constexpr int prefix_end(const Work& w) const { return KernelPlan::prefix_end(w) - 1; }
  constexpr TileRange range(const Work& w) const { return tile_range(*this, w); }
};
struct PrefixOneMore : KernelPlan {
  constexpr int prefix_end(const Work& w) const { return w.prefix > 0 ? std::min(w.prefix + 1, w.seqlen_k) : 0; }
  constexpr TileRange range(const Work& w) const { return tile_range(*this, w); }
};
struct PrefixPastTheLastKey : KernelPlan {
  constexpr int prefix_end(const Work& w) const { return w.prefix; }
};
struct WindowCutsPrefix : KernelPlan {
  constexpr int prefix_end(const Work& w) const { return w.left >= 0 ? 0 : KernelPlan::prefix_end(w); }
  constexpr TileRange range(const Work& w) const { return tile_range(*this, w); }
};
struct DocumentOneKeyEarly : KernelPlan {
  constexpr int document_begin(const Work& w, int row) const {
    return std::max(KernelPlan::document_begin(w, row) - 1, 0);
  }
  constexpr TileRange range(const Work& w) const { return tile_range(*this, w); }
};
struct DocumentOneKeyLate : KernelPlan {
  constexpr int document_end(const Work& w, int row) const {
    const int end = KernelPlan::document_end(w, row);
    return end < w.seqlen_k ? end + 1 : end;
  }
  constexpr TileRange range(const Work& w) const { return tile_range(*this, w); }
};
struct DocumentOfTheTile : KernelPlan {  // of its first query, for all of them
  constexpr int first_of_tile(int row) const { return row / tile_m * tile_m; }
  constexpr int document_begin(const Work& w, int row) const {
    return KernelPlan::document_begin(w, first_of_tile(row));
  }
  constexpr int document_end(const Work& w, int row) const { return KernelPlan::document_end(w, first_of_tile(row)); }
};

}  // namespace

std::vector<Mutant> mask_mutants() {
  return {
      mutant<TailMaskOnlyOnDiagonal>("02-tail-mask-only-on-diagonal",
                                     "tail mask only on tiles the diagonal touches (FA c65b5106)"),
      mutant<TailMaskOnlyIfCausal>("05-tail-mask-only-if-causal", "key-tail mask only if causal (FlashInfer 7f33b208)"),
      mutant<UnsignedCausalCompare>("07-unsigned-causal-compare", "causal compare in uint32 (FlashInfer 7adc8cf0)"),
      mutant<TailMaskSkippedWithBias>("10-tail-mask-skipped-with-bias",
                                      "tail mask skipped where a bias is on (pytorch#153799)"),
      mutant<TopLeftAlways>("20-causal-without-offset", "mask without the bottom-right offset (ffpa-attn#300)"),
      mutant<NeverCausal>("22-never-causal", "causal flag has no effect (jax#19237)"),
      mutant<WindowLeftExclusive>("24-window-left-exclusive",
                                  "< for <= at the window's left edge (TransformerEngine#1197)"),
      mutant<WindowRightExclusive>("24-window-right-exclusive",
                                   "< for <= at the window's right edge (transformers#39408)"),
      mutant<FixedMaskedSteps>("26-fixed-masked-steps", "fixed number of masked iterations (FlashInfer 124daea8)"),
      mutant<LastTileForgotten>("27-last-tile-forgotten",
                                "number of tiles rounded down: loader and mask disagree (FA 7ff73af4)"),
      mutant<LoaderAndMathStartApart>("27-loader-and-math-start-apart",
                                      "loader and math use different first tiles (FA 7ff73af4)"),
      mutant<EarlyExitOffByOne>("29-early-exit-off-by-one",
                                "early exit on n_max <= n_min, off by one (TransformerEngine#3528)"),
      mutant<PrefixOneShort>("prefix-one-short", "the prefix ends one key early"),
      mutant<PrefixOneMore>("prefix-one-more", "the prefix ends one key late"),
      mutant<PrefixPastTheLastKey>("prefix-past-the-last-key", "the prefix is not cut at the number of keys"),
      mutant<WindowCutsPrefix>("window-cuts-prefix", "a window hides the prefix"),
      mutant<DocumentOneKeyEarly>("document-one-key-early", "a document begins one key early"),
      mutant<DocumentOneKeyLate>("document-one-key-late", "a document ends one key late"),
      mutant<DocumentOfTheTile>("document-of-the-tile",
                                "the document of a tile's first query stands for all its queries"),
  };
}

}  // namespace attest
