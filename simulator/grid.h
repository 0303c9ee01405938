// Which tiles a launch reads, and where they lie in memory: what a walk needs before it starts.
#pragma once
#include <cstdint>
#include <vector>

#include "address.h"
#include "attest/plan/combine.h"
#include "attest/plan/kernel_plan.h"
#include "attest/plan/launch.h"
#include "attest/plan/work.h"
#include "attest/problem/case.h"
#include "attest/simulator/device.h"
#include "attest/simulator/tile_walk.h"
#include "memory_map.h"

namespace attest {

/// Batch entries of the same lengths.
struct LengthClass {
  int seqlen_q = 0, seqlen_k = 0;
  std::int64_t entries = 0;
  Work work;  // of one of their query tiles: the others differ in its number and split
};

/// Tensors start on 2 MiB pages, one after the other, as an allocator of large blocks places them. Pages of K and V
/// follow each other as their batch entries do.
struct Grid {
  /// Its tensors lie in memory from that address on, one after the other at multiples of 2 MiB: Q, K, V, O, LSE,
  /// partial O and bias.
  Grid(const Case& c, const KernelPlan& plan, std::int64_t memory = 0);
  Grid(const Grid&) = delete;  // addresses point into it
  Grid& operator=(const Grid&) = delete;

  const Problem& p;
  const KernelPlan& plan;
  TensorAddress q, k, v, o,
      bias;  // bias: [batch, queries, heads, keys], rows of its keys; strides 0 where it is shared
  std::int64_t lse_base = 0, partial_base = 0, partial_lse_base = 0;
  std::int64_t others_base = 0;  // of what lies in memory and is none of its tensors
  int q_tiles = 0, splits = 1;
  std::int64_t nheads = 1;  // that CTAs are numbered by: query heads, or packs of them
  std::vector<LengthClass> classes;
  std::vector<int> class_of;                  // by batch entry; empty: all are alike
  std::int64_t ctas = 0, ctas_with_rows = 0;  // of several lengths some have none, and end at once
  std::int64_t ctas_with_whole_tiles = 0;     // that come to a key tile without a mask
  std::int64_t key_tiles = 0;                 // visited by all CTAs
  double q_read_bytes = 0;                    // of query tiles that see a key
  double first_read_bytes = 0;                // each byte of Q, K, V and bias that some CTA reads, once
  double bias_bytes = 0;                      // of these, of the bias
  double sm_read_bytes = 0;                   // what all CTAs ask for of Q, K and V, rows in range only
  double bias_read_bytes = 0;                 // and of the bias
  double partial_rows = 0;                    // of O and LSE that all splits leave for combine()

  const LengthClass& entry(std::int64_t batch) const {
    return classes[class_of.empty() ? 0 : static_cast<std::size_t>(class_of[static_cast<std::size_t>(batch)])];
  }
  /// Found anew each time: a batch of thousands of long lengths has millions of tiles.
  KeyWalk walk(const LengthClass& lengths, int q_tile, int split) const {
    Work work = lengths.work;
    work.q_tile = q_tile, work.split = split;
    return plan.has_rows(work) ? plan.walk(plan.range(work), work) : KeyWalk{};
  }
  KeyWalk walk(std::int64_t batch, int q_tile, int split) const { return walk(entry(batch), q_tile, split); }
  std::int64_t rows(std::int64_t batch, int q_tile) const;  // queries that tile has
  double output_bytes() const;                              // O, LSE and what splits leave for combine()
  double stored_bytes(std::int64_t resident) const;  // by all CTAs, `resident` at once, and combine(), spill included
  double key_tiles_a_cta() const;
  /// How many query heads read a key head's K and V afresh, because they stand a whole batch apart in the grid and what
  /// lies between does not fit a partition of L2.
  std::int64_t heads_that_read_afresh(const DeviceSpec& device) const;
  std::int64_t key_row_bytes() const { return k.row_bytes + v.row_bytes; }
  std::int64_t partial_row_bytes() const { return 4 * partial_columns(p.headdim_v); }  // of O
  std::int64_t key_head(std::int64_t head) const {
    return plan.kv_head(static_cast<int>(head), static_cast<int>(nheads), static_cast<int>(p.nheads_k));
  }
  /// Where a row of a head, or of a pack of heads, lies in LSE, and the first row of a split's part of it in the
  /// workspace.
  std::int64_t lse_row(std::int64_t batch, std::int64_t head, int row = 0) const;
  std::int64_t partial_row(std::int64_t batch, std::int64_t head, int split) const;
  /// 128-byte lines of local memory that a CTA writes in a key tile.
  std::int64_t spill_lines() const { return std::int64_t{plan.spill_words_per_key_tile} * plan.num_warps; }
  /// And those that it writes once; of these, if it comes to a key tile without a mask; beside them, a persistent one.
  std::int64_t parked_lines() const { return std::int64_t{plan.spill_words_per_cta} * plan.num_warps; }
  std::int64_t entering_lines() const { return std::int64_t{plan.spill_words_entering} * plan.num_warps; }
  std::int64_t start_lines() const { return std::int64_t{plan.spill_words_at_start} * plan.num_warps; }

 private:
  void add_class(const LengthClass& c);
  const LengthArrays lengths_;                   // the works point to its documents
  std::vector<std::int64_t> first_q_, first_k_;  // rows, where entries follow each other without gaps
  std::int64_t total_q_ = 0;
};

/// Whether the key tile at that position has a mask.
inline bool is_masked(const KeyWalk& walk, int position) {
  const auto in = [&](int run) { return walk.run_end(run - 1) <= position && position < walk.run_end(run); };
  return !in(1) && !in(4);
}

/// Whether it comes to a key tile without a mask.
inline bool has_whole_tiles(const KeyWalk& walk) {
  const auto has = [&](int run) { return std::max(walk.first, walk.run_end(run - 1)) < walk.run_end(run); };
  return has(1) || has(4);
}

/// How finely a walk is simulated.
struct Resolution {
  int sampling = 1;  // one set of L2 in so many
  int key_tiles_per_event = 1;
  int key_tiles_a_cta = 0;         // simulated of each, from its first
  std::int64_t tasks = 0;          // simulated, from the first
  std::int64_t combined_rows = 0;  // likewise, of O by combine()
};
Resolution choose_resolution(const Grid& grid, const DeviceSpec& device, std::int64_t tasks, std::int64_t slots,
                             const TileWalkOptions& options);

}  // namespace attest
