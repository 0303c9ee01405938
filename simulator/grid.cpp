#include "grid.h"

#include <algorithm>
#include <cmath>

#include "attest/plan/launch.h"

namespace attest {
namespace {

constexpr std::int64_t page = 2 << 20;

std::int64_t next_page(std::int64_t address) { return (address + page - 1) / page * page; }

/// Whether query heads that share a key head read K and V afresh, each of them, because they stand a whole batch apart
/// in the grid and what lies between does not fit a partition of L2.
bool heads_read_afresh(const Grid& g, const DeviceSpec& device) {
  const Problem& p = g.p;
  if (g.plan.grid_order != GridOrder::tiles_batch_heads || p.batch == 1 || p.nheads == p.nheads_k) return false;
  const std::int64_t key_bytes = p.batch * p.seqlen_k * g.key_row_bytes();
  const std::int64_t query_bytes = p.batch * p.seqlen_q * (g.q.row_bytes + g.o.row_bytes);
  return key_bytes + query_bytes > device.l2_bytes / device.l2_partitions;
}

}  // namespace

Grid::Grid(const Case& c, const KernelPlan& a_plan) : p(c.problem), plan(a_plan) {
  const int e = plan.element_bytes;
  q = make_address(c.layout, e, page, p.batch, p.seqlen_q, p.nheads, p.headdim);
  k = make_address(c.layout, e, next_page(q.end), p.batch, p.seqlen_k, p.nheads_k, p.headdim);
  v = make_address(c.layout, e, next_page(k.end), p.batch, p.seqlen_k, p.nheads_k, p.headdim_v);
  o = make_address(c.layout, e, next_page(v.end), p.batch, p.seqlen_q, p.nheads, p.headdim_v);
  lse_base = next_page(o.end);
  spill_base = next_page(lse_base + 4 * p.batch * p.nheads * p.seqlen_q);

  const std::int64_t heads = p.batch * p.nheads;
  q_tiles = num_q_tiles(plan, p);
  ctas = q_tiles * heads;
  std::int64_t low = p.seqlen_k, high = 0, q_rows = 0, tiles = 0;
  double key_rows = 0;
  ranges.reserve(static_cast<std::size_t>(q_tiles));
  for (int t = 0; t < q_tiles; ++t) {
    const TileRange range = plan.range(make_work(p, t));
    ranges.push_back(range);
    if (range.begin == range.end) continue;
    const std::int64_t first = std::int64_t{range.begin} * plan.tile_n;
    const std::int64_t last = std::min(std::int64_t{range.end} * plan.tile_n, p.seqlen_k);
    low = std::min(low, first), high = std::max(high, last);
    q_rows += std::min<std::int64_t>(plan.tile_m, p.seqlen_q - std::int64_t{t} * plan.tile_m);
    key_rows += static_cast<double>(last - first);
    tiles += range.end - range.begin;
  }
  key_tiles = tiles * heads;
  q_read_bytes = static_cast<double>(q_rows * q.row_bytes * heads);
  sm_read_bytes = q_read_bytes + key_rows * static_cast<double>(key_row_bytes()) * static_cast<double>(heads);
  const std::int64_t seen_rows = std::max<std::int64_t>(high - low, 0) * p.batch * p.nheads_k;
  first_read_bytes = q_read_bytes + static_cast<double>(seen_rows * key_row_bytes());
}

double Grid::key_tiles_a_cta() const {
  return std::max(1.0, static_cast<double>(key_tiles) / static_cast<double>(std::max<std::int64_t>(1, ctas)));
}

Grid::Place Grid::place(std::int64_t cta) const {
  const std::int64_t rest = cta / q_tiles;
  const bool batch_first = plan.grid_order == GridOrder::tiles_batch_heads;
  Place at{};
  at.q_tile = static_cast<int>(cta % q_tiles);
  at.batch = batch_first ? rest % p.batch : rest / p.nheads;
  at.head = batch_first ? rest / p.batch : rest % p.nheads;
  at.key_head = plan.kv_head(static_cast<int>(at.head), static_cast<int>(p.nheads), static_cast<int>(p.nheads_k));
  return at;
}

Resolution choose_resolution(const Grid& grid, const DeviceSpec& device, int ctas_per_sm,
                             const TileWalkOptions& options) {
  const std::int64_t slots = device.num_sms * ctas_per_sm;
  const double average = grid.key_tiles_a_cta();
  const auto tiles = static_cast<double>(grid.key_tiles), events = static_cast<double>(options.max_events);
  Resolution r;
  // at least two waves of CTAs are simulated, if need be with several key tiles an event
  const double wanted = std::min(tiles, 2.0 * static_cast<double>(slots) * average);
  r.key_tiles_per_event = static_cast<int>(std::max(1.0, std::ceil(wanted / events)));
  // a CTA's own lines, of Q and O, cost about as much as ten key tiles
  const auto affordable = static_cast<std::int64_t>(events / (10 + average / r.key_tiles_per_event));
  const bool all = tiles <= events && grid.ctas <= options.max_events / 10;
  r.ctas = all ? grid.ctas : std::min(grid.ctas, std::max(2 * slots, affordable));

  const std::int64_t lines_a_tile =
      grid.plan.tile_n * grid.key_row_bytes() / LineSampler::line_bytes + grid.spill_lines();
  const double accesses = std::min(tiles, static_cast<double>(r.ctas) * average) * static_cast<double>(lines_a_tile);
  const std::int64_t all_sets = device.l2_bytes / (device.l2_partitions * device.l2_ways * LineSampler::line_bytes);
  const auto most = static_cast<double>(options.max_line_accesses);
  r.sampling = options.sampling != 0 ? options.sampling : 8;
  if (options.sampling == 0)  // beyond one set in 64 only where the work is huge
    while (accesses / r.sampling > (r.sampling < 64 ? most : 4 * most) && r.sampling < 256) r.sampling *= 2;
  while (r.sampling > 1 && all_sets / r.sampling < 32) r.sampling /= 2;
  while (all_sets / r.sampling > 60'000) r.sampling *= 2;
  return r;
}

double extrapolated_reads(const Grid& grid, const DeviceSpec& device, std::int64_t simulated_ctas,
                          double first_key_bytes, double again_bytes, double scale) {
  const double exact_first = grid.first_read_bytes - grid.q_read_bytes;
  double keys = exact_first + again_bytes * scale;
  if (heads_read_afresh(grid, device)) {
    // the first reads of the part are a later head's misses too; of a part of one head only the heads are known
    const bool whole_heads = simulated_ctas >= std::int64_t{2} * grid.q_tiles;
    const std::int64_t heads_a_key_head = grid.p.nheads / grid.p.nheads_k;
    const double afresh = whole_heads ? first_key_bytes * scale : exact_first * static_cast<double>(heads_a_key_head);
    keys = std::max(exact_first, afresh) + again_bytes * scale;
  }
  return std::min(grid.q_read_bytes + keys, std::max(grid.first_read_bytes, grid.sm_read_bytes));
}

}  // namespace attest
