// Which CTAs a launch has, which tiles each reads, and where they lie in memory: what a walk needs before it starts.
#pragma once
#include <cstdint>
#include <vector>

#include "address.h"
#include "attest/plan/kernel_plan.h"
#include "attest/plan/work.h"
#include "attest/problem/case.h"
#include "attest/simulator/device.h"
#include "attest/simulator/tile_walk.h"

namespace attest {

/// Tensors start on 2 MiB pages, one after the other, as an allocator of large blocks places them.
struct Grid {
  Grid(const Case& c, const KernelPlan& plan);

  const Problem& p;
  const KernelPlan& plan;
  TensorAddress q, k, v, o;
  std::int64_t lse_base = 0, spill_base = 0;
  int q_tiles = 0;
  std::vector<TileRange> ranges;  // by query tile: the same for all heads
  std::int64_t ctas = 0;
  std::int64_t key_tiles = 0;   // visited by all CTAs
  double q_read_bytes = 0;      // of query tiles that see a key
  double first_read_bytes = 0;  // each byte of Q, K, V that some CTA reads, once
  double sm_read_bytes = 0;     // what all CTAs ask for, rows in range only

  double key_tiles_a_cta() const;
  std::int64_t key_row_bytes() const { return k.row_bytes + v.row_bytes; }
  /// 128-byte lines of local memory that a CTA writes in a key tile.
  std::int64_t spill_lines() const { return std::int64_t{plan.spill_words_per_key_tile} * plan.num_warps; }

  struct Place {
    std::int64_t batch, head, key_head;
    int q_tile;
  };
  /// Where the CTA of linear index `cta` works, in the plan's grid order.
  Place place(std::int64_t cta) const;
};

/// How finely a walk is simulated.
struct Resolution {
  int sampling = 1;  // one set of L2 in so many
  int key_tiles_per_event = 1;
  std::int64_t ctas = 0;  // simulated, from the first
};
Resolution choose_resolution(const Grid& grid, const DeviceSpec& device, int ctas_per_sm,
                             const TileWalkOptions& options);

/// DRAM reads of all CTAs from those of the first ones: `first_key_bytes` of K and V read for the first time,
/// `again_bytes` read again after they were evicted; all CTAs together walk `scale` times as many key tiles.
double extrapolated_reads(const Grid& grid, const DeviceSpec& device, std::int64_t simulated_ctas,
                          double first_key_bytes, double again_bytes, double scale);

}  // namespace attest
