// A case made by hand for each planted bug of a feature.
#pragma once
#include <ostream>

namespace attest {

struct Planted {
  const char* id;
  const char* plan;
  const char* json;
};

inline void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.id; }

inline constexpr const char* small = "tile_m=16,tile_n=16,warps=1,stages=1";

inline constexpr Planted planted_cases[] = {
    {"10-tail-mask-skipped-with-bias", small, R"({"seqlen_q":4,"seqlen_k":5,"headdim":8,"bias":"bhqk"})"},
    {"13-bias-read-past-queries", small, R"({"seqlen_q":5,"seqlen_k":8,"headdim":8,"bias":"11qk"})"},
    {"14-copies-past-the-tile", "tile_m=64,tile_n=16,warps=4", R"({"seqlen_q":4,"seqlen_k":20,"headdim":16})"},
    {"17-bound-by-page", small, R"({"seqlen_q":2,"seqlen_k":20,"headdim":8,"page_size":16})"},
    {"27-loader-and-math-start-apart", small, R"({"seqlen_q":40,"seqlen_k":100,"headdim":8,"causal":"bottom-right"})"},
    {"30-combine-without-guard", small,
     R"({"seqlen_q":8,"seqlen_k":2,"headdim":8,"causal":"bottom-right","num_splits":2})"},
    {"35-lowest-finite-times-log2e", small,
     R"({"seqlen_q":64,"seqlen_k":8,"headdim":8,"dtype":"fp32","bias":"bhqk","inputs":"large"})"},
    {"40-no-splits-without-keys", small, R"({"seqlen_q":4,"seqlen_k":0,"headdim":8,"num_splits":2})"},
    {"41-no-tile-without-keys", small, R"({"seqlen_q":4,"varlen_k":[4,0,3],"headdim":8})"},
    {"42-divides-by-seqlen-k", small, R"({"seqlen_q":4,"varlen_k":[4,0,3],"headdim":8})"},
    {"44-no-arrival-on-empty-tile", "tile_m=64,tile_n=16,warps=4",
     R"({"seqlen_q":64,"seqlen_k":64,"headdim":16,"causal":"bottom-right"})"},
    {"48-narrow-page-offset", small, R"({"seqlen_q":2,"seqlen_k":200,"headdim":16,"page_size":16})"},
    {"50-narrow-bias-offset", small, R"({"seqlen_q":64,"seqlen_k":100,"headdim":8,"bias":"11qk"})"},
    {"52-narrow-byte-count", small, R"({"nheads":2,"seqlen_q":4,"seqlen_k":100,"headdim":16})"},
    {"59-combine-beside-splits", small, R"({"seqlen_q":4,"seqlen_k":40,"headdim":8,"num_splits":2})"},
    {"61-barrier-under-warp-condition", "tile_m=64,tile_n=16,warps=4,stages=2,merged_wait=1",
     R"({"seqlen_q":4,"seqlen_k":20,"headdim":16,"headdim_v":32})"},
    {"64-hard-coded-strides", small, R"({"nheads":2,"seqlen_q":4,"seqlen_k":8,"headdim":8,"layout":"bhsd"})"},
    {"69-wide-copies", small, R"({"seqlen_q":4,"seqlen_k":8,"headdim":100})"},
    {"74-grid-without-group", small, R"({"nheads":4,"nheads_k":2,"seqlen_q":4,"seqlen_k":8,"headdim":8})"},
    {"75-workspace-freed", small, R"({"seqlen_q":4,"seqlen_k":40,"headdim":8,"num_splits":2})"},
    {"77-combined-lse-transposed", small, R"({"nheads":2,"seqlen_q":4,"seqlen_k":40,"headdim":8,"num_splits":2})"},
    {"78-combine-of-fixed-length", small, R"({"nheads":2,"varlen_q":[3,5],"seqlen_k":40,"headdim":8,"num_splits":2})"},
    {"81-packed-split-index", small, R"({"seqlen_q":4,"seqlen_k":40,"headdim":8,"num_splits":2})"},
    {"83-masks-before-cap", small, R"({"seqlen_q":4,"seqlen_k":5,"headdim":8,"softcap":2})"},
    {"85-bias-inside-cap", small, R"({"seqlen_q":4,"seqlen_k":5,"headdim":8,"softcap":2,"bias":"bhqk"})"},
    {"85-bias-before-scale", small, R"({"seqlen_q":4,"seqlen_k":5,"headdim":8,"bias":"bhqk"})"},
    {"86-partial-lse-in-base-2", small, R"({"seqlen_q":4,"seqlen_k":40,"headdim":8,"num_splits":2})"},
    {"93-probabilities-up-to-4096", "tile_m=16,tile_n=32,warps=1,lazy_rescale=1",
     R"({"seqlen_q":16,"seqlen_k":100,"headdim":16,"dtype":"fp8_e4m3","softmax_scale":1.5})"},
    {"94-another-exp-on-masked-tiles", small, R"({"seqlen_q":4,"seqlen_k":20,"headdim":8})"},
    {"106-page-table-past-columns", "tile_m=16,tile_n=64,warps=1",
     R"({"seqlen_q":2,"seqlen_k":20,"headdim":8,"page_size":16})"},
    {"107-key-descale-twice", "", R"({"seqlen_q":4,"seqlen_k":10,"headdim":16,"dtype":"fp8_e4m3"})"},
    {"107-value-descale-dropped", "", R"({"seqlen_q":4,"seqlen_k":10,"headdim":16,"dtype":"fp8_e5m2"})"},
    {"108-value-stage-without-stride", "tile_m=16,tile_n=32,warps=1,stages=2",
     R"({"seqlen_q":4,"seqlen_k":100,"headdim":16,"dtype":"fp8_e4m3"})"},
    {"109-step-without-factor", small, R"({"batch":5,"seqlen_q":4,"seqlen_k":8,"headdim":8})"},
    {"111-validity-ignored", small, R"({"varlen_q":[3,5,2],"seqlen_k":8,"headdim":8})"},
    {"113-launch-status-discarded", "tile_m=64,tile_n=16,warps=4",
     R"({"seqlen_q":4,"seqlen_k":8,"headdim":256,"dtype":"fp32"})"},
    {"alibi-added", small, R"({"seqlen_q":4,"seqlen_k":10,"headdim":8,"alibi":true})"},
    {"alibi-without-magnitude", small, R"({"seqlen_q":4,"seqlen_k":4,"headdim":8,"alibi":true})"},
    {"alibi-without-offset", small, R"({"seqlen_q":4,"seqlen_k":10,"headdim":8,"alibi":true})"},
    {"bias-of-first-head", small, R"({"nheads":2,"seqlen_q":4,"seqlen_k":10,"headdim":8,"bias":"1hqk"})"},
    {"cu-seqlens-of-queries-for-keys", small, R"({"varlen_q":[3,5],"varlen_k":[7,4],"headdim":8})"},
    {"cu-seqlens-one-entry-late", small, R"({"varlen_q":[3,5],"varlen_k":[7,4],"headdim":8})"},
    {"document-of-the-tile", small, R"({"seqlen_q":20,"seqlen_k":20,"headdim":8,"documents":[7,13]})"},
    {"document-one-key-early", small, R"({"seqlen_q":20,"seqlen_k":20,"headdim":8,"documents":[7,13]})"},
    {"document-one-key-late", small, R"({"seqlen_q":20,"seqlen_k":20,"headdim":8,"documents":[7,13]})"},
    {"prefix-one-more", small, R"({"seqlen_q":8,"seqlen_k":8,"headdim":8,"causal":"bottom-right","prefix":5})"},
    {"prefix-one-short", small, R"({"seqlen_q":8,"seqlen_k":8,"headdim":8,"causal":"bottom-right","prefix":5})"},
    {"prefix-past-the-last-key", small, R"({"seqlen_q":4,"seqlen_k":5,"headdim":8,"prefix":9})"},
    {"seqused-ignored", small, R"({"batch":2,"seqlen_q":3,"seqlen_k":20,"headdim":8,"seqused_k":[5,20]})"},
    {"sink-forgotten", small, R"({"seqlen_q":4,"seqlen_k":10,"headdim":8,"sink":true})"},
    {"sink-in-every-split", small, R"({"seqlen_q":4,"seqlen_k":40,"headdim":8,"sink":true,"num_splits":2})"},
    {"softcap-without-division", small, R"({"seqlen_q":4,"seqlen_k":10,"headdim":8,"softcap":2})"},
    {"split-share-rounded-down", small, R"({"seqlen_q":4,"seqlen_k":40,"headdim":8,"num_splits":2})"},
    {"window-cuts-prefix", small, R"({"seqlen_q":20,"seqlen_k":20,"headdim":8,"window_left":1,"prefix":3})"},
    {"workspace-of-one-batch", small, R"({"batch":2,"seqlen_q":4,"seqlen_k":40,"headdim":8,"num_splits":2})"},
};

}  // namespace attest
