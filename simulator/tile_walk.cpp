#include "attest/simulator/tile_walk.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "address.h"
#include "attest/simulator/step_time.h"
#include "attest/simulator/utilisation.h"
#include "event_queue.h"
#include "in_step.h"
#include "noise.h"
#include "residents.h"
#include "sm_log.h"
#include "spill_times.h"
#include "spills_to_come.h"
#include "traffic.h"
#include "walk_options.h"
#include "walk_totals.h"

namespace attest {
namespace {

class Walk {
 public:
  /// `launch`: of several that differ by chance.
  Walk(const Case& c, const KernelPlan& plan, const DeviceSpec& device, int ctas_per_sm, const TileWalkOptions& options,
       std::uint64_t launch)
      : grid_(c, plan,
              options.memory_begin > 0 ? options.memory_begin : MemoryMap(device, options.through_ncu).buffers()),
        schedule_(grid_, device, ctas_per_sm),
        plan_(plan),
        device_(device),
        options_(options),
        resolution_(choose_resolution(grid_, device, schedule_.tasks(), schedule_.slots(), options)),
        traffic_(grid_, schedule_, device, resolution_.sampling, options),
        launch_(1, launch),
        noise_(launch_),
        sms_(schedule_, resolution_.tasks),
        spills_(static_cast<std::size_t>(schedule_.slots())),
        spill_times_(static_cast<std::size_t>(traffic_.warps_of_slot())),
        residents_(options, device.num_sms, schedule_.slots_a_round(), plan.cluster),
        in_step_{in_step_times(c.layout.page_size > 0, true), in_step_times(c.layout.page_size > 0, false)} {}

  TileWalk run() {
    traffic_.leave_dirty_lines(options_.dirty_bytes_at_start);
    for (int call = options_.warm ? 0 : 1; call < 2; ++call) {
      if (grid_.ctas > 0) simulate();
      if (grid_.splits > 1) {
        if (options_.empties_between) traffic_.empty(), traffic_.leave_dirty_lines(options_.dirty_bytes_at_start);
        traffic_.combine(resolution_.combined_rows);
      }
      if (call == 0) forget();
    }
    return result();
  }

 private:
  void simulate();
  void forget();
  TileWalk result() const;
  void start(Slot& slot, std::int64_t task);
  double relative_speed(std::size_t slot, int sharing) const;
  double until_read(double key_tiles, double now);
  /// Whether another CTA of the SM walks the keys of the same head, or of one so many heads beside it, and asked last
  /// for one of the two tiles.
  bool asked_on_sm(std::size_t slot, int tile, int or_tile, std::int64_t beside = 0) const;
  /// The part of a tile's copies that L1 has.
  double in_l1(std::size_t slot, int tile) const;
  std::int64_t next_task(Slot& slot);
  void follow();
  double left_out(const Slot& slot, double now) const;
  void record(const TimelineEvent& event);
  void spill_until(double now);

  const Grid grid_;
  const Schedule schedule_;
  const KernelPlan& plan_;
  const DeviceSpec& device_;
  const TileWalkOptions& options_;
  const Resolution resolution_;
  std::vector<Slot> slots_;
  Traffic traffic_;
  const Noise launch_;  // as it begins
  Noise noise_;
  std::int64_t next_task_ = 0, begun_ = 0;
  std::vector<TimelineEvent> timeline_;
  SmLog sms_;
  std::vector<std::size_t> room_;  // of each SM's, events that may still be recorded
  SpillsToCome spills_;
  SpillTimes spill_times_;
  Residents residents_;
  const std::array<InStepTimes, 2> in_step_;  // of CTAs that begin with the launch, and of others
  double dram_busy_until_ = 0;
  std::vector<double> sm_ends_;                  // when each SM's last CTA so far ends
  double busy_ = 0, end_ = 0;                    // slot-cycles in use; when the last CTA ends
  double whole_end_ = 0;                         // and when it would if none of its slot's walks had been cut
  double steady_cycles_ = 0, steady_tiles_ = 0;  // while all slots were full
  Traffic::Count began_together_;                // until the first CTA ended: they began together
};

std::int64_t Walk::next_task(Slot& slot) {
  const std::int64_t task = schedule_.fixed() ? slot.next : next_task_++;
  slot.next += schedule_.slots();
  return task < resolution_.tasks ? task : -1;
}

void Walk::start(Slot& slot, std::int64_t task) {
  slot.at = schedule_.task(task);
  slot.walk = grid_.walk(slot.at.batch, slot.at.q_tile, slot.at.split);
  // of a cluster, the longest walk; they differ by a tile at most where a mask leaves clusters at all
  slot.rows = 0;
  for (int t = slot.at.q_tile; t < std::min(slot.at.q_tile + plan_.cluster, grid_.q_tiles); ++t) {
    slot.rows += grid_.rows(slot.at.batch, t);
    const KeyWalk walk = grid_.walk(slot.at.batch, t, slot.at.split);
    if (walk.last - walk.first > slot.walk.last - slot.walk.first) slot.walk = walk;
  }
  const int whole = slot.walk.last;
  slot.walk.last = std::min(whole, slot.walk.first + resolution_.key_tiles_a_cta);
  slot.cut = whole - slot.walk.last;
  slot.position = slot.walk.first;
  slot.fresh = true;
  slot.asked = -1;
  if (slot.begun < 0 || plan_.persistence == Persistence::none) slot.begun = begun_++;
  traffic_.place(slot);
}

/// Of the CTAs that share an SM the oldest goes first: its speed over their mean.
double Walk::relative_speed(std::size_t slot, int sharing) const {
  if (sharing == 1 || plan_.older_cta_lead == 0) return 1;
  const auto round = static_cast<std::size_t>(schedule_.slots_a_round());
  int older = 0;
  for (std::size_t i = slot % round; i < slots_.size(); i += round)
    older += slots_[i].begun >= 0 && slots_[i].begun < slots_[slot].begun ? 1 : 0;
  return 1 + 1e-3 * plan_.older_cta_lead * (sharing - 1 - 2 * older) / (sharing - 1);
}

/// Cycles until DRAM has read so many key tiles, behind all that was asked of it before: a tile is copied ahead of the
/// one that is worked on, and no CTA is done with this before it has the next.
double Walk::until_read(double key_tiles, double now) {
  const double bytes = key_tiles * static_cast<double>(plan_.tile_n * grid_.key_row_bytes());
  dram_busy_until_ = std::max(dram_busy_until_, now) + bytes / dram_read_bytes_per_clock(device_);
  return dram_busy_until_ - now;
}

bool Walk::asked_on_sm(std::size_t slot, int tile, int or_tile, std::int64_t beside) const {
  const auto round = static_cast<std::size_t>(schedule_.slots_a_round());
  const Task& own = slots_[slot].at;
  for (std::size_t i = slot % round; i < slots_.size(); i += round) {
    const Task& other = slots_[i].at;
    const std::int64_t heads = grid_.key_head(other.head) - grid_.key_head(own.head);
    if (i != slot && slots_[i].begun >= 0 && other.batch == own.batch && std::abs(heads) == beside &&
        (slots_[i].asked == tile || slots_[i].asked == or_tile))
      return true;
  }
  return false;
}

double Walk::in_l1(std::size_t slot, int tile) const {
  if (options_.l1_serves > 0 && asked_on_sm(slot, tile, tile)) return options_.l1_serves;
  return options_.l1_serves_beside > 0 && asked_on_sm(slot, tile, tile, 1) ? options_.l1_serves_beside : 0;
}

/// All that was counted, but not what L2 holds.
void Walk::forget() {
  traffic_.call_again();
  slots_.clear();
  timeline_.clear();
  spills_ = SpillsToCome(static_cast<std::size_t>(schedule_.slots()));
  spill_times_ = SpillTimes(static_cast<std::size_t>(traffic_.warps_of_slot()));
  noise_ = launch_;
  next_task_ = begun_ = 0;
  busy_ = end_ = whole_end_ = steady_cycles_ = steady_tiles_ = dram_busy_until_ = 0;
  began_together_ = {};
}

void Walk::follow() {
  constexpr std::int64_t followed = 4;
  room_.assign(static_cast<std::size_t>(device_.num_sms), 0);
  for (const int sm : schedule_.spread_sms(followed, resolution_.tasks))
    room_[static_cast<std::size_t>(sm)] = options_.max_timeline_events;
}

/// Cycles of the key tiles of its CTA, which ends now, that are not simulated: they take as long as those that are.
double Walk::left_out(const Slot& slot, double now) const {
  const int tiles = slot.walk.last - slot.walk.first;
  return slot.cut == 0 ? 0 : slot.cut * (now - slot.since - options_.cycles_per_cta / 2) / tiles;
}

void Walk::spill_until(double now) {
  spills_.until(
      now, [&](int index, const SpilledLine& line) { traffic_.spill(slots_[static_cast<std::size_t>(index)], line); });
}

void Walk::record(const TimelineEvent& event) {
  std::size_t& room = room_[static_cast<std::size_t>(event.sm)];
  if (room == 0) return;
  --room;
  timeline_.push_back(event);
}

void Walk::simulate() {
  const auto sms = static_cast<int>(device_.num_sms);
  slots_.resize(static_cast<std::size_t>(schedule_.slots()));
  follow();
  residents_.clear();
  sm_ends_.assign(static_cast<std::size_t>(sms), 0);
  sms_ = SmLog(schedule_, resolution_.tasks);
  EventQueue events(slots_.size());
  // tiles are counted when a CTA begins them: on average half an event's are still to do
  const double in_flight = static_cast<double>(slots_.size() * static_cast<std::size_t>(plan_.cluster)) *
                           resolution_.key_tiles_per_event / 2;
  double lag = 0;  // of an SM's CTAs, one behind the other
  if (options_.in_step && resolution_.tasks > 0) {
    const auto on_sm = static_cast<std::size_t>((resolution_.tasks - 1) / schedule_.slots_a_round());
    lag = in_step_[0].lag_at_launch *
          options_.cycles_per_key_tile.at(std::min(on_sm, options_.cycles_per_key_tile.size() - 1));
  }
  for (int i = 0; i < static_cast<int>(slots_.size()); ++i) {
    Slot& slot = slots_[static_cast<std::size_t>(i)];
    slot.sm = schedule_.sm(i), slot.side = schedule_.side(i), slot.gpc = schedule_.gpc(i), slot.next = i;
    slot.number = i / schedule_.slots_a_round();
    traffic_.give_local_memory(slot, slot.number);
    const std::int64_t task = next_task(slot);
    if (task < 0) continue;
    start(slot, task);
    residents_.change(slot.sm, 1);
    events.set(i, lag * slot.number);
  }
  std::vector<double> clocks = gpc_clocks(plan_, device_);
  if (options_.in_step) std::ranges::fill(clocks, 1.0);
  while (!events.empty()) {
    const int index = events.next();
    const double now = events.time(index);
    spill_until(now);
    Slot& slot = slots_[static_cast<std::size_t>(index)];
    double cycles = options_.cycles_per_cta / 2;
    auto kind = TimelineEvent::Kind::start;
    const Task at = slot.at;
    int tile = 0;
    const int sharing = residents_.on(slot.sm);
    bool leaves = false;
    int key_tiles = 0;
    double read = 0;           // by DRAM, from now
    double varies = 0;         // once its loads are there
    double* loaded = nullptr;  // the last tile, where CTAs wait for its loads
    bool leads = true;         // whether others wait for this one's
    if (slot.fresh) {
      slot.fresh = false;
      slot.since = now;
      sms_.start(index, slot, now);
      traffic_.begin(slot, now, sharing);
    } else if (slot.position < slot.walk.last) {
      kind = TimelineEvent::Kind::key_tile;
      const int tiles = std::min(resolution_.key_tiles_per_event, slot.walk.last - slot.position);
      const int asks = slot.walk.tile(slot.position);
      const auto number = static_cast<std::size_t>(index);
      const double of_copies = in_l1(number, asks);
      const bool together = options_.l1_serves > 0 && asked_on_sm(number, asks, slot.asked);
      slot.asked = asks;
      double from_dram = 0;
      int tiles_from_dram = 0;
      for (int t = 0; t < tiles; ++t) {
        const double of_tile = traffic_.step(slot, now, sharing, of_copies);
        from_dram += of_tile;
        tiles_from_dram += of_tile > 0 ? 1 : 0;
      }
      key_tiles = tiles;
      sms_.key_tiles(index, slot, slot.position - tiles, slot.position, now);
      if (together) traffic_.walks_together(tiles);
      tile = slot.walk.tile(slot.position - 1);
      const std::vector<double>& of_sharing =
          together && !options_.cycles_together.empty() ? options_.cycles_together : options_.cycles_per_key_tile;
      const double each = of_sharing[static_cast<std::size_t>(sharing) - 1] /
                          (residents_.pace(slot.sm) * relative_speed(number, sharing));
      const double waits =
          options_.waits_per_key_tile.empty() ? 0 : options_.waits_per_key_tile[static_cast<std::size_t>(sharing) - 1];
      const double of_tiles = options_.noise * step_deviation(plan_, device_, sharing) * std::sqrt(tiles);
      const InStepTimes& in_step = in_step_[slot.begun < schedule_.slots() ? 0 : 1];
      varies = options_.in_step ? options_.noise * varied_in_step(slot, in_step, each, tiles, sharing, noise_)
                                : of_tiles * (each - waits) * noise_();
      cycles = each * tiles;
      if (sharing == 1 && options_.longer_from_dram > 0) {
        loaded = &slot.lines->tile(tile).loaded;
        leads = tiles_from_dram > 0;
        cycles += tiles_from_dram * options_.longer_from_dram;
      }
      if (from_dram > 0) read = until_read(from_dram, now);
      if (options_.waited_loads > 0) {
        loaded = &slot.lines->tile(tile).loaded;
        // Half of a tile's work stands before the first load of K, half before V's; those behind find CTAs in step.
        const double since_loads = noise_.in_unit() * options_.waited_loads < 2 ? std::sqrt(0.5) : 0;
        cycles += options_.waited_loads * from_dram * (device_.dram_latency_cycles - device_.l2_latency_cycles) +
                  (1 - since_loads) * varies;
        varies *= since_loads;
      }
    } else {
      kind = TimelineEvent::Kind::finish;
      traffic_.finish(slot, sharing);
      sms_.finish(index, slot, now);
      slot.left_out += left_out(slot, now);
      if (began_together_.sm_read_bytes == 0) began_together_ = traffic_.count();
      const std::int64_t task = next_task(slot);
      leaves = task < 0;
      if (leaves) {
        residents_.change(slot.sm, -1);
        slot.begun = -1;
      } else {
        start(slot, task);
        steady_cycles_ = now;
        steady_tiles_ = static_cast<double>(traffic_.count().key_tiles) - in_flight;
      }
    }
    const double clock = clocks[static_cast<std::size_t>(slot.gpc)];
    if (loaded != nullptr) {
      cycles = std::max(cycles, (*loaded - now) * clock);
      if (leads) *loaded = now + cycles / clock;
    }
    cycles = std::max((cycles + varies) / clock, read);
    if (key_tiles > 0)
      spills_.set(index, spill_times_.of_event(Traffic::spilled_by(slot, sharing, key_tiles), now, cycles));
    record({kind, slot.sm, slot.number, sharing, at.q_tile, tile, at.batch, at.head, now, now + cycles});
    if (kind == TimelineEvent::Kind::finish) end_ = std::max(end_, now + cycles);
    if (leaves) {
      busy_ += now + cycles;
      whole_end_ = std::max(whole_end_, now + cycles + slot.left_out);
      double& sm_end = sm_ends_[static_cast<std::size_t>(slot.sm)];
      sm_end = std::max(sm_end, now + cycles);
      events.remove(index);
    } else {
      events.set(index, now + cycles);
    }
  }
}

TileWalk Walk::result() const {
  TileWalk r = WalkTotals(grid_, schedule_, resolution_, device_, options_, traffic_, began_together_).all();
  r.timeline = timeline_;
  r.sms = sms_.sms();
  if (grid_.ctas == 0) return r;
  const double sms_busy = std::accumulate(sm_ends_.begin(), sm_ends_.end(), 0.0);
  r.resident_ctas = sms_busy == 0 ? 0 : busy_ / sms_busy;
  r.busy_fraction = end_ == 0 ? 0 : busy_ / (static_cast<double>(slots_.size()) * end_);
  const std::int64_t walked = traffic_.count().key_tiles;
  const auto left = static_cast<double>(grid_.key_tiles - walked);
  if (walked == 0)
    r.cycles = end_ / r.simulated_fraction;
  else if (resolution_.tasks == schedule_.tasks())
    r.cycles = whole_end_;
  else  // CTAs that are not simulated go at the rate at which all slots were full
    r.cycles = end_ + (steady_tiles_ <= 0 ? 0 : left * steady_cycles_ / steady_tiles_);
  return r;
}

}  // namespace

TileWalk walk_tiles(const Case& c, const KernelPlan& plan, const DeviceSpec& device, int ctas_per_sm,
                    const TileWalkOptions& options) {
  check_walk_options(options, plan, device);
  const auto walk = [&](std::uint64_t launch) { return Walk(c, plan, device, ctas_per_sm, options, launch).run(); };
  TileWalk mean = walk(0);
  if (options.l1_serves == 0 || mean.key_tiles == 0) return mean;
  // of the mean of so many key tiles' launches bytes at the SM deviate by less than counts of one launch do
  constexpr double tiles = 150'000, most = 8;
  const double launches = std::floor(std::clamp(tiles / static_cast<double>(mean.key_tiles), 1.0, most));
  std::vector<TileWalk> others;
  for (std::uint64_t launch = 1; static_cast<double>(launch) < launches; ++launch) others.push_back(walk(launch));
  const auto take_mean = [&](auto figure) {
    for (const TileWalk& other : others) figure(mean) += figure(other);
    figure(mean) /= launches;
  };
  constexpr double TileWalk::*by_chance[] = {
      &TileWalk::dram_read_bytes, &TileWalk::dram_write_bytes, &TileWalk::dirty_bytes_left,  &TileWalk::together,
      &TileWalk::l1_served,       &TileWalk::l2_read_bytes,    &TileWalk::l2_crossing_bytes, &TileWalk::in_part_bytes,
      &TileWalk::cycles,          &TileWalk::busy_fraction,    &TileWalk::resident_ctas};
  for (const auto member : by_chance) take_mean([&](auto& of) -> auto& { return of.*member; });
  for (std::size_t n = 0; n < mean.shared.size(); ++n) take_mean([&](auto& of) -> auto& { return of.shared.at(n); });
  return mean;
}

}  // namespace attest
