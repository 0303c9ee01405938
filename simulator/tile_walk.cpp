#include "attest/simulator/tile_walk.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>
#include <utility>

#include "attest/simulator/l2_cache.h"
#include "coalescer.h"
#include "grid.h"

namespace attest {
namespace {

/// A sampled line of K or V, and whether a CTA has read these sectors before.
struct TileLine {
  CachedLine line;
  bool seen = false;
};

/// The sampled lines of all tiles of one key head, each found when it is first read.
struct HeadLines {
  std::vector<std::vector<TileLine>> k, v;
  std::vector<float> first_read;  // cycles since the kernel's start; below 0: not read yet
};

struct Slot {
  int sm = 0;
  int side = 0;
  int tile = 0, begin = 0;  // key tiles left: [begin, tile)
  bool fresh = true;        // Q is yet to be read
  Grid::Place at{};
  HeadLines* lines = nullptr;
  const std::vector<CachedLine>* spill = nullptr;  // its local memory
  std::int64_t last_read = -1;  // (key head, tile) and when: what a neighbour's request may merge with
  double last_time = -1e18;
};

class Walk {
 public:
  Walk(const Case& c, const KernelPlan& plan, const DeviceSpec& device, int ctas_per_sm, const TileWalkOptions& options)
      : grid_(c, plan),
        p_(c.problem),
        plan_(plan),
        device_(device),
        options_(options),
        ctas_per_sm_(ctas_per_sm),
        resolution_(choose_resolution(grid_, device, ctas_per_sm, options)),
        sampler_(device, resolution_.sampling),
        cache_(static_cast<int>(device.l2_partitions), sampler_.sets(), static_cast<int>(device.l2_ways),
               static_cast<int>(device.l2_dirty_ways)) {}

  TileWalk run() {
    if (grid_.ctas > 0) simulate();
    return result();
  }

 private:
  template <class F>
  void for_tile(const TensorAddress& a, std::int64_t batch, std::int64_t head, std::int64_t row0, std::int64_t rows,
                std::int64_t limit, F&& f) const {
    for (std::int64_t row = row0; row < std::min(row0 + rows, limit); ++row) {
      const std::int64_t at = a.row(batch, head, row);
      sampler_.for_lines(at, at + a.row_bytes, f);
    }
  }

  void simulate();
  TileWalk result() const;
  void start(Slot& slot, std::int64_t cta);
  void read_query(Slot& slot);
  void read_key_tile(Slot& slot, int tile, double now);
  void finish(Slot& slot);
  void write_spill(const Slot& slot);
  int spill_places() const { return std::max(1, static_cast<int>(device_.max_warps_per_sm) / plan_.num_warps); }
  void read_lines(std::vector<TileLine>& lines, int side);
  double merged_share(std::size_t index, std::int64_t what, double now, double first_read) const;
  double noise() {  // uniform with the standard deviation asked for
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    const double u = static_cast<double>(state_ >> 11) * 0x1p-53;
    return 1 + options_.noise * 3.4641016151377544 * (u - 0.5);
  }

  const Grid grid_;
  const Problem& p_;
  const KernelPlan& plan_;
  const DeviceSpec& device_;
  const TileWalkOptions& options_;
  const int ctas_per_sm_;
  const Resolution resolution_;
  const LineSampler sampler_;
  L2Cache cache_;
  std::unordered_map<std::int64_t, HeadLines> heads_;
  std::vector<Slot> slots_;
  std::vector<int> spill_turn_;                 // by SM
  std::vector<std::vector<CachedLine>> spill_;  // by SM and place, found when first used
  std::uint64_t state_ = 1;
  std::int64_t missed_again_sectors_ = 0, first_key_sectors_ = 0;
  double l2_read_bytes_ = 0, sm_read_bytes_ = 0;
  std::int64_t walked_ = 0;
  std::vector<TimelineEvent> timeline_;
  double busy_ = 0, end_ = 0;                    // slot-cycles in use; when the last CTA ends
  double steady_cycles_ = 0, steady_tiles_ = 0;  // while all slots were full
};

void Walk::start(Slot& slot, std::int64_t cta) {
  slot.at = grid_.place(cta);
  const TileRange& range = grid_.ranges[static_cast<std::size_t>(slot.at.q_tile)];
  slot.tile = range.end;
  slot.begin = range.begin;
  slot.fresh = true;
  HeadLines& lines = heads_[slot.at.batch * p_.nheads_k + slot.at.key_head];
  if (lines.first_read.empty()) {
    const auto tiles = static_cast<std::size_t>((p_.seqlen_k + plan_.tile_n - 1) / plan_.tile_n);
    lines.k.resize(tiles), lines.v.resize(tiles), lines.first_read.assign(tiles, -1);
  }
  slot.lines = &lines;
  // local memory belongs to a place on the SM, and CTAs that follow each other there take the places in turn
  const int places = spill_places();
  const int place = spill_turn_[static_cast<std::size_t>(slot.sm)]++ % places;
  auto& spill = spill_[static_cast<std::size_t>(std::int64_t{slot.sm} * places + place)];
  const std::int64_t bytes = grid_.spill_lines() * LineSampler::line_bytes;
  const std::int64_t address = grid_.spill_base + (std::int64_t{slot.sm} * places + place) * bytes;
  if (spill.empty())
    sampler_.for_lines(address, address + bytes, [&](const CachedLine& line) { spill.push_back(line); });
  slot.spill = &spill;
}

void Walk::read_query(Slot& slot) {
  std::int64_t rows = std::min<std::int64_t>(plan_.tile_m, p_.seqlen_q - std::int64_t{slot.at.q_tile} * plan_.tile_m);
  if (slot.begin < slot.tile) {
    l2_read_bytes_ += static_cast<double>(rows * grid_.q.row_bytes);
    sm_read_bytes_ += static_cast<double>(rows * grid_.q.row_bytes);
    for_tile(grid_.q, slot.at.batch, slot.at.head, std::int64_t{slot.at.q_tile} * plan_.tile_m, plan_.tile_m,
             p_.seqlen_q, [&](const CachedLine& line) { cache_.read(line, slot.side); });
  }
}

void Walk::read_lines(std::vector<TileLine>& lines, int side) {
  for (TileLine& l : lines) {
    const L2Cache::Outcome outcome = cache_.read(l.line, side);
    if (!l.seen)
      first_key_sectors_ += l.line.sectors;
    else if (outcome == L2Cache::Outcome::miss)
      missed_again_sectors_ += l.line.sectors;
    l.seen = true;
  }
}

double Walk::merged_share(std::size_t index, std::int64_t what, double now, double first_read) const {
  const auto sms = static_cast<int>(device_.num_sms), group = static_cast<int>(device_.sms_per_coalescer);
  const int sm = slots_[index].sm, first = sm / group * group;
  double share = 1;
  for (int other = first; other < std::min(first + group, sms); ++other) {
    if (other == sm) continue;
    for (int i = 0; i < ctas_per_sm_; ++i) {
      const Slot& s = slots_[static_cast<std::size_t>(std::int64_t{i} * sms + other)];
      if (s.last_read == what)
        share = std::min(share, second_request_share(now - s.last_time, s.last_time <= first_read));
    }
  }
  return share;
}

void Walk::read_key_tile(Slot& slot, int tile, double now) {
  HeadLines& lines = *slot.lines;
  const auto at = static_cast<std::size_t>(tile);
  if (lines.first_read[at] < 0) {
    lines.first_read[at] = static_cast<float>(now);
    const std::int64_t row0 = std::int64_t{tile} * plan_.tile_n;
    for_tile(grid_.k, slot.at.batch, slot.at.key_head, row0, plan_.tile_n, p_.seqlen_k,
             [&](const CachedLine& line) { lines.k[at].push_back({line}); });
    for_tile(grid_.v, slot.at.batch, slot.at.key_head, row0, plan_.tile_n, p_.seqlen_k,
             [&](const CachedLine& line) { lines.v[at].push_back({line}); });
  }
  read_lines(lines.k[at], slot.side);
  read_lines(lines.v[at], slot.side);
  const std::int64_t rows = std::min<std::int64_t>(plan_.tile_n, p_.seqlen_k - std::int64_t{tile} * plan_.tile_n);
  const auto bytes = static_cast<double>(rows * grid_.key_row_bytes());
  const std::int64_t what = reinterpret_cast<std::int64_t>(&lines.first_read[at]);
  const auto index = static_cast<std::size_t>(&slot - slots_.data());
  l2_read_bytes_ += bytes * merged_share(index, what, now, lines.first_read[at]);
  sm_read_bytes_ += bytes;
  slot.last_read = what;
  slot.last_time = now;
  write_spill(slot);
  ++walked_;
}

void Walk::write_spill(const Slot& slot) {
  for (const CachedLine& line : *slot.spill) cache_.write(line, slot.side);
}

void Walk::finish(Slot& slot) {
  const std::int64_t row0 = std::int64_t{slot.at.q_tile} * plan_.tile_m,
                     rows = std::min<std::int64_t>(plan_.tile_m, p_.seqlen_q - row0);
  const auto write = [&](const CachedLine& line) { cache_.write(line, slot.side); };
  for_tile(grid_.o, slot.at.batch, slot.at.head, row0, plan_.tile_m, p_.seqlen_q, write);
  const std::int64_t lse = grid_.lse_base + 4 * ((slot.at.batch * p_.nheads + slot.at.head) * p_.seqlen_q + row0);
  sampler_.for_lines(lse, lse + 4 * rows, write);
}

void Walk::simulate() {
  const auto sms = static_cast<int>(device_.num_sms);
  spill_turn_.assign(static_cast<std::size_t>(sms), 0);
  spill_.resize(static_cast<std::size_t>(std::int64_t{sms} * spill_places()));
  slots_.resize(static_cast<std::size_t>(std::int64_t{sms} * ctas_per_sm_));
  std::vector<int> active(static_cast<std::size_t>(sms), 0);
  using Event = std::pair<double, int>;  // when, and which slot
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  // tiles are counted when a CTA begins them: on average half an event's are still to do
  const double in_flight = static_cast<double>(slots_.size()) * resolution_.key_tiles_per_event / 2;
  std::int64_t next = 0;
  for (int i = 0; i < static_cast<int>(slots_.size()) && next < resolution_.ctas; ++i) {
    Slot& slot = slots_[static_cast<std::size_t>(i)];
    slot.sm = i % sms;
    // a plain grid fills cluster by cluster of SMs, and every cluster is wholly on one side
    slot.side = device_.l2_partitions == 1 ? 0 : slot.sm * 8 / sms % 2;
    start(slot, next++);
    ++active[static_cast<std::size_t>(slot.sm)];
    events.emplace(0.0, i);
  }
  while (!events.empty()) {
    const auto [now, index] = events.top();
    events.pop();
    Slot& slot = slots_[static_cast<std::size_t>(index)];
    double cycles = 0;
    TimelineEvent done{.kind = TimelineEvent::Kind::key_tile, .slot = index / sms, .q_tile = slot.at.q_tile};
    done.batch = slot.at.batch, done.head = slot.at.head, done.begin = now;
    const auto log = [&] {
      if (slot.sm != 0 || timeline_.size() >= options_.max_timeline_events) return;
      done.end = now + cycles;
      timeline_.push_back(done);
    };
    if (slot.fresh) {
      done.kind = TimelineEvent::Kind::start;
      slot.fresh = false;
      read_query(slot);
      cycles = options_.cycles_per_cta / 2;
    } else if (slot.begin < slot.tile) {
      const int tiles = std::min(resolution_.key_tiles_per_event, slot.tile - slot.begin);
      for (int t = 0; t < tiles; ++t) read_key_tile(slot, --slot.tile, now);
      const auto sharing = static_cast<std::size_t>(active[static_cast<std::size_t>(slot.sm)]);
      cycles = tiles * options_.cycles_per_key_tile[sharing - 1] * noise();
      done.key_tile = slot.tile;
    } else {
      if (plan_.spill_words_per_cta != 0) write_spill(slot);
      finish(slot);
      cycles = options_.cycles_per_cta / 2;
      done.kind = TimelineEvent::Kind::finish;
      log();
      end_ = std::max(end_, now + cycles);
      if (next == resolution_.ctas) {
        --active[static_cast<std::size_t>(slot.sm)];
        busy_ += now + cycles;
        continue;
      }
      start(slot, next++);
      steady_cycles_ = now;
      steady_tiles_ = static_cast<double>(walked_) - in_flight;
      events.emplace(now + cycles, index);
      continue;
    }
    log();
    events.emplace(now + cycles, index);
  }
}

TileWalk Walk::result() const {
  TileWalk r;
  r.ctas = grid_.ctas;
  r.key_tiles = grid_.key_tiles;
  r.first_read_bytes = grid_.first_read_bytes;
  r.sm_read_bytes = grid_.sm_read_bytes;
  r.sampling = resolution_.sampling;
  r.key_tiles_per_event = resolution_.key_tiles_per_event;
  r.timeline = timeline_;
  if (grid_.ctas == 0) return r;

  const auto ratio = [](auto all, auto part) { return static_cast<double>(all) / static_cast<double>(part); };
  const double scale = walked_ == 0 ? ratio(grid_.ctas, resolution_.ctas) : ratio(grid_.key_tiles, walked_);
  const auto bytes = [&](std::int64_t sectors) {
    return static_cast<double>(sectors) * LineSampler::sector_bytes * resolution_.sampling;
  };
  r.simulated_fraction = 1 / scale;
  const double again = bytes(missed_again_sectors_);
  r.dram_read_bytes =
      scale == 1 ? grid_.first_read_bytes + again
                 : extrapolated_reads(grid_, device_, resolution_.ctas, bytes(first_key_sectors_), again, scale);
  r.l2_read_bytes = sm_read_bytes_ == 0 ? 0 : grid_.sm_read_bytes * (l2_read_bytes_ / sm_read_bytes_);
  r.dirty_bytes_left = bytes(cache_.dirty_sectors());
  r.dram_write_bytes = bytes(cache_.written_back_sectors()) * scale;
  r.busy_fraction = busy_ / (static_cast<double>(slots_.size()) * end_);
  // what is not simulated goes at the rate at which all slots were full
  const auto left = static_cast<double>(grid_.key_tiles - walked_);
  r.cycles = walked_ == 0 ? end_ * scale : end_ + (steady_tiles_ <= 0 ? 0 : left * steady_cycles_ / steady_tiles_);
  return r;
}

}  // namespace

TileWalk walk_tiles(const Case& c, const KernelPlan& plan, const DeviceSpec& device, int ctas_per_sm,
                    const TileWalkOptions& options) {
  return Walk(c, plan, device, ctas_per_sm, options).run();
}

}  // namespace attest
