// Plans with names: the kernels that a prediction can be asked for, and how a plan adapts to where tensors lie.
#pragma once
#include <algorithm>
#include <array>
#include <initializer_list>
#include <numeric>
#include <string_view>

#include "attest/plan/args.h"
#include "attest/plan/kernel_plan.h"
#include "attest/plan/sm80_tiles.h"
#include "attest/problem/case.h"

namespace attest {

/// The widest copy of 16, 8, 4, 2 or 1 bytes that divides `alignment_bytes`.
constexpr int copy_granule(std::int64_t alignment_bytes) {
  int bytes = 16;
  while (bytes > 1 && alignment_bytes % bytes != 0) bytes /= 2;
  return bytes;
}

/// Strides in elements of a tensor [batch, seqlen, heads, dim] in a layout; the last dimension is contiguous.
constexpr TensorRef strides_of(const Layout& layout, std::int64_t seqlen, std::int64_t heads, std::int64_t dim) {
  const std::int64_t inner = dim + layout.row_gap, rows = seqlen + layout.seq_gap;
  if (layout.order == Layout::Order::bshd) return {nullptr, rows * heads * inner, heads * inner, inner};
  return {nullptr, heads * rows * inner, inner, rows * inner};
}

/// `plan` with the copies that these tensors allow: a granule divides a row, every stride and the base.
constexpr KernelPlan with_granules(KernelPlan plan, const TensorRef& q, const TensorRef& k, const TensorRef& v,
                                   const TensorRef& o, const std::array<std::int64_t, 4>& base_bytes) {
  const auto granule = [](const TensorRef& t, int dim, int element_bytes, std::int64_t base) {
    const std::int64_t elements =
        std::gcd(std::gcd(t.batch_stride, t.row_stride), std::gcd(t.head_stride, std::int64_t{dim}));
    return copy_granule(std::gcd(elements * element_bytes, base));
  };
  plan.copy_bytes_q = granule(q, plan.headdim, plan.element_bytes, base_bytes[0]);
  plan.copy_bytes_k = granule(k, plan.headdim, plan.element_bytes, base_bytes[1]);
  plan.copy_bytes_v = granule(v, plan.headdim_v, plan.element_bytes, base_bytes[2]);
  plan.copy_bytes_o = granule(o, plan.headdim_v, plan.output_bytes(), base_bytes[3]);
  return plan;
}

/// `plan` for the tensors of a case as its layout places them.
constexpr KernelPlan with_layout(const KernelPlan& plan, const Case& c) {
  const Problem& p = c.problem;
  const std::int64_t base = c.layout.base_offset * plan.element_bytes;
  const std::int64_t base_o = c.layout.base_offset * plan.output_bytes();
  return with_granules(plan, strides_of(c.layout, p.seqlen_q, p.nheads, p.headdim),
                       strides_of(c.layout, p.seqlen_k, p.nheads_k, p.headdim),
                       strides_of(c.layout, p.seqlen_k, p.nheads_k, p.headdim_v),
                       strides_of(c.layout, p.seqlen_q, p.nheads, p.headdim_v), {base, base, base, base_o});
}

/// A plan with nothing but a problem's head dimensions and element.
constexpr KernelPlan plan_of_widths(const Problem& p) {
  KernelPlan plan;
  plan.headdim = static_cast<int>(p.headdim);
  plan.headdim_v = static_cast<int>(p.headdim_v);
  plan.element_bytes = bytes_of(p.dtype);
  return plan;
}

/// The first of ascending `sizes` that holds both head dimensions, else the last.
constexpr int padded_columns(const Problem& p, std::initializer_list<int> sizes) {
  int padded = 0;
  for (const int size : sizes) {
    padded = size;
    if (std::max(p.headdim, p.headdim_v) <= size) break;
  }
  return padded;
}

/// A mask as FlashAttention 2 launches it: a window's side that is as long as the keys is none, one on the right alone
/// that is 0 is a causal mask, and one query sees all keys under that.
struct Fa2Mask {
  bool causal = false, local = false;
};
constexpr Fa2Mask fa2_mask(const Problem& p) {
  const bool left = p.window_left >= 0 && p.window_left < p.seqlen_k;
  const bool under_causal = p.causal != Causal::none && (p.seqlen_q > 1 || p.alibi);
  const bool right = under_causal || (p.window_right >= 0 && p.window_right < p.seqlen_k);
  const bool causal = !left && (under_causal || p.window_right == 0);
  return {causal, (left || right) && !causal};
}

/// Whether it launches its kernel for whole tiles, of a plan's tile and padded columns: of longer rows, in windows, and
/// where rows are part of the head dimension it has none.
constexpr bool fa2_is_even(const Problem& p, const KernelPlan& plan) {
  const bool lengths = !p.varlen_q.empty() || !p.varlen_k.empty();
  return !lengths && p.seqlen_q % plan.tile_m == 0 && p.seqlen_k % plan.tile_n == 0 && !fa2_mask(p).local &&
         p.headdim == plan.columns(Operand::q) && plan.columns(Operand::q) <= 128;
}

/// What FlashAttention 2's code is compiled for besides its tile.
struct Fa2Features {
  bool causal = false, local = false, alibi = false, softcap = false;
  bool whole_tiles = true, whole_rows = true;  // lengths and head dimension are multiples of the tile's
};

/// `plan` with what FlashAttention 2's code holds in registers. Words across the loop over key tiles: as 32 kernels of
/// 64 query rows, which have registers to spare, show at its head (bench/hardware/registers/live_words.py), 2 off in
/// the root mean square; softcap's 10 are 1 there and 9 more of the fewest registers without spill
/// (least_registers.py), because tanh begins while S is still being multiplied. Shared memory has rows of 64 columns
/// where the head dimension allows, else of 32: with 64 the swizzle has four addresses where 32 have two. A thread
/// copies so many rows of K's tile; where rows are part of the head dimension each 64 columns have a branch.
constexpr KernelPlan with_words_of(KernelPlan plan, const Fa2Features& f) {
  const int columns = plan.columns(Operand::k);
  const bool wide = columns % 64 == 0;
  const int row_copies = plan.tile_n * (wide ? 8 : 4) / (plan.num_warps * 32);
  plan.loop_words = 18 + 3 * (row_copies - 2);
  if (wide) plan.loop_words += 7;
  if (!f.whole_tiles) plan.loop_words += 8;
  if (f.causal) plan.loop_words += 2;
  if (f.local) plan.loop_words += 9;
  if (f.alibi) plan.loop_words += 3;
  if (f.softcap) plan.loop_words += 10;
  if (!f.whole_rows) plan.loop_words += (wide ? 9 * columns / 128 : 0) - 4;
  plan.fragment_words = 22 + 5 * plan.m_blocks();
  return plan;
}

/// FlashAttention 2's forward as its launch templates choose it, read off its launch sizes and counters, and off those
/// templates for compute capability 8.6 to 8.9, which has smaller tiles: tile rows padded to a listed head dimension,
/// one slot each for K and V, Q read from shared memory in each key tile. Lengths that are no multiple of the tiles run
/// another kernel than whole tiles do. What PyTorch's wheel has of them is simulator/measured/registers_fa2_torch.csv.
/// Of a row, that FlashAttention 2's lanes copy at a time: its swizzle's.
constexpr int fa2_copy_columns(int padded_headdim) { return padded_headdim % 64 == 0 ? 64 : 32; }

/// Thousandths by which the older CTA of an SM leads as PyTorch 2.11 has compiled it, by the kernel's columns, without
/// and with a causal mask, for rows of all columns and of fewer: the middle one of launches of its longest call
/// (docs/results/h200-sm/first_wave.csv, whole tiles; -3 and -4 are none, 120 columns have 68). Not measured: 192, and
/// rows of up to 32 columns or of a part of 64 without a mask. The same source compiled anew leads more.
constexpr int fa2_lead(int padded, bool causal, bool whole_rows) {
  if (padded == 64) return !causal ? 24 : whole_rows ? 93 : 4;
  if (padded == 96) return causal ? (whole_rows ? 109 : 119) : whole_rows ? 2 : 34;
  if (padded == 128) return causal ? (whole_rows ? 17 : 50) : whole_rows ? 8 : 80;
  if (padded == 256) return causal ? (whole_rows ? 0 : 101) : whole_rows ? 2 : 87;
  return 0;
}

constexpr KernelPlan fa2_plan(const Problem& p, std::uint32_t max_smem_bytes, int compute_capability = 90) {
  KernelPlan plan = plan_of_widths(p);
  const int padded = padded_columns(p, {32, 64, 96, 128, 192, 256});
  plan.padded_headdim = plan.padded_headdim_v = padded;
  const auto [causal, local] = fa2_mask(p);
  const bool small_tiles = compute_capability > 80 && compute_capability < 90 && (padded == 96 || padded == 128);
  plan.tile_m = small_tiles && causal ? 64 : 128;
  plan.tile_n = padded <= 64 ? 128 : small_tiles && padded == 128 && plan.tile_m == 128 ? 32 : 64;
  plan.num_warps = padded <= 128 ? 4 : 8;
  plan.grid_order = GridOrder::tiles_batch_heads;
  plan.exp_instructions = 4;
  plan.stores_zeros = true;
  plan.copy_columns = fa2_copy_columns(padded);
  const bool whole_rows = p.headdim == padded && !p.alibi;
  plan = with_words_of(plan, {causal, local, p.alibi, p.softcap != 0, fa2_is_even(p, plan) && !p.alibi, whole_rows});
  // at 256 columns two CTAs of 64 x 64 an SM where they fit, else one of 128 x 64
  const bool two_fit = padded == 256 && max_smem_bytes >= 4 * 256 * (64 + 2 * 64);
  if (two_fit || plan.smem_bytes() > max_smem_bytes) plan.tile_m = plan.tile_n = 64, plan.num_warps = 4;
  plan.xu_per_query_tile = 3 * plan.num_warps;  // a head by heads of a key head
  plan.masked_steps =
      (causal || local ? (plan.tile_m + plan.tile_n - 1) / plan.tile_n : 0) + (fa2_is_even(p, plan) ? 0 : 1);
  if (plan.element_bytes == 2 && !small_tiles && (padded < 256 || two_fit))
    plan.older_cta_lead = fa2_lead(padded, causal, whole_rows);
  return plan;
}

/// Words of the thread that copies, in FlashAttention 3: of kernels whose producers have 24 registers, what is live in
/// its loop and what it stores. A producer that numbers its tiles itself keeps the number and what it takes it apart
/// by; one that is handed tiles does not.
constexpr int fa3_producer_words(Persistence persistence, int cluster, bool varlen, bool masked) {
  if (varlen) return masked ? 30 : 34;
  return persistence == Persistence::static_stride ? (cluster > 1 ? 28 : 26) : 22;
}

/// Words of the threads that compute, there: what a warpgroup that numbers its tiles itself keeps of them, for O's
/// place. At headdim 128, where it has registers to spare, 7 more are live in its loop over key tiles than in that of
/// the kernel with a CTA a tile, and 13 where tiles come in pairs (live_words.py).
constexpr int fa3_tile_words(Persistence persistence, int cluster) {
  return persistence != Persistence::static_stride ? 0 : cluster > 1 ? 13 : 7;
}

/// FlashAttention 3's forward on Hopper, from its launch sizes and counters at headdim 64 and 128, and from its table
/// of tile sizes at others: a producer warpgroup, two consumer warpgroups or three, two slots, wgmma, a persistent
/// grid. Spill at headdim 64 and 128 is by bytes counted, of calls of 352 to 4096 query tiles. Full attention takes
/// tiles at a fixed stride, with K and V multicast to pairs of query tiles where these come in pairs; a mask takes the
/// longest tiles first from a counter, over as many heads at a time as have their K and V in 32 MiB.
constexpr KernelPlan fa3_plan(const Problem& p, std::uint32_t /*max_smem_bytes*/) {
  const bool local = p.window_left >= 0 || p.window_right >= 0, causal = p.causal != Causal::none && !local;
  const bool masked = causal || local;
  KernelPlan plan = plan_of_widths(p);
  const int padded = padded_columns(p, {64, 96, 128, 192, 256});
  plan.padded_headdim = padded;
  plan.padded_headdim_v = padded == 192 && p.headdim_v <= 128 ? 128 : padded;
  plan.tile_m = padded <= 96 ? 192 : 128;
  plan.tile_n = padded <= 64    ? (masked ? 128 : 192)
                : padded <= 96  ? (local ? 128 : 144)
                : padded <= 128 ? (masked ? 128 : 176)
                : padded <= 192 ? (local                          ? 96
                                   : plan.padded_headdim_v <= 128 ? 128
                                                                  : 112)
                                : (local ? 64 : 80);
  plan.num_warps = plan.tile_m / 16;
  plan.producer_warps = 4;
  plan.copy_kind = CopyKind::tma;
  plan.matrix_kind = MatrixKind::wgmma;
  plan.p_in_smem = padded == 96 || (padded == 64 && !masked);
  plan.stages = 2;
  plan.other_smem_bytes = 3072;
  plan.persistence = masked ? Persistence::dynamic : Persistence::static_stride;
  plan.longest_first = masked;
  plan.l2_section_bytes = masked ? 32 << 20 : 0;
  const std::int64_t q_tiles = (p.seqlen_q + plan.tile_m - 1) / plan.tile_m;
  plan.cluster = padded >= 128 && !masked && q_tiles % 2 == 0 ? 2 : 1;
  const bool varlen = !p.varlen_q.empty() || !p.varlen_k.empty() || !p.seqused_k.empty();
  plan.producer_words = fa3_producer_words(plan.persistence, plan.cluster, varlen, masked);
  plan.tile_words = fa3_tile_words(plan.persistence, plan.cluster);
  // as it is compiled, at headdim 64 and 128 (docs/results/h200-sm/fa3_loops.csv)
  plan.softmax_ahead = padded <= 64 ? (masked ? 1183 : 970) : (masked ? 1168 : 1245);
  plan.evict_first_q = true;  // its K and V are evict_last, which changes nothing on an H200
  plan.prefetches_q = true;
  if (padded == 64 || padded == 128) plan.known_registers = plan.num_warps == 12 ? 128 : 168;
  if (!masked && padded == 64) plan.spill_words_at_start = 6, plan.spill_words_per_cta = 1;
  if (!masked && padded == 128) plan.producer_spill_sectors = 10;
  // likewise counted: a division in each query tile that is taken from the counter, one of each warp at the start
  plan.xu_per_query_tile = masked ? 3 : 0;
  if (!masked && padded == 128) plan.xu_per_cta = 3 * plan.num_warps;
  return plan;
}

/// cuDNN's forward on Hopper (PyTorch 2.11, cuDNN 9.19), as its name, its launches and Nsight Compute's page of its
/// instructions, with how often each was executed, have it: a producer warp, two warpgroups of 64 queries that take
/// turns at exponentials, 128 keys a step from the first on, every O rescaled, a persistent grid that takes tiles, the
/// first one too, from a counter in the order of queries, heads, batch, under a mask too, with Q in two buffers (one at
/// 256 columns), two slots each for K and V up to 128 columns, and O staged in 32 KiB of its own. Full attention over
/// keys that fill their tiles in part is another kernel, which compares every score with the length. PyTorch asks it
/// for LSE only where gradients are wanted.
constexpr KernelPlan cudnn_plan(const Problem& p, std::uint32_t /*max_smem_bytes*/) {
  KernelPlan plan = plan_of_widths(p);
  const int padded = padded_columns(p, {64, 128, 192, 256});
  plan.padded_headdim = plan.padded_headdim_v = padded;
  plan.tile_m = plan.tile_n = 128;
  plan.num_warps = 8;
  plan.producer_warps = 4;
  plan.stages = padded <= 128 ? 2 : 1;
  plan.copy_kind = CopyKind::tma;
  plan.matrix_kind = MatrixKind::wgmma;
  plan.overlap = Overlap::between_warpgroups;
  const int second_q = padded <= 192 ? plan.tile_m * padded * plan.element_bytes : 0;
  plan.other_smem_bytes = 3072 + second_q + (32 << 10);
  plan.grid_order = GridOrder::tiles_heads_batch;
  plan.key_order = KeyOrder::ascending;
  plan.persistence = Persistence::dynamic;
  plan.counts_first_tile = true;
  const bool full = p.causal == Causal::none && p.window_left < 0 && p.window_right < 0;
  plan.masks_full_tiles = full && p.seqlen_k % plan.tile_n != 0;
  plan.stores_lse = false;
  plan.known_registers = 168;
  plan.xu_per_query_tile = 3 * plan.num_warps + 1, plan.xu_per_cta = 3;  // as counted in all of h200_cudnn.csv
  // what L2 is asked for in the calls of h200_cudnn.csv; by when CTAs of one GPC end likewise, but of 256 columns
  // (docs/results/h200-sm/one_gpc.csv)
  plan.step_deviation = padded == 64    ? (plan.masks_full_tiles ? 9 : 13)
                        : padded == 128 ? (plan.masks_full_tiles ? 12 : 17)
                        : padded == 192 ? 5
                                        : 10;
  return plan;
}

/// Whether a tile's copies may be of 16 bytes from rows that follow each other: a lane's offset from the tile's first
/// row has 32 bits.
constexpr bool wide_copies(const KernelPlan& plan, Operand x, const TensorRef& t) {
  const std::int64_t tile_span = t.row_stride * plan.rows(x) * plan.bytes(x);
  return plan.copy_bytes(x) == 16 && tile_span < std::int64_t{1} << 31;
}

/// A tile and a kind that gpu/sm80 has a kernel of.
struct Sm80Choice {
  Sm80Tile tile;
  Sm80Kind kind;
};
/// The kernel of a tile that sm80_tile() chose for a kind: short ones are `general` alone.
constexpr Sm80Choice sm80_compiled(Sm80Tile tile, Sm80Kind kind) {
  return {tile, is_short(tile) ? Sm80Kind::general : kind};
}

/// What gpu/sm80 launches for a case: `general` as well where its tensors do not allow copies of 16 bytes or lie in
/// pages.
constexpr Sm80Choice sm80_choice(const Case& c) {
  const Problem& p = c.problem;
  const Sm80Tile tile = sm80_tile(p, Sm80Kind::fast);
  KernelPlan plan = sm80_plan(tile);
  plan.headdim = static_cast<int>(p.headdim);
  plan.headdim_v = static_cast<int>(p.headdim_v);
  plan = with_layout(plan, c);
  const bool wide = c.layout.page_size == 0 && plan.copy_bytes_o == 16 &&
                    wide_copies(plan, Operand::q, strides_of(c.layout, p.seqlen_q, p.nheads, p.headdim)) &&
                    wide_copies(plan, Operand::k, strides_of(c.layout, p.seqlen_k, p.nheads_k, p.headdim)) &&
                    wide_copies(plan, Operand::v, strides_of(c.layout, p.seqlen_k, p.nheads_k, p.headdim_v));
  if (wide && sm80_kind(p) == Sm80Kind::fast) return sm80_compiled(tile, Sm80Kind::fast);
  return {sm80_tile(p, Sm80Kind::general), Sm80Kind::general};
}

/// Our own sm_80 forward: for 16-bit inputs the tile that gpu/sm80 is compiled for (sm80_tiles.h), smaller where a
/// device has too little shared memory for it. Others have no kernel; the same tiles, without padding.
constexpr KernelPlan attest_plan(const Case& c, std::uint32_t max_smem_bytes) {
  const Problem& p = c.problem;
  const Sm80Choice choice = sm80_choice(c);
  KernelPlan plan = sm80_plan(choice.tile);
  plan.headdim = static_cast<int>(p.headdim);
  plan.headdim_v = static_cast<int>(p.headdim_v);
  plan.element_bytes = bytes_of(p.dtype);
  plan.longest_first = p.causal != Causal::none;
  plan.packed_heads = sm80_packed_heads(p);
  if (plan.element_bytes != 2) plan.padded_headdim = plan.padded_headdim_v = 0;
  if (plan.smem_bytes() > max_smem_bytes) plan.stages = 1, plan.merged_wait = false;
  if (plan.smem_bytes() > max_smem_bytes && plan.tile_m > 64) plan.tile_m = 64, plan.num_warps = 4;
  while (plan.smem_bytes() > max_smem_bytes && plan.tile_n > 32) plan.tile_n /= 2;
  if (plan.smem_bytes() > max_smem_bytes && plan.element_bytes > 1) plan.tile_n = 16;
  plan.xu_per_query_tile = p.nheads != p.nheads_k ? 6 * plan.num_warps : 0;  // likewise, twice
  return with_words_of(plan, choice.kind);
}

/// What of a GPU a plan hangs on.
struct PlanTarget {
  std::uint32_t max_smem_bytes = 232'448;  // of a CTA
  int compute_capability = 90;             // 90 for 9.0
};

struct NamedPlan {
  std::string_view name, description;
  KernelPlan (*make)(const Case& c, const PlanTarget& target);
};

inline constexpr NamedPlan named_plans[] = {
    {"attest", "our sm_80 forward: cp.async, ldmatrix, mma.sync, XOR swizzle, lazy rescale",
     [](const Case& c, const PlanTarget& target) { return attest_plan(c, target.max_smem_bytes); }},
    {"fa2", "FlashAttention 2 forward on sm_80 and later, from its launch sizes and counters",
     [](const Case& c, const PlanTarget& target) {
       return fa2_plan(c.problem, target.max_smem_bytes, target.compute_capability);
     }},
    {"fa3", "FlashAttention 3 forward on sm_90, from its launch sizes and counters",
     [](const Case& c, const PlanTarget& target) { return fa3_plan(c.problem, target.max_smem_bytes); }},
    {"cudnn", "cuDNN 9.19 forward on sm_90, from its launch sizes, counters and executed instructions",
     [](const Case& c, const PlanTarget& target) { return cudnn_plan(c.problem, target.max_smem_bytes); }},
};

}  // namespace attest
