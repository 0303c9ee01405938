#include "walk_totals.h"

#include <algorithm>
#include <numeric>

namespace attest {

/// What DRAM reads for Q, K and V: for each byte of Q, and of K and V, that some CTA asks for as much as the first time
/// in the sets that are sampled, and what it reads again there. How much of all bytes they have is known by those that
/// are asked for first.
double WalkTotals::tensor_reads(double scale) const {
  const Traffic::Count& n = traffic_.count();
  const double queries = grid_.q_read_bytes, keys = grid_.first_read_bytes - grid_.bias_bytes - queries;
  double first = keys;
  if (const auto heads = static_cast<double>(grid_.heads_that_read_afresh(device_)); scale > 1 && heads > 1) {
    // of whole heads the first reads of the part are a later head's misses too; of a part of one the heads are known
    const bool whole_heads = resolution_.tasks * grid_.plan.cluster >= std::int64_t{2} * grid_.q_tiles;
    first = std::max(keys, whole_heads ? n.first_key_bytes * scale : keys * heads);
  }
  const double asked = n.first_query.asked_bytes + n.first_key.asked_bytes;
  const double of_all_sets = asked == 0 ? 0 : (n.first_query_bytes + n.first_key_bytes) / asked;
  // keys that many CTAs read may stay in L2 from call to call, where queries do not
  const auto once = [&](const Traffic::Reads& reads, double bytes) {
    return reads.asked_bytes == 0 ? unsampled(bytes) : reads.of(bytes);
  };
  return once(n.first_query, queries) + once(n.first_key, first) + n.again.filled_bytes() * of_all_sets * scale;
}

/// Beyond what may stay dirty, all that CTAs store and what was dirty before the kernel is written. Spill repeats in
/// the key tiles that are not simulated, and is written back as often as in those that are, but no more than it is
/// stored.
double WalkTotals::extrapolated_writes(double written, double scale) const {
  if (scale == 1) return written;
  const double begins = options_.empties_between && grid_.splits > 1 ? 2 : 1;  // of launches, with an empty L2
  const double left_over = begins * static_cast<double>(options_.dirty_bytes_at_start);
  const double all = left_over + grid_.stored_bytes(std::int64_t{schedule_.slots()} * grid_.plan.cluster);
  if (grid_.spill_lines() == 0) {
    const double may_stay = static_cast<double>(device_.l2_bytes) * static_cast<double>(device_.l2_dirty_ways) /
                            static_cast<double>(device_.l2_ways);
    return std::max(std::min(written, all), all - begins * may_stay);
  }
  const double own = std::max(0.0, written - left_over);
  return std::min(written - own + own * scale, all);
}

/// What DRAM reads of sectors that were written in part: for as much as the kernel's own stores are written as in the
/// part that is simulated, or, where none of them is there, as is dirty at its end.
double WalkTotals::completed(double written_of_all) const {
  const auto left_over = static_cast<double>(options_.dirty_bytes_at_start);
  const double own = of_all_sets(traffic_.written_back_sectors()) - left_over;
  if (own > 0) return of_all_sets(traffic_.completed_sectors()) * std::max(1.0, (written_of_all - left_over) / own);
  const std::int64_t dirty = traffic_.dirty_sectors();
  const double part = dirty == 0 ? 0 : static_cast<double>(traffic_.incomplete_sectors()) / static_cast<double>(dirty);
  return of_all_sets(traffic_.completed_sectors()) + part * std::max(0.0, written_of_all - left_over);
}

/// Of what CTAs that are not simulated read, the share that L2 sees: as of those that did not begin together. Where no
/// simulated CTA reads anything it is taken not to merge.
double WalkTotals::unmerged_later() const {
  const Traffic::Count& n = traffic_.count();
  const double later = n.sm_read_bytes - began_together_.sm_read_bytes;
  if (later > 0) return (n.l2_read_bytes - began_together_.l2_read_bytes) / later;
  return n.sm_read_bytes == 0 ? 1 : n.l2_read_bytes / n.sm_read_bytes;
}

/// Of CTAs that are not simulated an SM has as many as most of the time.
std::vector<double> WalkTotals::shared(double scale) const {
  const Traffic::Count& n = traffic_.count();
  if (n.key_tiles == 0) return {};
  const double of_simulated = scale * static_cast<double>(resolution_.tasks) / static_cast<double>(schedule_.tasks());
  std::vector<double> parts;
  for (const std::int64_t tiles : n.shared)
    parts.push_back(static_cast<double>(tiles) * of_simulated / static_cast<double>(grid_.key_tiles));
  *std::ranges::max_element(parts) += 1 - std::accumulate(parts.begin(), parts.end(), 0.0);
  return parts;
}

TileWalk WalkTotals::all() const {
  TileWalk r;
  const Traffic::Count& n = traffic_.count();
  r.ctas = grid_.ctas;
  r.ctas_with_rows = grid_.ctas_with_rows;
  r.key_tiles = grid_.key_tiles;
  r.first_read_bytes = grid_.first_read_bytes;
  r.sm_read_bytes = grid_.sm_read_bytes;
  r.bias_read_bytes = grid_.bias_read_bytes;
  r.partial_bytes = grid_.partial_rows * static_cast<double>(grid_.partial_row_bytes());
  r.partial_lse_bytes = grid_.partial_rows * 4;
  r.sampling = resolution_.sampling;
  r.key_tiles_per_event = resolution_.key_tiles_per_event;
  if (grid_.ctas == 0) return r;

  const auto ratio = [](auto all, auto part) { return static_cast<double>(all) / static_cast<double>(part); };
  const double scale =
      n.key_tiles == 0 ? ratio(schedule_.tasks(), resolution_.tasks) : ratio(grid_.key_tiles, n.key_tiles);
  r.simulated_fraction = 1 / scale;
  r.partial_missed_bytes = n.partials.of(r.partial_bytes + r.partial_lse_bytes);
  r.together = n.key_tiles == 0 ? 0 : n.together / static_cast<double>(n.key_tiles);
  r.shared = shared(scale);
  r.l1_served = n.key_tiles == 0 ? 0 : n.l1_served / static_cast<double>(n.key_tiles);
  r.l2_read_bytes = n.l2_read_bytes + unmerged_later() * (grid_.sm_read_bytes - n.sm_read_bytes);
  const std::int64_t crossed_around = traffic_.crossed_sectors() - n.crossed_in_steps - n.crossed_in_combine;
  const double ctas = ratio(schedule_.tasks(), resolution_.tasks);
  r.l2_crossing_bytes =
      of_all_sets(n.crossed_in_steps) * scale + of_all_sets(crossed_around) * ctas + of_all_sets(n.crossed_in_combine);
  r.dirty_bytes_left = of_all_sets(traffic_.dirty_sectors());
  r.in_part_bytes = static_cast<double>(n.in_part_lines * LineSampler::line_bytes);
  r.dram_write_bytes = extrapolated_writes(of_all_sets(traffic_.written_back_sectors()), scale);
  r.dram_read_bytes = tensor_reads(scale) + bias_reads() + r.partial_missed_bytes +
                      of_all_sets(n.spill_filled_sectors) * scale + of_all_sets(n.spill_filled_around) * ctas +
                      of_all_sets(n.in_part_filled_sectors) + completed(r.dram_write_bytes);
  return r;
}

}  // namespace attest
