// Splits of the keys, their workspace and combine.
#include "mutant_parts.h"

namespace attest {
namespace {

struct WorkspaceFreed : KernelPlan {
  constexpr bool keeps_workspace() const { return false; }
};
struct CombinedLseTransposed : KernelPlan {
  constexpr std::int64_t lse_row(const HeadPlace& at) const {
    if (num_splits == 1) return KernelPlan::lse_row(at);
    return at.packed ? at.first_row * at.nheads + at.head : at.batch * at.nheads * at.seqlen_q + at.head;
  }
  constexpr std::int64_t lse_stride(const HeadPlace& at) const { return num_splits == 1 ? 1 : at.nheads; }
};
struct CombineOfFixedLength : KernelPlan {
  constexpr HeadPlace combine_place(HeadPlace at) const { return at.packed = false, at; }
};
struct PartialLseInBase2 : KernelPlan {
  constexpr float lse_of_log2(float log2_sum) const {
    return num_splits > 1 ? log2_sum : KernelPlan::lse_of_log2(log2_sum);
  }
};
struct ShareRoundedDown : KernelPlan {
  constexpr KeyWalk walk(const TileRange& r, const Work& w) const {
    if (num_splits == 1) return KernelPlan::walk(r, w);
    const int share = r.size() / num_splits;
    return {r, key_order, w.split * share, (w.split + 1) * share};
  }
};
struct WorkspaceOfOneBatch : KernelPlan {
  constexpr std::int64_t partial_row(HeadPlace at, int split_index) const {
    at.batch = 0;
    return KernelPlan::partial_row(at, split_index);
  }
};

}  // namespace

std::vector<Mutant> split_mutants() {
  return {
      mutant<WorkspaceFreed>("75-workspace-freed", "workspace freed before combine (FA 1c275eb0)"),
      mutant<CombinedLseTransposed>("77-combined-lse-transposed",
                                    "heads and rows transposed in the combined LSE (vllm flash-attn#87)"),
      mutant<CombineOfFixedLength>("78-combine-of-fixed-length",
                                   "combine assumes that every sequence has seqlen_q queries (FA#1217)"),
      mutant<PartialLseInBase2>("86-partial-lse-in-base-2", "LSE of the splits in base 2 (sglang#35045)"),
      mutant<ShareRoundedDown>("split-share-rounded-down", "tiles of a split = tiles / splits, rounded down"),
      mutant<WorkspaceOfOneBatch>("workspace-of-one-batch", "rows of the workspace without their batch entry"),
  };
}

}  // namespace attest
