#include "attest/simulator/tile_walk.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>
#include <utility>

#include "attest/simulator/l2_cache.h"
#include "coalescer.h"
#include "schedule.h"

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

/// A CTA at a time, or a cluster of them.
struct Slot {
  int sm = 0;
  int side = 0;
  int position = 0;  // in the walk
  const KeyWalk* walk = nullptr;
  bool fresh = true;  // Q is yet to be read
  Task at{};
  std::int64_t rows = 0;  // queries of its tiles
  std::int64_t next = 0;  // task, of a static schedule
  HeadLines* lines = nullptr;
  const std::vector<CachedLine>* spill = nullptr;  // its local memory
  std::int64_t last_read = -1;  // (key head, tile) and when: what a neighbour's request may merge with
  double last_time = -1e18;
};

class Walk {
 public:
  Walk(const Case& c, const KernelPlan& plan, const DeviceSpec& device, int ctas_per_sm, const TileWalkOptions& options)
      : grid_(c, plan),
        schedule_(grid_, device, ctas_per_sm),
        p_(c.problem),
        plan_(plan),
        device_(device),
        options_(options),
        ctas_per_sm_(ctas_per_sm),
        resolution_(choose_resolution(grid_, device, schedule_.tasks(), schedule_.slots(), options)),
        sampler_(device, resolution_.sampling),
        cache_(static_cast<int>(device.l2_partitions), sampler_.sets(), static_cast<int>(device.l2_ways),
               static_cast<int>(device.l2_dirty_ways)) {}

  TileWalk run() {
    leave_dirty_lines();
    for (int call = options_.warm ? 0 : 1; call < 2; ++call) {
      if (grid_.ctas > 0) simulate();
      if (grid_.splits > 1) combine();
      if (call == 0) forget();
    }
    return result();
  }

 private:
  template <class F>
  void for_rows(const TensorAddress& a, std::int64_t batch, std::int64_t head, std::int64_t row0, std::int64_t rows,
                F&& f) const {
    for (std::int64_t row = row0; row < row0 + rows; ++row) {
      const std::int64_t at = a.row(batch, head, row);
      sampler_.for_lines(at, at + a.row_bytes, f);
    }
  }

  void leave_dirty_lines();
  void simulate();
  void combine();
  void forget();
  double extrapolated_writes(double written, double scale) const;
  TileWalk result() const;
  void start(Slot& slot, std::int64_t task);
  std::int64_t next_task(Slot& slot);
  void read_query(Slot& slot);
  void step(Slot& slot, double now);
  void read_keys(Slot& slot, int tile, double now);
  void read_values(Slot& slot, int tile) { read_lines(slot.lines->v[static_cast<std::size_t>(tile)], slot.side); }
  void read_bias(const Slot& slot, int tile);
  void finish(const Slot& slot);
  void write_spill(const Slot& slot);
  int spill_places() const { return std::max(1, static_cast<int>(device_.max_warps_per_sm) / plan_.warps()); }
  void read_lines(std::vector<TileLine>& lines, int side);
  double merged_share(std::size_t index, std::int64_t what, double now, double first_read) const;
  std::int64_t readers(const Slot& slot) const {  // CTAs of a cluster that have rows
    return (slot.rows + plan_.tile_m - 1) / plan_.tile_m;
  }
  bool producer_runs_ahead() const { return plan_.producer_warps > 0; }  // K of the next tile comes before V of this
  double noise() {  // uniform with the standard deviation asked for
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    const double u = static_cast<double>(state_ >> 11) * 0x1p-53;
    return 1 + options_.noise * 3.4641016151377544 * (u - 0.5);
  }

  const Grid grid_;
  const Schedule schedule_;
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
  std::int64_t next_task_ = 0;
  bool second_call_ = false;
  std::int64_t written_back_before_ = 0;
  std::int64_t missed_again_sectors_ = 0, first_key_sectors_ = 0, bias_missed_sectors_ = 0;
  double l2_read_bytes_ = 0, sm_read_bytes_ = 0;
  std::int64_t walked_ = 0;
  std::vector<TimelineEvent> timeline_;
  double busy_ = 0, end_ = 0;                    // slot-cycles in use; when the last CTA ends
  double steady_cycles_ = 0, steady_tiles_ = 0;  // while all slots were full
};

std::int64_t Walk::next_task(Slot& slot) {
  const std::int64_t task = schedule_.fixed() ? slot.next : next_task_++;
  slot.next += schedule_.slots();
  return task < resolution_.tasks ? task : -1;
}

void Walk::start(Slot& slot, std::int64_t task) {
  slot.at = schedule_.task(task);
  slot.walk = &grid_.walk(slot.at.batch, slot.at.q_tile, slot.at.split);
  // of a cluster, the longest walk; they differ by a tile at most where a mask leaves clusters at all
  slot.rows = 0;
  for (int t = slot.at.q_tile; t < std::min(slot.at.q_tile + plan_.cluster, grid_.q_tiles); ++t) {
    slot.rows += grid_.rows(slot.at.batch, t);
    const KeyWalk& walk = grid_.walk(slot.at.batch, t, slot.at.split);
    if (walk.last - walk.first > slot.walk->last - slot.walk->first) slot.walk = &walk;
  }
  slot.position = slot.walk->first;
  slot.fresh = true;
  HeadLines& lines = heads_[slot.at.batch * p_.nheads_k + grid_.key_head(slot.at.head)];
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
  if (slot.walk->first >= slot.walk->last) return;
  const auto bytes = static_cast<double>(slot.rows * grid_.q.row_bytes);
  l2_read_bytes_ += bytes;
  sm_read_bytes_ += bytes;
  for_rows(grid_.q, slot.at.batch, slot.at.head, std::int64_t{slot.at.q_tile} * plan_.tile_m, slot.rows,
           [&](const CachedLine& line) {
             const L2Cache::Outcome outcome = cache_.read(line, slot.side, plan_.evict_first_q);
             if ((second_call_ || slot.at.split > 0) && outcome == L2Cache::Outcome::miss)
               missed_again_sectors_ += line.sectors;
           });
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

void Walk::read_keys(Slot& slot, int tile, double now) {
  HeadLines& lines = *slot.lines;
  const auto at = static_cast<std::size_t>(tile);
  const std::int64_t row0 = std::int64_t{tile} * plan_.tile_n;
  const std::int64_t rows = std::min<std::int64_t>(plan_.tile_n, grid_.entry(slot.at.batch).seqlen_k - row0);
  const bool first = lines.first_read[at] < 0;
  if (first) lines.first_read[at] = static_cast<float>(now);
  if (first && !second_call_) {
    const std::int64_t key_head = grid_.key_head(slot.at.head);
    for_rows(grid_.k, slot.at.batch, key_head, row0, rows,
             [&](const CachedLine& line) { lines.k[at].push_back({line}); });
    for_rows(grid_.v, slot.at.batch, key_head, row0, rows,
             [&](const CachedLine& line) { lines.v[at].push_back({line}); });
  }
  read_lines(lines.k[at], slot.side);
  const auto bytes = static_cast<double>(rows * grid_.key_row_bytes());
  const std::int64_t what = reinterpret_cast<std::int64_t>(&lines.first_read[at]);
  const auto index = static_cast<std::size_t>(&slot - slots_.data());
  // a cluster asks for a tile once, a part each CTA, and multicasts it
  l2_read_bytes_ += bytes * (plan_.cluster > 1 ? 1 : merged_share(index, what, now, lines.first_read[at]));
  sm_read_bytes_ += bytes * static_cast<double>(readers(slot));
  slot.last_read = what;
  slot.last_time = now;
}

void Walk::read_bias(const Slot& slot, int tile) {
  const std::int64_t key0 = std::int64_t{tile} * plan_.tile_n;
  const std::int64_t keys = std::min<std::int64_t>(plan_.tile_n, grid_.entry(slot.at.batch).seqlen_k - key0);
  const std::int64_t row0 = std::int64_t{slot.at.q_tile} * plan_.tile_m;
  const bool shared = grid_.bias.head_stride == 0 || grid_.bias.batch_stride == 0;
  for (std::int64_t row = row0; row < row0 + slot.rows; ++row) {
    const std::int64_t at = grid_.bias.row(slot.at.batch, slot.at.head, row) + 4 * key0;
    sampler_.for_lines(at, at + 4 * keys, [&](const CachedLine& line) {
      const L2Cache::Outcome outcome = cache_.read(line, slot.side);
      if (shared && outcome == L2Cache::Outcome::miss) bias_missed_sectors_ += line.sectors;
    });
  }
}

void Walk::step(Slot& slot, double now) {
  const KeyWalk& walk = *slot.walk;
  const int tile = walk.tile(slot.position);
  if (!producer_runs_ahead())
    read_keys(slot, tile, now);
  else if (slot.position + 1 < walk.last)
    read_keys(slot, walk.tile(slot.position + 1), now);
  read_values(slot, tile);
  if (p_.bias != Bias::none) read_bias(slot, tile);
  write_spill(slot);
  ++slot.position;
  walked_ += readers(slot);
}

void Walk::write_spill(const Slot& slot) {
  for (const CachedLine& line : *slot.spill) cache_.write(line, slot.side);
}

void Walk::finish(const Slot& slot) {
  const std::int64_t row0 = std::int64_t{slot.at.q_tile} * plan_.tile_m;
  const auto write = [&](const CachedLine& line) { cache_.write(line, slot.side); };
  if (grid_.splits > 1) {  // O and LSE in fp32, for combine()
    const std::int64_t row = grid_.partial_row(slot.at.batch, slot.at.head, slot.at.split) + row0;
    const std::int64_t row_bytes = 4 * (p_.headdim_v + 1), at = grid_.partial_base + row * row_bytes;
    sampler_.for_lines(at, at + slot.rows * row_bytes, write);
    return;
  }
  for_rows(grid_.o, slot.at.batch, slot.at.head, row0, slot.rows, write);
  const std::int64_t lse = grid_.lse_base + 4 * (grid_.lse_row(slot.at.batch, slot.at.head) + row0);
  sampler_.for_lines(lse, lse + 4 * slot.rows, write);
}

/// The second kernel of a split one: reads every split's part of each row, writes O and LSE.
void Walk::combine() {
  const std::int64_t row_bytes = 4 * (p_.headdim_v + 1);
  std::int64_t tile = 0;
  const std::int64_t heads = p_.batch * p_.nheads;
  for (std::int64_t member = 0; member < heads; ++member) {
    const std::int64_t batch = member / p_.nheads, head = member % p_.nheads;
    const std::int64_t queries = grid_.entry(batch).seqlen_q;
    for (std::int64_t row0 = 0; row0 < queries; row0 += plan_.tile_m, ++tile) {
      const std::int64_t rows = std::min<std::int64_t>(plan_.tile_m, queries - row0);
      const int side = static_cast<int>(tile % device_.l2_partitions);
      for (int split = 0; split < grid_.splits; ++split) {
        const std::int64_t at = grid_.partial_base + (grid_.partial_row(batch, head, split) + row0) * row_bytes;
        sampler_.for_lines(at, at + rows * row_bytes, [&](const CachedLine& line) {
          if (cache_.read(line, side) == L2Cache::Outcome::miss) missed_again_sectors_ += line.sectors;
        });
      }
      const auto write = [&](const CachedLine& line) { cache_.write(line, side); };
      for_rows(grid_.o, batch, head, row0, rows, write);
      const std::int64_t lse = grid_.lse_base + 4 * (grid_.lse_row(batch, head) + row0);
      sampler_.for_lines(lse, lse + 4 * rows, write);
    }
  }
}

/// All that was counted, but not what L2 holds.
void Walk::forget() {
  for (auto& [head, lines] : heads_) std::fill(lines.first_read.begin(), lines.first_read.end(), -1.0f);
  slots_.clear();
  timeline_.clear();
  state_ = 1;
  next_task_ = walked_ = 0;
  missed_again_sectors_ = first_key_sectors_ = bias_missed_sectors_ = 0;
  l2_read_bytes_ = sm_read_bytes_ = busy_ = end_ = steady_cycles_ = steady_tiles_ = 0;
  written_back_before_ = cache_.written_back_sectors();
  second_call_ = true;
}

void Walk::leave_dirty_lines() {
  int side = 0;
  const std::int64_t left_over = grid_.spill_base + (std::int64_t{1} << 32);
  sampler_.for_lines(left_over, left_over + options_.dirty_bytes_at_start, [&](const CachedLine& line) {
    cache_.write(line, side ^= static_cast<int>(device_.l2_partitions) - 1);
  });
  written_back_before_ = cache_.written_back_sectors();  // what a small L2 could not hold
}

void Walk::simulate() {
  const auto sms = static_cast<int>(device_.num_sms);
  spill_turn_.assign(static_cast<std::size_t>(sms), 0);
  spill_.resize(static_cast<std::size_t>(std::int64_t{sms} * spill_places()));
  slots_.resize(static_cast<std::size_t>(schedule_.slots()));
  std::vector<int> active(static_cast<std::size_t>(sms), 0);
  using Event = std::pair<double, int>;  // when, and which slot
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  // tiles are counted when a CTA begins them: on average half an event's are still to do
  const double in_flight = static_cast<double>(slots_.size() * static_cast<std::size_t>(plan_.cluster)) *
                           resolution_.key_tiles_per_event / 2;
  for (int i = 0; i < static_cast<int>(slots_.size()); ++i) {
    Slot& slot = slots_[static_cast<std::size_t>(i)];
    slot.sm = schedule_.sm(i), slot.side = schedule_.side(i), slot.next = i;
    const std::int64_t task = next_task(slot);
    if (task < 0) continue;
    start(slot, task);
    ++active[static_cast<std::size_t>(slot.sm)];
    events.emplace(0.0, i);
  }
  while (!events.empty()) {
    const auto [now, index] = events.top();
    events.pop();
    Slot& slot = slots_[static_cast<std::size_t>(index)];
    double cycles = options_.cycles_per_cta / 2;
    auto kind = TimelineEvent::Kind::start;
    const Task at = slot.at;
    int tile = 0;
    bool leaves = false;
    if (slot.fresh) {
      slot.fresh = false;
      if (producer_runs_ahead() && slot.position < slot.walk->last)
        read_keys(slot, slot.walk->tile(slot.position), now);
      read_query(slot);
    } else if (slot.position < slot.walk->last) {
      kind = TimelineEvent::Kind::key_tile;
      const int tiles = std::min(resolution_.key_tiles_per_event, slot.walk->last - slot.position);
      for (int t = 0; t < tiles; ++t) step(slot, now);
      tile = slot.walk->tile(slot.position - 1);
      const auto sharing = static_cast<std::size_t>(active[static_cast<std::size_t>(slot.sm)]);
      cycles = tiles * options_.cycles_per_key_tile[sharing - 1] * noise();
    } else {
      kind = TimelineEvent::Kind::finish;
      if (plan_.spill_words_per_cta != 0) write_spill(slot);
      finish(slot);
      end_ = std::max(end_, now + cycles);
      const std::int64_t task = next_task(slot);
      leaves = task < 0;
      if (leaves) {
        --active[static_cast<std::size_t>(slot.sm)];
        busy_ += now + cycles;
      } else {
        start(slot, task);
        steady_cycles_ = now;
        steady_tiles_ = static_cast<double>(walked_) - in_flight;
      }
    }
    if (slot.sm == 0 && timeline_.size() < options_.max_timeline_events)
      timeline_.push_back({kind, index / sms, at.q_tile, tile, at.batch, at.head, now, now + cycles});
    if (!leaves) events.emplace(now + cycles, index);
  }
}

/// What CTAs store repeats in those that are not simulated; what was dirty before the kernel does not. Beyond both
/// nothing is written, however much more a simulated key tile stores than the others do.
double Walk::extrapolated_writes(double written, double scale) const {
  if (scale == 1) return written;
  const auto left_over = static_cast<double>(options_.dirty_bytes_at_start);
  const double own = std::max(0.0, written - left_over);
  return std::min(written - own + own * scale, left_over + grid_.stored_bytes());
}

TileWalk Walk::result() const {
  TileWalk r;
  r.ctas = grid_.ctas;
  r.key_tiles = grid_.key_tiles;
  r.first_read_bytes = grid_.first_read_bytes;
  r.sm_read_bytes = grid_.sm_read_bytes;
  r.bias_read_bytes = grid_.bias_read_bytes;
  r.partial_bytes = grid_.partial_bytes;
  r.sampling = resolution_.sampling;
  r.key_tiles_per_event = resolution_.key_tiles_per_event;
  r.timeline = timeline_;
  if (grid_.ctas == 0) return r;

  const auto ratio = [](auto all, auto part) { return static_cast<double>(all) / static_cast<double>(part); };
  const double scale = walked_ == 0 ? ratio(schedule_.tasks(), resolution_.tasks) : ratio(grid_.key_tiles, walked_);
  const auto bytes = [&](std::int64_t sectors) {
    return static_cast<double>(sectors) * LineSampler::sector_bytes / sampler_.share();
  };
  r.simulated_fraction = 1 / scale;
  // what a bias shared by heads or batch entries misses includes its first reads
  const double bias_again =
      bias_missed_sectors_ == 0
          ? 0
          : std::max(0.0, bytes(bias_missed_sectors_) - (second_call_ ? 0 : grid_.bias_bytes / scale));
  const double again = bytes(missed_again_sectors_) + bias_again;
  r.dram_read_bytes = second_call_ ? again * scale
                      : scale == 1 ? grid_.first_read_bytes + again
                                   : extrapolated_reads(grid_, device_, resolution_.tasks * plan_.cluster,
                                                        bytes(first_key_sectors_), again, scale);
  // where no simulated CTA reads anything, what the others read is taken not to merge
  r.l2_read_bytes = grid_.sm_read_bytes * (sm_read_bytes_ == 0 ? 1 : l2_read_bytes_ / sm_read_bytes_);
  r.dirty_bytes_left = bytes(cache_.dirty_sectors());
  r.dram_write_bytes = extrapolated_writes(bytes(cache_.written_back_sectors() - written_back_before_), scale);
  r.busy_fraction = end_ == 0 ? 0 : busy_ / (static_cast<double>(slots_.size()) * end_);
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
