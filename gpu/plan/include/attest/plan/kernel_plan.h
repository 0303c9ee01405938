// Everything a forward kernel decides before it runs: tiles, stages, shared memory, copies, masks, rounding. A flat
// aggregate of numbers; its members are constexpr, so that CUDA folds them and the host runs them on values.
//
// A wrong kernel is a plan too: a type that derives from KernelPlan and hides one member (the mutants in fuzz/cpu).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "attest/plan/args.h"
#include "attest/plan/masks.h"
#include "attest/plan/portable.h"
#include "attest/plan/scheduler.h"
#include "attest/plan/scores.h"
#include "attest/plan/swizzle.h"
#include "attest/plan/work.h"

namespace attest {

/// How tiles reach shared memory: cp.async, loads and stores through registers, or bulk tensor copies (TMA).
enum class CopyKind : std::uint8_t { cp_async, synchronous, tma };
/// What multiplies: mma.sync from registers, or wgmma, which reads K, V and Q from shared memory itself.
enum class MatrixKind : std::uint8_t { mma_sync, wgmma };
/// What runs under wgmma's products. Within a warpgroup: scores of the next key tile are issued before O += P V of this
/// one, so that its softmax has both beside it. Between warpgroups: each waits for its own products, and they take
/// turns at exponentials, so that one's products run beside another's softmax.
enum class Overlap : std::uint8_t { within_warpgroup, between_warpgroups };

struct KernelPlan {
  int headdim = 64;
  int headdim_v = 64;
  int element_bytes = 2;
  int tile_m = 64;              // queries a CTA
  int tile_n = 64;              // keys a step
  int num_warps = 4;            // that compute
  int producer_warps = 0;       // beside them, that only copy
  int stages = 1;               // shared-memory slots each for K and V
  bool merged_wait = false;     // stages >= 2: one wait and one barrier a key tile, for K and V together
  bool q_in_registers = false;  // Q's fragments are loaded once, not once a key tile
  bool lazy_rescale = false;    // O is rescaled only when a row maximum grows by more than 2^8
  bool swizzled = true;
  int pad_chunks = 0;        // 16-byte chunks by which a row in shared memory is longer than its columns
  int padded_headdim = 0;    // columns a tile of Q and K holds; 0: headdim rounded up to a matrix step
  int padded_headdim_v = 0;  // likewise V and O
  int copy_bytes_q = 16, copy_bytes_k = 16, copy_bytes_v = 16,
      copy_bytes_o = 16;  // granule of a copy: 16, 8, 4, 2 or 1
  int copy_columns = 0;   // of a row, that lanes beside each other copy at a time; 0: as many as a warp can
  CopyKind copy_kind = CopyKind::cp_async;
  MatrixKind matrix_kind = MatrixKind::mma_sync;
  Overlap overlap = Overlap::within_warpgroup;
  bool p_in_smem = false;    // wgmma: P reaches O += P V through shared memory, not in registers
  int other_smem_bytes = 0;  // barriers, alignment, buffers beside Q's with O over it and the slots
  bool stores_lse = true;    // else O alone
  GridOrder grid_order = GridOrder::tiles_heads_batch;
  Persistence persistence = Persistence::none;
  bool counts_first_tile = false;     // dynamic: a CTA's first tile is the counter's too, not the one of its number
  bool longest_first = false;         // a head's query tiles with the most keys go first
  std::int64_t l2_section_bytes = 0;  // heads whose K and V fit these bytes are worked on together; 0: no grouping
  int cluster = 1;                    // CTAs of neighbouring query tiles to which K and V are multicast
  bool skips_tiles = true;            // key tiles that no query of the tile sees are not visited
  bool masks_full_tiles = false;      // scores of key tiles that all queries see are compared with the mask too
  int masked_steps = 0;               // a CTA's first key tiles, each masked by code of its own; 0: a loop masks them
  bool stores_zeros = false;          // where copies of 16 bytes bring nothing: else the copies write them
  bool evict_first_q = false;         // L2 hint of Q's copies
  bool prefetches_q = false;          // to L2, before they are asked for
  KeyOrder key_order = KeyOrder::descending;
  int packed_heads = 1;  // query heads of a key head that share tiles: row r is query r / packed_heads of one of them
  int num_splits = 1;    // CTAs that share a query tile's key tiles; beyond 1 they leave partial results to combine()
  bool softcap = false, alibi = false, bias = false, sink = false;
  int exp_instructions = 1;  // a score: 1 where exp2 flushes denormals to zero, 4 where it scales them
  // Instructions of the exponentials' unit beside what the rest of a plan implies, such as divisions of integers:
  int xu_per_query_tile = 0;
  int xu_per_cta = 0;  // of a persistent grid
  // What its code holds in registers beside accumulators, fragments and rows: 32-bit words a thread.
  int loop_words = 22;        // across the loop over key tiles: addresses, bounds, counters, what its end needs
  int loop_words_sm90 = 0;    // more of them where it is compiled for compute capability 9.0
  int fragment_words = 4;     // of K's and Q's loads in flight beside Q's two steps, with everything else given up
  int refill_call_words = 0;  // of a function that copies what is not plain, K under a live S too; 0: there is none
  int tile_words = 0;         // across a query tile, in warps with wgmma: its number and coordinates
  int producer_words = 0;     // of the producer's thread at its widest; 0: by how it is given tiles
  // What a compiler made of this plan, where it is known (0: estimate).
  int known_registers = 0;
  int spill_words_per_key_tile = 0;  // 32-bit words a thread stores to local memory in each key tile
  int spill_words_per_cta = 0;       // and once, of a persistent CTA once in each query tile
  int spill_words_entering = 0;      // of these, of CTAs alone that come to a key tile without a mask
  int spill_words_at_start = 0;      // beside them, of a persistent CTA, before its first tile
  int producer_spill_sectors = 0;    // of local memory that its producers store in each query tile, 32 bytes each
  int older_cta_lead = 0;            // thousandths by which an SM's oldest CTA is faster than the mean of its CTAs
  int step_deviation = 0;            // of a key tile's time, in thousandths; 0: as its matrix instruction has it
  /// within_warpgroup: of a key tile's maxima, then of its exponentials, so many thousandths stand before the wait for
  /// O += P V.
  int softmax_ahead = 2000;

  friend constexpr bool operator==(const KernelPlan&, const KernelPlan&) = default;

  // ---- shape
  constexpr int warps() const { return num_warps + producer_warps; }
  constexpr int threads() const { return warps() * 32; }
  constexpr int rows_per_warp() const { return tile_m / num_warps; }
  constexpr int m_blocks() const { return rows_per_warp() / 16; }
  constexpr int chunk_elements() const { return 16 / element_bytes; }
  constexpr int output_bytes() const { return element_bytes == 1 ? 2 : element_bytes; }
  constexpr int bytes(Operand x) const { return x == Operand::o ? output_bytes() : element_bytes; }
  constexpr int k_step() const { return 32 / element_bytes; }  // elements of one matrix step: 2 chunks
  static constexpr int round_up(int x, int to) { return (x + to - 1) / to * to; }
  constexpr int columns(Operand x) const {
    const bool value = x == Operand::v || x == Operand::o;
    const int padded = value ? padded_headdim_v : padded_headdim;
    return padded != 0 ? padded : round_up(value ? headdim_v : headdim, value ? 16 : k_step());
  }
  constexpr int valid_columns(Operand x) const { return x == Operand::v || x == Operand::o ? headdim_v : headdim; }
  constexpr int rows(Operand x) const { return x == Operand::k || x == Operand::v ? tile_n : tile_m; }
  constexpr int copy_bytes(Operand x) const {
    return x == Operand::q   ? copy_bytes_q
           : x == Operand::k ? copy_bytes_k
           : x == Operand::v ? copy_bytes_v
                             : copy_bytes_o;
  }

  // ---- shared memory: Q, with O staged over it | K slots | V slots
  constexpr SmemLayout layout(Operand x) const {
    const int chunks = columns(x) * bytes(x) / 16 + pad_chunks;
    return {chunks, swizzled ? Swizzle::for_rows_of(chunks) : Swizzle{0, 0}};
  }
  constexpr PanelLayout panel_layout(Operand x) const {  // of a warp-specialised kernel, in the same bytes
    return {rows(x), columns(x) * bytes(x) / 16, swizzled};
  }
  constexpr PanelLayout probability_layout() const { return {tile_m, tile_n * element_bytes / 16, swizzled}; }
  constexpr std::uint32_t tile_bytes(Operand x) const { return layout(x).bytes(rows(x)); }
  constexpr std::uint32_t base(Operand x, int slot) const {
    const std::uint32_t qo =
        tile_bytes(Operand::q) > tile_bytes(Operand::o) ? tile_bytes(Operand::q) : tile_bytes(Operand::o);
    const std::uint32_t k = tile_bytes(Operand::k), v = tile_bytes(Operand::v);
    const auto s = static_cast<std::uint32_t>(slot), n = static_cast<std::uint32_t>(stages);
    return x == Operand::k ? qo + s * k : x == Operand::v ? qo + n * k + s * v : 0;
  }
  constexpr std::uint32_t p_base() const { return base(Operand::v, stages); }  // of P, where it lies in shared memory
  constexpr std::uint32_t smem_bytes() const {
    const int p = p_in_smem ? tile_m * tile_n * element_bytes : 0;
    return p_base() + static_cast<std::uint32_t>(p + other_smem_bytes);
  }
  /// O is staged over Q. Another warp may still read queries there if its rows lie elsewhere in O's tile, unless the
  /// barrier before O += P V has parted them.
  constexpr bool staging_needs_barrier() const {
    return merged_wait && layout(Operand::o).row_chunks != layout(Operand::q).row_chunks;
  }

  // ---- copies: a row of granules is walked in panels of `copy_lanes` granules, a power of two
  constexpr int granules(Operand x) const { return columns(x) * bytes(x) / copy_bytes(x); }
  // Closed forms, because a compiler that unrolls loops over panels must know their number before it has run any loop.
  static constexpr int largest_power_of_two_in(int x) { return x & -x; }  // that divides it
  static constexpr int power_of_two_from(int x) {                         // up to 4096
    return x > 2048 ? 4096 : x > 1024 ? 2048 : x > 512 ? 1024 : x > 256 ? 512 : x > 128 ? 256 : x > 64 ? 128 : 64;
  }
  constexpr int lanes_a_row(Operand x) const {
    const int all = std::min(largest_power_of_two_in(granules(x)), 32);
    return copy_columns == 0 ? all : std::min(all, largest_power_of_two_in(copy_columns * bytes(x) / copy_bytes(x)));
  }
  constexpr int copy_lanes(Operand x) const {  // at least 8 rows a pass, or the swizzle's split does not hold
    return std::min(lanes_a_row(x), largest_power_of_two_in(threads() / 8));
  }
  constexpr int copy_rows(Operand x) const { return threads() / copy_lanes(x); }
  /// O: a warp writes its own rows, each by one instruction where its lanes suffice, so that none leaves part of a
  /// sector for another to fill. Rows of no power of two then have idle lanes past their end.
  constexpr bool stores_with_idle_lanes() const {
    return copy_columns == 0 && columns(Operand::o) != largest_power_of_two_in(columns(Operand::o));
  }
  constexpr int store_lanes() const {
    if (!stores_with_idle_lanes()) return lanes_a_row(Operand::o);
    return std::min(power_of_two_from(columns(Operand::o) * output_bytes()) / copy_bytes_o, 32);
  }
  constexpr int store_rows() const { return 32 / store_lanes(); }

  // ---- pipeline: how many younger copy groups may be in flight when a wait returns
  constexpr int k_pending() const { return stages == 1 ? 0 : 2 * (stages - 2) + (merged_wait ? 0 : 1); }
  constexpr int v_pending() const { return stages == 1 ? 0 : 2 * (stages - 1); }
  constexpr bool barrier_after_wait() const { return true; }
  constexpr bool arrives(const Work&, int /*warp*/, int /*tile*/) const { return true; }  // at that barrier
  constexpr bool arrives_to_stage(const Work&, int /*warp*/) const { return true; }
  constexpr int value_slot(int slot) const { return slot; }  // where P V looks for the tile that is in `slot`
  constexpr bool barrier_before_refill() const {
    return true;
  }  // stages == 1: K's slot is filled again in the same tile

  // ---- masks
  constexpr int query(int row) const { return packed_heads == 1 ? row : row / packed_heads; }
  constexpr int key_end(const Work& w, int row) const {  // first key past those that `row` sees
    const int end = w.right < 0 ? w.seqlen_k : query(row) + w.diagonal + w.right + 1;
    return end < w.seqlen_k ? end : w.seqlen_k;
  }
  constexpr int key_begin(const Work& w, int row) const { return w.left < 0 ? 0 : query(row) + w.diagonal - w.left; }
  constexpr bool visible(const Work& w, int row, int key) const {  // prefix and documents apart, see RowMask
    return key >= key_begin(w, row) && key < key_end(w, row);
  }
  constexpr int prefix_end(const Work& w) const { return w.prefix < w.seqlen_k ? w.prefix : w.seqlen_k; }
  constexpr int document_begin(const Work& w, int row) const {
    const int document = document_of(w, query(row));
    return document == 0 ? 0 : w.document_ends[document - 1];
  }
  constexpr int document_end(const Work& w, int row) const {
    const int document = document_of(w, query(row));
    return document < w.num_documents ? w.document_ends[document] : std::numeric_limits<int>::max();
  }
  constexpr bool has_rows(const Work& w) const { return w.q_tile * tile_m < w.seqlen_q; }  // else the CTA leaves
  constexpr TileRange range(const Work& w) const {
    TileRange r = tile_range(*this, w);
    if (masks_full_tiles) r.full_end = r.full_begin, r.prefix_full_end = r.prefix_full_begin;
    if (skips_tiles || r.prefix_begin != r.prefix_end || !has_rows(w)) return r;
    const int all = (w.seqlen_k + tile_n - 1) / tile_n;
    if (r.begin == r.end) r.full_begin = r.full_end = 0;
    r.begin = 0, r.end = all;
    return r;
  }
  constexpr KeyWalk walk(const TileRange& r, const Work& w) const {
    return key_walk(r, key_order, w.split, num_splits);
  }
  constexpr KeyWalk copied(const KeyWalk& walk, const Work&) const { return walk; }  // what the copies walk

  // ---- scheduler and workspace
  constexpr std::int64_t num_ctas(const GridExtents& grid) const { return grid.size(); }
  constexpr CtaIndex cta(const GridExtents& grid, std::int64_t index) const {
    return cta_index(grid, grid_order, index);
  }
  constexpr CtaIndex cta_of_block(const GridExtents& grid, unsigned x, unsigned y, unsigned z) const {
    return block_index(grid, longest_first, x, y, z);
  }
  constexpr bool combines_after_splits() const { return true; }           // else beside them
  constexpr bool keeps_workspace() const { return true; }                 // until combine() has read it
  constexpr bool writes_without_keys(const Work&) const { return true; }  // O = 0, LSE = -inf where no tile is visited

  // ---- limits of memory accesses
  constexpr int row_limit(Operand x, const Work& w) const {
    return x == Operand::q || x == Operand::o ? w.seqlen_q : w.seqlen_k;
  }
  constexpr int column_limit(Operand x) const { return valid_columns(x); }
  constexpr bool zero_fills(Operand) const { return true; }  // rows of a tile past the limit
  constexpr bool guards_tile_rows() const { return true; }   // a copy's threads without a row in the tile idle
  constexpr ForwardArgs arguments(const ForwardArgs& args, const GridExtents&) const { return args; }
  constexpr Work work(const Work& w) const { return w; }  // what a CTA takes its numbers for
  constexpr std::int64_t offset(std::int64_t index, std::int64_t stride) const { return index * stride; }
  constexpr std::int64_t first_row(const std::int32_t* cu_seqlens, std::int64_t batch) const {
    return cu_seqlens[batch];
  }
  constexpr std::int64_t page_offset(std::int64_t page, std::int64_t stride) const { return page * stride; }
  constexpr std::int64_t bias_offset(std::int64_t row, std::int64_t stride) const { return row * stride; }
  constexpr int kv_head(int head, int nheads, int nheads_k) const {
    return nheads == nheads_k ? head : head / (nheads / nheads_k);
  }

  /// Row 0 of a head in LSE.
  constexpr std::int64_t lse_row(const HeadPlace& at) const {
    return at.packed ? at.head * at.total_q + at.first_row : (at.batch * at.nheads + at.head) * at.seqlen_q;
  }
  constexpr std::int64_t lse_stride(const HeadPlace&) const { return 1; }  // from a row of a head to the next
  /// And where a row lies from there: rows of packed heads alternate.
  constexpr std::int64_t lse_offset(const HeadPlace& at, int row, std::int64_t stride) const {
    if (packed_heads == 1) return offset(row, stride);
    return row % packed_heads * (at.packed ? at.total_q : at.seqlen_q) + query(row) * stride;
  }
  /// Elements from a head's row 0 to row `row` of Q or O.
  constexpr std::int64_t query_offset(std::int64_t row, std::int64_t row_stride, std::int64_t head_stride) const {
    if (packed_heads == 1) return offset(row, row_stride);
    return offset(row / packed_heads, row_stride) + offset(row % packed_heads, head_stride);
  }
  /// Row 0 of a head in a split's part of the workspace.
  constexpr std::int64_t partial_row(const HeadPlace& at, int split_index) const {
    return ((split_index * at.num_batches + at.batch) * at.nheads + at.head) * at.seqlen_q;
  }
  constexpr HeadPlace combine_place(const HeadPlace& at) const {
    return at;
  }  // what combine() takes a head's place for

  // ---- scores: one factor in the exponent, or, where something modifies them, modified first
  constexpr bool modifies_scores() const { return softcap || alibi || bias; }
  constexpr bool masks_first() const { return false; }  // before they are modified
  constexpr int bias_row_limit(const Work& w) const { return w.seqlen_q; }
  template <class Tanh>
  constexpr float score(const ScoreNumbers& n, float dot, int distance, float bias_value, Tanh tanh) const {
    float s = dot * n.scale;
    if (softcap) s = n.softcap * tanh(s / n.softcap);
    if (alibi) s -= n.slope * static_cast<float>(distance);
    return bias ? s + bias_value : s;
  }
  constexpr int distance(const Work& w, int row, int key) const {  // of ALiBi
    const int d = query(row) + w.diagonal - key;
    return d < 0 ? -d : d;
  }
  constexpr bool takes_sink(const Work& w) const { return sink && w.split == 0; }

  // ---- arithmetic, in fp32 unless said otherwise
  constexpr float scale_log2(float softmax_scale) const { return softmax_scale * 1.44269504088896340736f; }
  constexpr float score_scale(float softmax_scale, float q_descale, float k_descale) const {
    return softmax_scale * (q_descale * k_descale);
  }
  constexpr float output_scale(float v_descale) const { return v_descale; }
  /// What the exponents of a row's splits are taken relative to: 0 where none of them saw a key.
  constexpr float combine_shift(float largest_lse) const {
    return largest_lse == -std::numeric_limits<float>::infinity() ? 0.0f : largest_lse;
  }
  constexpr float lazy_growth_log2() const { return 8.0f; }  // a row's maximum may outgrow what O is relative to
  /// Modified scores may reach the largest finite number: times log2(e) it would overflow, less the maximum it does
  /// not.
  constexpr bool subtracts_before_log2e() const { return modifies_scores(); }
  constexpr float masked_score() const { return -std::numeric_limits<float>::infinity(); }
  constexpr float lse_of_log2(float log2_sum) const { return log2_sum * 0.693147180559945309417f; }
  constexpr float lse_without_keys() const { return -std::numeric_limits<float>::infinity(); }
  constexpr float keep_score(float s) const { return s; }
  constexpr float keep_output(float o) const { return o; }
  constexpr float keep_probability(float p) const { return p; }
  float rescale_factor(float log2_factor) const { return std::exp2(log2_factor); }
  constexpr float keep_exponential(float p, bool /*masked tile*/) const { return p; }
  constexpr bool keeps_exponentials() const { return true; }  // keep_exponential changes nothing
  constexpr bool restarts_accumulator(int /*k_step*/) const { return false; }

  /// Null if a kernel of this plan can exist, else "FIELD what is wrong with it", where {OTHER} stands for the value of
  /// another field: plan_invalid.h. plan_fault() in the simulator makes a message of it.
  constexpr const char* invalid() const;
};

}  // namespace attest

#include "attest/plan/plan_invalid.h"
