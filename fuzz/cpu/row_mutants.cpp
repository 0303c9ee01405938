// Empty rows, sentinels, and what has no keys.
#include <stdexcept>

#include "mutant_parts.h"

namespace attest {
namespace {

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

struct AddsBiasAfterLog2e : KernelPlan {
  constexpr bool subtracts_before_log2e() const { return false; }
};
struct NoTileWithoutKeys : KernelPlan {
  constexpr bool has_rows(const Work& w) const { return KernelPlan::has_rows(w) && w.seqlen_k > 0; }
};
struct DividesByKeys : KernelPlan {  // on the host, where it traps; here it is thrown
  Work work(const Work& w) const {
    if (w.seqlen_k == 0) throw std::domain_error("integer division by zero: tiles that fit beside seqlen_k keys");
    return w;
  }
};
struct NoSplitsWithoutKeys : KernelPlan {
  constexpr bool has_rows(const Work& w) const {
    return KernelPlan::has_rows(w) && (num_splits == 1 || std::min(num_splits, w.seqlen_k) > 0);
  }
};
struct CombineWithoutGuard : KernelPlan {
  constexpr float combine_shift(float largest_lse) const { return largest_lse; }
};

}  // namespace

std::vector<Mutant> row_mutants() {
  return {
      mutant<CombineWithoutGuard>("30-combine-without-guard", "combine without its -inf guard (FA 31920dda)"),
      mutant<FiniteSentinel>("33-finite-sentinel", "finite sentinel -5e4 for -inf (FlashInfer d7f2c646)"),
      mutant<LseOfEmptyRowFinite>("34-lse-of-empty-row-finite", "finite LSE on an empty row (FlashInfer#4452)"),
      mutant<AddsBiasAfterLog2e>("35-lowest-finite-times-log2e",
                                 "scores that hold the lowest finite number times log2(e) (pytorch#109517)"),
      mutant<NoStoreWithoutKeys>("37-no-store-without-keys", "early return without a store (FA db2f8069)"),
      mutant<LseOfEmptyRowZero>("40-lse-of-empty-row-zero", "LSE 0 where no key is visible (FlashInfer 6ac28f4d)"),
      mutant<NoSplitsWithoutKeys>("40-no-splits-without-keys", "number of splits = ceil(0) = 0 (FlashInfer 6ac28f4d)"),
      mutant<NoTileWithoutKeys>("41-no-tile-without-keys",
                                "the scheduler emits no tile without keys (FlashInfer 6ec3baed)"),
      mutant<DividesByKeys>("42-divides-by-seqlen-k", "the launcher divides by seqlen_k (FA 03cd0651)"),
  };
}

}  // namespace attest
