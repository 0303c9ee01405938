// Lengths of batch entries, and the scheduler that hands out their tiles.
#include "mutant_parts.h"

namespace attest {
namespace {

struct NarrowByteCount : KernelPlan {  // of a head's keys and values, by which heads that share the L2 are counted
  constexpr CtaIndex cta(const GridExtents& grid, std::int64_t index) const {
    CtaIndex at = KernelPlan::cta(grid, index);
    const std::int64_t bytes = grid.seqlen_k * (headdim + headdim_v) * element_bytes, bits = 12;  // for 32
    const bool overflows = (bytes >> (bits - 1) & 1) != 0;
    if (overflows) at.head = 0;  // as many heads as fit into less than nothing
    return at;
  }
};
struct GridWithoutGroup : KernelPlan {
  constexpr std::int64_t num_ctas(const GridExtents& grid) const { return grid.size() / grid.nheads * grid.nheads_k; }
};
struct PackedSplitIndex : KernelPlan {
  constexpr KeyWalk walk(const TileRange& r, const Work& w) const {
    const int packed = num_splits > 1 ? num_splits << 16 | w.split : w.split;
    return packed < num_splits ? KernelPlan::walk(r, w) : KeyWalk{};
  }
};
struct StepWithoutFactor : KernelPlan {  // batch entries are looked for in groups of 4
  constexpr CtaIndex cta(const GridExtents& grid, std::int64_t index) const {
    CtaIndex at = KernelPlan::cta(grid, index);
    at.batch = at.batch / 4 + at.batch % 4;  // where group / 4 * 4 + place was meant
    return at;
  }
};
struct ValidityIgnored : KernelPlan {
  constexpr bool has_rows(const Work&) const { return true; }
  constexpr int row_limit(Operand x, const Work& w) const {
    return x == Operand::o ? (w.q_tile + 1) * tile_m : KernelPlan::row_limit(x, w);
  }
};
struct LaunchStatusDiscarded : KernelPlan {
  constexpr bool has_rows(const Work& w) const { return KernelPlan::has_rows(w) && smem_bytes() <= 48 * 1024; }
};
struct UsedKeysIgnored : KernelPlan {
  constexpr ForwardArgs arguments(ForwardArgs a, const GridExtents&) const { return a.seqused_k = nullptr, a; }
};
struct QueryLengthsForKeys : KernelPlan {
  constexpr ForwardArgs arguments(ForwardArgs a, const GridExtents&) const {
    if (a.cu_seqlens_q != nullptr && a.cu_seqlens_k != nullptr) a.cu_seqlens_k = a.cu_seqlens_q;
    return a;
  }
};
struct SequencesOneEntryLate : KernelPlan {
  constexpr std::int64_t first_row(const std::int32_t* cu_seqlens, std::int64_t batch) const {
    return cu_seqlens[batch + 1];
  }
};

}  // namespace

std::vector<Mutant> length_mutants() {
  return {
      mutant<NarrowByteCount>("52-narrow-byte-count",
                              "the scheduler's byte count overflows, 12 bits for 32 (FA 7052e212)"),
      mutant<GridWithoutGroup>("74-grid-without-group", "the grid lacks the factor group (FlashInfer 4c157771)"),
      mutant<PackedSplitIndex>("81-packed-split-index",
                               "the split is compared after packing 16 high bits (FA 9f2d2ae3)"),
      mutant<StepWithoutFactor>("109-step-without-factor",
                                "the scheduler's step lacks a factor, 4 batch entries for 256 (FA 3b5047d2)"),
      mutant<ValidityIgnored>("111-validity-ignored", "validity of a tile ignored (FA#2862)"),
      mutant<LaunchStatusDiscarded>("113-launch-status-discarded",
                                    "too much shared memory asked for, launch status discarded (sparkinfer#713)"),
      mutant<UsedKeysIgnored>("seqused-ignored", "seqused_k is ignored"),
      mutant<QueryLengthsForKeys>("cu-seqlens-of-queries-for-keys",
                                  "cu_seqlens_q is read where cu_seqlens_k should be"),
      mutant<SequencesOneEntryLate>("cu-seqlens-one-entry-late", "a sequence starts where the next one should"),
  };
}

}  // namespace attest
