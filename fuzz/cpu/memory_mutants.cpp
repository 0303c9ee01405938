// Strides, pages, columns, heads, alignment, index width.
#include "mutant_parts.h"

namespace attest {
namespace {

struct StoreWithoutRowPredicate
    : KernelPlan {  // writes the row past the last query; further ones would hit other tensors
  constexpr int row_limit(Operand x, const Work& w) const {
    return KernelPlan::row_limit(x, w) + (x == Operand::o ? 1 : 0);
  }
};
struct TailOfVNotZeroed : KernelPlan {
  constexpr bool zero_fills(Operand x) const { return x != Operand::v; }
};
struct OutputColumnsOfHeaddim : KernelPlan {
  constexpr int column_limit(Operand x) const {
    return x == Operand::o ? std::min(headdim, columns(x)) : KernelPlan::column_limit(x);
  }
};
struct ValueColumnsOfHeaddim : KernelPlan {
  constexpr int column_limit(Operand x) const { return x == Operand::v ? headdim : KernelPlan::column_limit(x); }
};
struct StridesOfKAndVSwapped : KernelPlan {
  constexpr ForwardArgs arguments(ForwardArgs a, const GridExtents&) const {
    std::swap(a.k.batch_stride, a.v.batch_stride);
    std::swap(a.k.row_stride, a.v.row_stride);
    std::swap(a.k.head_stride, a.v.head_stride);
    return a;
  }
};
struct BatchStrideOfOneToken : KernelPlan {
  constexpr ForwardArgs arguments(ForwardArgs a, const GridExtents&) const {
    return a.k.batch_stride = a.k.row_stride, a;
  }
};
struct HeadsByRemainder : KernelPlan {
  constexpr int kv_head(int head, int nheads, int nheads_k) const { return head % nheads_k; }
};
struct HeadsByGroupRemainder : KernelPlan {
  constexpr int kv_head(int head, int nheads, int nheads_k) const { return head % (nheads / nheads_k) % nheads_k; }
};

struct BiasReadPastQueries : KernelPlan {
  constexpr int bias_row_limit(const Work& w) const { return round_up(w.seqlen_q, tile_m); }
};
struct BoundByPage : KernelPlan {
  constexpr int row_limit(Operand x, const Work& w) const {
    const bool key = x == Operand::k || x == Operand::v;
    return key && w.page_size > 0 ? round_up(w.seqlen_k, w.page_size) : KernelPlan::row_limit(x, w);
  }
};
struct PageTableReadPastColumns : KernelPlan {  // for every row of the last tile
  constexpr int row_limit(Operand x, const Work& w) const {
    const bool key = x == Operand::k || x == Operand::v;
    return key && w.page_size > 0 ? round_up(w.seqlen_k, tile_n) : KernelPlan::row_limit(x, w);
  }
};
/// What is left of an offset in an integer of 12 bits, which stand for the 32 of the bug: a small case overflows them.
constexpr std::int64_t narrow(std::int64_t offset) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(offset) << 52) >> 52;
}
struct NarrowPageOffset : KernelPlan {
  constexpr std::int64_t page_offset(std::int64_t page, std::int64_t stride) const { return narrow(page * stride); }
};
struct NarrowBiasOffset : KernelPlan {
  constexpr std::int64_t bias_offset(std::int64_t row, std::int64_t stride) const { return narrow(row * stride); }
};
struct HardCodedStrides : KernelPlan {
  constexpr ForwardArgs arguments(ForwardArgs a, const GridExtents& grid) const {
    a.q.row_stride = grid.nheads * headdim;
    a.q.head_stride = headdim;
    return a;
  }
};
struct WideCopies : KernelPlan {
  constexpr int copy_bytes(Operand) const { return 16; }
};

}  // namespace

std::vector<Mutant> memory_mutants() {
  return {
      mutant<StoreWithoutRowPredicate>("12-store-without-row-predicate",
                                       "O store without its row predicate (llama.cpp#7465)"),
      mutant<BiasReadPastQueries>("13-bias-read-past-queries", "bias load without q < seqlen_q (FA bba578d4)"),
      mutant<TailOfVNotZeroed>("15-tail-of-v-not-zeroed", "V past seqlen_k loaded without zeroing (FA#1745)"),
      mutant<BoundByPage>("17-bound-by-page", "bound checked per page, not per token (FlashInfer 27906fdb)"),
      mutant<NarrowPageOffset>("48-narrow-page-offset", "page offset in too few bits, 12 for 32 (FlashInfer d885b71f)"),
      mutant<NarrowBiasOffset>("50-narrow-bias-offset", "mask offset in too few bits, 12 for 32 (FlashInfer ba3f3248)"),
      mutant<HardCodedStrides>("64-hard-coded-strides", "stride = nheads * headdim hard-coded (FA bdda7481)"),
      mutant<StridesOfKAndVSwapped>("65-strides-of-k-and-v-swapped", "K and V strides swapped (FlagAttention#45)"),
      mutant<BatchStrideOfOneToken>("67-batch-stride-of-one-token", "batch stride = one token (FlashInfer#3800)"),
      mutant<WideCopies>("69-wide-copies", "16-byte copies without checking alignment (pytorch#90413)"),
      mutant<OutputColumnsOfHeaddim>("70-output-columns-of-headdim", "O's column predicate uses headdim (FA#2552)"),
      mutant<ValueColumnsOfHeaddim>("70-value-columns-of-headdim", "V's column predicate uses headdim (FA 6d199aa2)"),
      mutant<HeadsByRemainder>("71-heads-by-remainder", "key head h % nheads_k (HipKittens#22)"),
      mutant<HeadsByGroupRemainder>("71-heads-by-group-remainder", "key head h % group (HipKittens#22)"),
      mutant<PageTableReadPastColumns>("106-page-table-past-columns", "page table read past its columns (FA 77aacb68)"),
  };
}

}  // namespace attest
