#include "traffic.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "spill_uses.h"
#include "walk_options.h"

namespace attest {

namespace {

std::vector<SpillUses> uses_or_stores(const TileWalkOptions& options, const KernelPlan& plan, const LocalFrame& frame) {
  if (!options.spill_uses.empty()) return options.spill_uses;
  return {untraced_spill_uses(plan.spill_words_per_key_tile, frame, 0, 0)};
}

}  // namespace

Traffic::Traffic(const Grid& grid, const Schedule& schedule, const DeviceSpec& device, int sampling,
                 const TileWalkOptions& options)
    : grid_(grid),
      schedule_(schedule),
      p_(grid.p),
      plan_(grid.plan),
      device_(device),
      frame_(frame_of(options.frame, plan_)),
      spill_uses_(uses_or_stores(options, plan_, frame_)),
      memory_(device, options.through_ncu, 4 * local_words()),
      sampler_(sampler_of_frames(sampling)),
      cache_(static_cast<int>(device.l2_partitions), sampler_.sets(), static_cast<int>(device.l2_ways),
             static_cast<int>(device.l2_dirty_ways), sampler_.directory_sets()),
      coalescer_(device.gpcs()),
      merging_(merging_part(plan_, grid.k, grid.v, grid.p.nheads_k)),
      asked_q_(asked_part(plan_, Operand::q, grid.q, grid.nheads)),
      asked_k_(asked_part(plan_, Operand::k, grid.k, grid.p.nheads_k)),
      asked_v_(asked_part(plan_, Operand::v, grid.v, grid.p.nheads_k)) {}

void Traffic::place(Slot& slot) {
  const std::int64_t key_tiles = (grid_.entry(slot.at.batch).seqlen_k + plan_.tile_n - 1) / plan_.tile_n;
  slot.lines = &heads_.try_emplace(slot.at.batch * p_.nheads_k + grid_.key_head(slot.at.head), key_tiles).first->second;
}

std::vector<const std::vector<SpilledLine>*> Traffic::spilled_by(const Slot& slot, int sharing, int tiles) {
  const SpilledLines& lines = spilled(slot, sharing);
  std::vector<const std::vector<SpilledLine>*> of_tiles;
  for (int position = slot.position - tiles; position < slot.position; ++position) {
    const bool first = position == slot.walk.first;
    of_tiles.push_back(is_masked(slot.walk, position) ? first ? &lines.first_masked : &lines.masked
                       : first                        ? &lines.first_whole
                                                      : &lines.whole);
  }
  return of_tiles;
}

void Traffic::begin(Slot& slot, double now, int sharing) {
  if (producer_runs_ahead() && slot.position < slot.walk.last) read_keys(slot, slot.walk.tile(slot.position), now);
  read_query(slot);
  const auto store = [&](const std::vector<CachedLine>& lines) {
    for (const CachedLine& line : lines) cache_.write(line, slot.side);
  };
  if (!spill_uses_.front().begin.empty()) {
    spill_around(slot, spilled(slot, sharing).begin);
  } else {
    store(slot.parked);
    if (has_whole_tiles(slot.walk)) {
      store(slot.entering);
      store_in_part(slot);
    }
  }
  store(slot.start), slot.start.clear();
  store(slot.producer);
}

void Traffic::store_in_part(Slot& slot) {
  for (const CachedLine& line : slot.in_part) cache_.write_with_gaps(line, slot.side);
  if (std::exchange(slot.loaded_in_part, true)) return;
  const std::int64_t filled = cache_.filled_sectors();
  for (const CachedLine& line : slot.in_part) cache_.read(line, slot.side);
  count_.in_part_filled_sectors += cache_.filled_sectors() - filled;
  count_.in_part_lines += warps_of_slot() * frame_.in_part;
}

void Traffic::call_again() {
  for (auto& [head, lines] : heads_) lines.forget_asked();
  count_ = {};
  written_back_before_ = cache_.written_back_sectors();
  completed_before_ = cache_.completed_sectors();
  crossed_before_ = cache_.crossed_sectors();
}

void Traffic::read_query(const Slot& slot) {
  if (slot.walk.first >= slot.walk.last) return;
  const auto bytes = static_cast<double>(slot.rows * grid_.q.row_bytes);
  count_.l2_read_bytes += asked_q_ * bytes;
  count_.sm_read_bytes += bytes;
  const bool first = slot.at.split == 0;
  if (first) count_.first_query_bytes += bytes;
  Reads& reads = first ? count_.first_query : count_.again;
  for_copied_rows(Operand::q, grid_.q, slot.at.batch, slot.at.head, std::int64_t{slot.at.q_tile} * plan_.tile_m,
                  slot.rows, [&](const CachedLine& line) {
                    counted(reads, line.bytes(), [&] {
                      if (plan_.prefetches_q) cache_.prefetch(line, slot.side);
                      return cache_.read(line, slot.side, plan_.evict_first_q);
                    });
                  });
}

double Traffic::read_lines(std::vector<TileLine>& lines, int side) {
  std::size_t missed = 0;
  for (TileLine& l : lines) {
    const auto outcome =
        counted(l.seen ? count_.again : count_.first_key, l.line.bytes(), [&] { return cache_.read(l.line, side); });
    missed += outcome == L2Cache::Outcome::miss ? 1 : 0;
    l.seen = true;
  }
  return lines.empty() ? 0 : static_cast<double>(missed) / static_cast<double>(lines.size());
}

double Traffic::read_keys(Slot& slot, int tile, double now, double in_l1) {
  TileLines& lines = slot.lines->tile(tile);
  const std::int64_t row0 = std::int64_t{tile} * plan_.tile_n;
  const std::int64_t rows = std::min<std::int64_t>(plan_.tile_n, grid_.entry(slot.at.batch).seqlen_k - row0);
  const bool first = lines.asked.by_gpc.empty();
  const auto bytes = static_cast<double>(rows * grid_.key_row_bytes());
  if (first) count_.first_key_bytes += bytes;
  if (first && lines.k.empty() && lines.v.empty()) {
    const std::int64_t key_head = grid_.key_head(slot.at.head);
    for_copied_rows(Operand::k, grid_.k, slot.at.batch, key_head, row0, rows,
                    [&](const CachedLine& line) { lines.k.push_back({line}); });
    for_copied_rows(Operand::v, grid_.v, slot.at.batch, key_head, row0, rows,
                    [&](const CachedLine& line) { lines.v.push_back({line}); });
  }
  const double from_dram = read_lines(lines.k, slot.side);
  // a cluster asks for a tile once, a part each CTA, and multicasts it
  // who finds all of it in L1 asks for nothing, and begins no window in which others merge
  const double asked = in_l1 == 1 ? 0 : coalescer_.ask(lines.asked, slot.gpc, now, first ? 1 : from_dram);
  const double share = (1 - in_l1) * (1 - merging_ * (1 - asked));
  const double of_l2 =
      asked_k_ * static_cast<double>(grid_.k.row_bytes) + asked_v_ * static_cast<double>(grid_.v.row_bytes);
  count_.l2_read_bytes += static_cast<double>(rows) * of_l2 * (plan_.cluster > 1 ? 1 : share);
  count_.sm_read_bytes += bytes * static_cast<double>(readers(slot));
  return from_dram;
}

void Traffic::read_bias(const Slot& slot, int tile) {
  const std::int64_t key0 = std::int64_t{tile} * plan_.tile_n;
  const std::int64_t keys = std::min<std::int64_t>(plan_.tile_n, grid_.entry(slot.at.batch).seqlen_k - key0);
  const std::int64_t row0 = std::int64_t{slot.at.q_tile} * plan_.tile_m;
  for (std::int64_t row = row0; row < row0 + slot.rows; ++row) {
    const std::int64_t at = grid_.bias.row(slot.at.batch, slot.at.head, row) + 4 * key0;
    sampler_.for_lines(at, at + 4 * keys, [&](const CachedLine& line) {
      counted(count_.bias, line.bytes(), [&] { return cache_.read(line, slot.side); });
    });
  }
}

std::int64_t Traffic::use(const Slot& slot, const SpilledLine& use) {
  const std::int64_t filled = cache_.filled_sectors();
  if (use.kind == SpillUse::Kind::store)
    cache_.write(use.line, slot.side);
  else
    cache_.read(use.line, slot.side, use.kind == SpillUse::Kind::last_load);
  return cache_.filled_sectors() - filled;
}

void Traffic::spill(const Slot& slot, const SpilledLine& line) {
  const std::int64_t crossed = cache_.crossed_sectors();
  count_.spill_filled_sectors += use(slot, line);
  count_.crossed_in_steps += cache_.crossed_sectors() - crossed;
}

void Traffic::spill_around(const Slot& slot, const std::vector<SpilledLine>& lines) {
  if (slot.walk.first >= slot.walk.last) return;
  for (const SpilledLine& line : lines) count_.spill_filled_around += use(slot, line);
}

double Traffic::step(Slot& slot, double now, int sharing, double in_l1) {
  const KeyWalk& walk = slot.walk;
  const int tile = walk.tile(slot.position);
  const std::int64_t crossed = cache_.crossed_sectors();
  double from_dram = 0;
  if (!producer_runs_ahead())
    from_dram += read_keys(slot, tile, now, in_l1) / 2;
  else if (slot.position + 1 < walk.last)
    from_dram += read_keys(slot, walk.tile(slot.position + 1), now) / 2;
  from_dram += read_lines(slot.lines->tile(tile).v, slot.side) / 2;
  if (p_.bias != Bias::none) read_bias(slot, tile);
  ++slot.position;
  count_.l1_served += in_l1;
  count_.key_tiles += readers(slot);
  if (std::ssize(count_.shared) < sharing) count_.shared.resize(static_cast<std::size_t>(sharing));
  count_.shared[static_cast<std::size_t>(sharing) - 1] += readers(slot);
  count_.crossed_in_steps += cache_.crossed_sectors() - crossed;
  return from_dram;
}

void Traffic::finish(const Slot& slot, int sharing) {
  spill_around(slot, spilled(slot, sharing).end);
  const std::int64_t row0 = std::int64_t{slot.at.q_tile} * plan_.tile_m;
  const auto write = [&](const CachedLine& line) { cache_.write(line, slot.side); };
  if (grid_.splits > 1) {  // O and LSE in fp32, for combine()
    return for_partial_rows(grid_.partial_row(slot.at.batch, slot.at.head, slot.at.split) + row0, slot.rows, write);
  }
  for_rows(grid_.o, slot.at.batch, slot.at.head, row0, slot.rows, write);
  if (!plan_.stores_lse) return;
  const std::int64_t lse = grid_.lse_base + 4 * (grid_.lse_row(slot.at.batch, slot.at.head) + row0);
  sampler_.for_lines(lse, lse + 4 * slot.rows, write);
}

void Traffic::combine(std::int64_t max_rows) {
  const std::int64_t crossed = crossed_sectors(), heads = p_.batch * grid_.nheads;
  const std::int64_t all = static_cast<std::int64_t>(grid_.partial_rows) / grid_.splits;
  std::int64_t tile = 0, done = 0;
  Combined half = combined(0);
  for (std::int64_t member = 0; member < heads && done < max_rows; ++member) {
    const std::int64_t batch = member / grid_.nheads, queries = grid_.entry(batch).seqlen_q;
    for (std::int64_t row0 = 0; row0 < queries && done < max_rows; row0 += plan_.tile_m, ++tile) {
      const std::int64_t rows = std::min<std::int64_t>(plan_.tile_m, queries - row0);
      combine_tile(batch, member % grid_.nheads, row0, rows, static_cast<int>(tile % device_.l2_partitions));
      done += rows;
      if (done <= max_rows / 2) half = combined(done);
    }
  }
  if (done < all) combine_left(all - done, half, combined(done));
  count_.crossed_in_combine = crossed_sectors() - crossed;
}

void Traffic::combine_left(std::int64_t rows, const Combined& half, const Combined& end) {
  const double times = static_cast<double>(rows) / static_cast<double>(end.rows - half.rows);
  const auto left = [&](std::int64_t Combined::*what) {
    return std::llround(times * static_cast<double>(end.*what - half.*what));
  };
  count_.partials.asked_bytes += times * (end.asked_bytes - half.asked_bytes);
  count_.partials.filled_sectors += left(&Combined::filled);
  written_back_before_ -= left(&Combined::written_back);
  completed_before_ -= left(&Combined::completed);
  crossed_before_ -= left(&Combined::crossed);
}

void Traffic::combine_tile(std::int64_t batch, std::int64_t head, std::int64_t row0, std::int64_t rows, int side) {
  for (int split = 0; split < grid_.splits; ++split)
    for_partial_rows(grid_.partial_row(batch, head, split) + row0, rows, [&](const CachedLine& line) {
      counted(count_.partials, line.bytes(), [&] { return cache_.read(line, side); });
    });
  const auto write = [&](const CachedLine& line) { cache_.write(line, side); };
  for_rows(grid_.o, batch, head, row0, rows, write);
  const std::int64_t lse = grid_.lse_base + 4 * (grid_.lse_row(batch, head) + row0);
  sampler_.for_lines(lse, lse + 4 * rows, write);
}

void Traffic::leave_dirty_lines(std::int64_t bytes) {
  const std::int64_t written = cache_.written_back_sectors(), crossed = cache_.crossed_sectors();
  int side = 0;
  sampler_.for_lines(grid_.others_base, grid_.others_base + bytes, [&](const CachedLine& line) {
    cache_.write(line, side ^= static_cast<int>(device_.l2_partitions) - 1);
  });
  written_back_before_ += cache_.written_back_sectors() - written;  // what a small L2 could not hold
  crossed_before_ += cache_.crossed_sectors() - crossed;
}

}  // namespace attest
