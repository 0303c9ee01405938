// Copies, waits and barriers.
#include "mutant_parts.h"

namespace attest {
namespace {

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

struct NoArrivalOnEmptyTile : KernelPlan {  // a warp that sees nothing of a tile goes on to the next
  constexpr bool arrives(const Work& w, int warp, int tile) const {
    const int last = std::min(w.q_tile * tile_m + (warp + 1) * rows_per_warp(), w.seqlen_q) - 1;
    return tile * tile_n < key_end(w, last);
  }
};
struct BarrierUnderWarpCondition : KernelPlan {  // only warps that have queries stage O
  constexpr bool arrives_to_stage(const Work& w, int warp) const {
    return w.q_tile * tile_m + warp * rows_per_warp() < w.seqlen_q;
  }
};
struct CopiesPastTheTile : KernelPlan {
  constexpr bool guards_tile_rows() const { return false; }
};
struct ValueStageWithoutStride : KernelPlan {
  constexpr int value_slot(int slot) const { return element_bytes == 1 ? 0 : slot; }
};
struct CombineBesideSplits : KernelPlan {
  constexpr bool combines_after_splits() const { return false; }
};

}  // namespace

std::vector<Mutant> pipeline_mutants() {
  return {
      mutant<CopiesPastTheTile>("14-copies-past-the-tile",
                                "copies without the guard that a thread's row lies in the tile (FA 2dc1b205)"),
      mutant<NoArrivalOnEmptyTile>("44-no-arrival-on-empty-tile",
                                   "barrier arrival skipped on an empty tile (FA fec3a6a1)"),
      mutant<NoBarrierBeforeRefill>("53-no-barrier-before-refill", "slot filled again without a barrier (FA ea38d3d2)"),
      mutant<NoBarrierAfterWait>("56-no-barrier-after-wait", "wait_group without __syncthreads (ninfer-3090#49)"),
      mutant<NoBarrierBeforeStaging>("57-no-barrier-before-staging",
                                     "no barrier before shared memory is reused (FlashInfer 6dff34d1)"),
      mutant<CombineBesideSplits>("59-combine-beside-splits",
                                  "a dependent launch does not wait for the kernel before it (FA 3a7694c0)"),
      mutant<BarrierUnderWarpCondition>("61-barrier-under-warp-condition",
                                        "a barrier under a warp's condition (llama.cpp#27870)"),
      mutant<ValueStageWithoutStride>("108-value-stage-without-stride",
                                      "the stage offset of an 8-bit V lacks its stride (triton#11440)"),
      mutant<WaitsForOneGroupTooFew>("wait-one-group-too-few", "K's wait leaves one group too many in flight"),
      mutant<NoWaitForV>("no-wait-for-v", "V read while its copy is in flight"),
  };
}

}  // namespace attest
