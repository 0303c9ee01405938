#include "grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "attest/plan/launch.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

/// Running sums from 0 of what each batch entry occupies, in rows.
std::vector<std::int64_t> first_rows(const std::vector<std::int64_t>& lengths, std::int64_t multiple) {
  std::vector<std::int64_t> first;
  std::int64_t sum = 0;
  for (const std::int64_t length : lengths) {
    first.push_back(sum);
    sum += (length + multiple - 1) / multiple * multiple;
  }
  first.push_back(sum);
  return first;
}

/// Whether no two of the CTAs or clusters that the device holds at a time walk the same keys: a head's splits follow
/// each other, then come those of the next query head, which may share its keys.
bool walk_keys_alone(const Grid& grid, std::int64_t slots) {
  return grid.q_tiles <= grid.plan.cluster && (grid.nheads == grid.p.nheads_k || grid.splits >= slots);
}

/// Whether a few heads' lines fill a partition of L2.
bool few_heads_fill_l2(const Grid& grid, const DeviceSpec& device) {
  constexpr std::int64_t few = 4;
  const auto lines = [](const TensorAddress& a) { return (a.row_bytes - 1) / LineSampler::line_bytes + 1; };
  const std::int64_t a_head = grid.p.seqlen_k * (lines(grid.k) + lines(grid.v));
  return few * a_head > device.l2_ways * LineSampler::all_sets(device);
}

}  // namespace

Grid::Grid(const Case& c, const KernelPlan& a_plan, std::int64_t memory)
    : p(c.problem), plan(a_plan), splits(a_plan.num_splits), nheads(p.nheads / plan.packed_heads), lengths_(p) {
  const int e = plan.element_bytes;
  const Launch launch = make_launch(p, lengths_.document_ends, plan.packed_heads);
  const ForwardArgs args = lengths_.args();
  q_tiles = num_q_tiles(plan, p);

  // batch entries by their lengths
  std::map<std::pair<int, int>, int> known;
  const bool alike = p.varlen_q.empty() && p.varlen_k.empty() && p.seqused_k.empty();
  std::vector<std::int64_t> keys;
  for (std::int64_t b = 0; b < (alike ? 1 : p.batch); ++b) {
    const Work work = make_work(launch, args, b, 0, 0);
    keys.push_back(work.seqlen_k);
    const auto [at, is_new] = known.try_emplace({work.seqlen_q, work.seqlen_k}, static_cast<int>(classes.size()));
    if (is_new) classes.push_back({work.seqlen_q, work.seqlen_k, 0, work});
    classes[static_cast<std::size_t>(at->second)].entries += alike ? p.batch : 1;
    if (!alike) class_of.push_back(at->second);
  }

  const auto next = [&](std::int64_t bytes) {
    const std::int64_t at = memory;
    memory = MemoryMap::next_page(at + bytes);
    return at;
  };
  const auto place = [&](int bytes, std::int64_t rows, std::int64_t heads, std::int64_t columns,
                         const std::vector<std::int64_t>& first) {
    TensorAddress tensor = first.empty() ? make_address(c.layout, bytes, 0, p.batch, rows, heads, columns)
                                         : make_address(c.layout, bytes, 0, 1, first.back(), heads, columns);
    const std::int64_t base = next(tensor.end);
    tensor.base += base, tensor.end += base;
    if (!first.empty()) tensor.first_row = &first;
    return tensor;
  };
  if (!p.varlen_q.empty()) first_q_ = first_rows(p.varlen_q, 1);
  if (c.layout.page_size != 0) {
    keys.resize(static_cast<std::size_t>(p.batch), keys[0]);
    first_k_ = first_rows(keys, c.layout.page_size);
  } else if (!p.varlen_k.empty()) {
    first_k_ = first_rows(p.varlen_k, 1);
  }
  total_q_ = first_q_.empty() ? p.batch * p.seqlen_q : first_q_.back();
  q = place(e, p.seqlen_q, p.nheads, p.headdim, first_q_);
  k = place(e, p.seqlen_k, p.nheads_k, p.headdim, first_k_);
  v = place(e, p.seqlen_k, p.nheads_k, p.headdim_v, first_k_);
  o = place(plan.output_bytes(), p.seqlen_q, p.nheads, p.headdim_v, first_q_);
  q.packed_heads = o.packed_heads = plan.packed_heads;
  lse_base = next(4 * total_q_ * p.nheads);
  const std::int64_t workspace_rows = splits > 1 ? splits * p.batch * p.nheads * p.seqlen_q : 0;
  partial_base = next(workspace_rows * (partial_row_bytes() + 4));
  partial_lse_base = partial_base + workspace_rows * partial_row_bytes();
  bias.row_stride = 4 * p.seqlen_k;
  const bool by_head = p.bias == Bias::bhqk || p.bias == Bias::hqk,
             by_batch = p.bias == Bias::bhqk || p.bias == Bias::bqk;
  bias.head_stride = by_head ? p.seqlen_q * bias.row_stride : 0;
  bias.batch_stride = by_batch ? p.seqlen_q * bias.row_stride * (by_head ? p.nheads : 1) : 0;
  const std::int64_t all_bias =
      p.bias == Bias::none ? 0 : p.seqlen_q * bias.row_stride * (by_head ? p.nheads : 1) * (by_batch ? p.batch : 1);
  bias.base = next(all_bias);
  bias.end = bias.base + all_bias;
  others_base = memory + (std::int64_t{1} << 32);  // far from all of it

  ctas = std::int64_t{q_tiles} * splits * p.batch * nheads;
  for (const LengthClass& added : classes) add_class(added);
}

void Grid::add_class(const LengthClass& c) {
  const auto heads = static_cast<double>(c.entries * nheads), key_heads = static_cast<double>(c.entries * p.nheads_k);
  const auto last_tile = (c.seqlen_k + plan.tile_n - 1) / plan.tile_n;
  std::vector<int> readers(static_cast<std::size_t>(last_tile + 1));  // of each key tile, less those of the one before
  double query_bytes = 0, again_bytes = 0, key_rows = 0, pairs = 0;
  for (int t = 0; t * plan.tile_m < c.seqlen_q; ++t) {
    const auto tile_bytes = static_cast<double>(std::clamp(c.seqlen_q - t * plan.tile_m, 0, plan.tile_m)) *
                            static_cast<double>(q.row_bytes);
    const TileRange range = walk(c, t, 0).range;  // the splits share it
    ++readers[static_cast<std::size_t>(range.begin)], --readers[static_cast<std::size_t>(range.end)];
    ++readers[static_cast<std::size_t>(range.prefix_begin)], --readers[static_cast<std::size_t>(range.prefix_end)];
    const double missing = range.size() == 0 ? 0 : std::max(0, range.end * plan.tile_n - c.seqlen_k);
    const double keys = static_cast<double>(range.size()) * plan.tile_n - missing;
    int parts = 0;
    for (int s = 0; s < splits; ++s) {
      const KeyWalk w = walk(c, t, s);
      parts += w.first < w.last;
      ctas_with_whole_tiles += has_whole_tiles(w) ? c.entries * nheads : 0;
    }
    ctas_with_rows += std::int64_t{splits} * c.entries * nheads;
    query_bytes += parts == 0 ? 0 : tile_bytes;
    again_bytes += parts == 0 ? 0 : tile_bytes * (parts - 1);
    key_tiles += range.size() * c.entries * nheads;
    key_rows += keys;
    pairs += keys * tile_bytes / static_cast<double>(q.row_bytes);
  }
  double seen_rows = 0;
  for (int tile = 0, reading = 0; tile < last_tile; ++tile)
    if ((reading += readers[static_cast<std::size_t>(tile)]) > 0)
      seen_rows += std::min(plan.tile_n, c.seqlen_k - tile * plan.tile_n);
  q_read_bytes += query_bytes * heads;
  // a bias that is shared is read by the first entry and head that see it
  const double bias_pairs = p.bias == Bias::none ? 0 : 4 * pairs;
  const bool by_head = bias.head_stride != 0, by_batch = bias.batch_stride != 0;
  const double first_bias =
      bias_pairs * static_cast<double>(by_head ? nheads : 1) * static_cast<double>(by_batch ? c.entries : 1);
  bias_bytes += first_bias;
  bias_read_bytes += heads * bias_pairs;
  sm_read_bytes += heads * (query_bytes + again_bytes + key_rows * static_cast<double>(key_row_bytes()));
  if (splits > 1) partial_rows += heads * static_cast<double>(std::int64_t{splits} * c.seqlen_q);
  first_read_bytes += heads * query_bytes + key_heads * seen_rows * static_cast<double>(key_row_bytes()) + first_bias;
}

std::int64_t Grid::rows(std::int64_t batch, int q_tile) const {
  return std::clamp(entry(batch).seqlen_q - q_tile * plan.tile_m, 0, plan.tile_m);
}

std::int64_t Grid::lse_row(std::int64_t batch, std::int64_t head, int row) const {
  const std::int64_t query_head = head * plan.packed_heads + row % plan.packed_heads, query = row / plan.packed_heads;
  return query + (first_q_.empty() ? (batch * p.nheads + query_head) * p.seqlen_q
                                   : query_head * total_q_ + first_q_[static_cast<std::size_t>(batch)]);
}

std::int64_t Grid::partial_row(std::int64_t batch, std::int64_t head, int split) const {
  return ((split * p.batch + batch) * p.nheads + head * plan.packed_heads) * p.seqlen_q;
}

double Grid::output_bytes() const {
  return static_cast<double>(total_q_ * p.nheads * (o.row_bytes + 4)) +
         partial_rows * static_cast<double>(partial_row_bytes() + 4);
}

double Grid::stored_bytes(std::int64_t resident) const {
  const std::int64_t spill = spill_lines() * key_tiles + (parked_lines() - entering_lines()) * ctas_with_rows +
                             entering_lines() * ctas_with_whole_tiles + start_lines() * std::min(resident, ctas);
  return output_bytes() + static_cast<double>(spill) * LineSampler::line_bytes +
         static_cast<double>(plan.producer_spill_sectors * ctas) * LineSampler::sector_bytes;
}

double Grid::key_tiles_a_cta() const {
  return std::max(1.0, static_cast<double>(key_tiles) / static_cast<double>(std::max<std::int64_t>(1, ctas)));
}

std::int64_t Grid::heads_that_read_afresh(const DeviceSpec& device) const {
  if (plan.grid_order != GridOrder::tiles_batch_heads || p.batch == 1) return 1;
  const std::int64_t key_bytes = p.batch * p.seqlen_k * key_row_bytes();
  const std::int64_t query_bytes = p.batch * p.seqlen_q * (q.row_bytes + o.row_bytes);
  return key_bytes + query_bytes > device.l2_bytes / device.l2_partitions ? nheads / p.nheads_k : 1;
}

Resolution choose_resolution(const Grid& grid, const DeviceSpec& device, std::int64_t tasks, std::int64_t slots,
                             const TileWalkOptions& options) {
  double average = grid.key_tiles_a_cta();
  // where a few heads fill L2 what is read again hangs on how far CTAs have drifted, which takes them many waves
  const bool fill_l2 = few_heads_fill_l2(grid, device);
  const std::int64_t max_events = options.max_events * (fill_l2 ? 3 : 1);
  const auto tiles = static_cast<double>(grid.key_tiles), events = static_cast<double>(max_events);
  Resolution r;
  // K and V that are many times L2 go through it alike, however many times that is; CTAs that share keys drift apart on
  // the way, others do not
  constexpr double times_l2 = 12;
  const double many = times_l2 * static_cast<double>(device.l2_bytes);
  const double tile_bytes = static_cast<double>(grid.plan.tile_n * grid.key_row_bytes());
  double longest = many / tile_bytes;
  const double found = static_cast<double>(options.max_rows_found) / (2.0 * grid.plan.tile_n);  // tiles
  const bool finds_more = tiles > found && walk_keys_alone(grid, slots);
  constexpr double least = 64;  // tiles, beside which a CTA's start and end take little
  const bool of_each = found >= least * static_cast<double>(tasks);
  if (finds_more)
    longest = std::min(longest, found / static_cast<double>(of_each ? tasks : std::min(tasks, 2 * slots)));
  r.key_tiles_a_cta = static_cast<int>(std::max(1.0, longest));
  average = std::min(average, static_cast<double>(r.key_tiles_a_cta));
  // and so do the parts of O that combine() reads, each of them once
  r.combined_rows =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(many) / (grid.splits * grid.partial_row_bytes()));
  // at least two waves of CTAs are simulated, if need be with several key tiles an event
  const double wanted = std::min(tiles, 2.0 * static_cast<double>(slots) * average);
  r.key_tiles_per_event = static_cast<int>(std::max(1.0, std::ceil(wanted / events)));
  // a CTA's own lines, of Q and O, cost about as much as ten key tiles
  auto affordable = static_cast<std::int64_t>(events / (10 + average / r.key_tiles_per_event));
  if (finds_more) affordable = std::min(affordable, static_cast<std::int64_t>(found / average) / slots * slots);
  const bool all = finds_more ? of_each : tiles <= events && tasks <= max_events / 10;
  r.tasks = all ? tasks : std::min(tasks, std::max(2 * slots, affordable));

  const std::int64_t lines_a_tile =
      grid.plan.tile_n * grid.key_row_bytes() / LineSampler::line_bytes + grid.spill_lines();
  const double accesses =
      std::min(tiles, static_cast<double>(r.tasks * grid.plan.cluster) * average) * static_cast<double>(lines_a_tile);
  const std::int64_t all_sets = LineSampler::all_sets(device);
  const auto most = static_cast<double>(options.max_line_accesses);
  r.sampling = options.sampling != 0 ? options.sampling : 4;
  // beyond one set in 32 only where the work is huge, and in 16 where lines lie at random, for of few sets too few have
  // too many of them: of one set in 32 a forced spill reads up to a tenth more or less than of half of them, of one in
  // 16 three in a hundred. Where a few heads of rows that lie apart fill L2, one in 8: of one in 32 they read 2 to 5 in
  // a hundred less than of all of them, of one in 8 none to one
  const bool spills = grid.spill_lines() > 0, apart = !spills && fill_l2 && grid.k.row_stride > grid.k.row_bytes;
  const int coarse = apart ? 8 : spills ? 16 : 32, huge = spills ? 12 : apart ? 6 : 4;
  if (options.sampling == 0)
    while (accesses / r.sampling > (r.sampling < coarse ? most : huge * most) && r.sampling < 256) r.sampling *= 2;
  while (r.sampling > 1 && all_sets / r.sampling < 32) r.sampling /= 2;
  while (all_sets / r.sampling > 60'000) r.sampling *= 2;
  // An L2 of too few sets to be sampled as coarsely has all of its lines followed. To follow fewer CTAs instead was
  // tried: they begin together and find more there, of 64 heads of 16384 tokens with a forced spill half of what DRAM
  // reads.
  if (options.sampling == 0 && r.sampling < 64 && accesses / r.sampling > huge * most)
    throw InvalidInput("l2_bytes", std::to_string(device.l2_bytes),
                       fmt::format("makes {} sets a partition, in which a walk of this case has {:.2g} accesses to "
                                   "follow, must not exceed {:.2g}",
                                   all_sets, accesses / r.sampling, huge * most));
  return r;
}

}  // namespace attest
