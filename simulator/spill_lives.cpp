#include "spill_lives.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "event_queue.h"
#include "l1_cache.h"
#include "noise.h"
#include "warp_paces.h"

namespace attest {
namespace {

using Access = SpillAccess::Kind;
using Step = SpillStep::Kind;

// Key tiles that each of an SM's slots goes through on average at least: twice as many move SM reads of the forced
// spill's calls by .002 to .005, for a fifth more of a prediction's time.
constexpr std::size_t sampled_tiles = 64;

/// From a load that misses to its word beside what an SM's warps store and load meanwhile: by CTAs of four warps
/// (word_latency in docs/results/h200-sm.md, less what its clock takes).
double miss_cycles(std::size_t ctas) { return l1_miss_cycles + (ctas < 2 ? 14 : 49); }

/// An access of a step; its last one is none and ends it. Times are cycles of a warp alone from the step's begin.
struct Item {
  double at = 0, waited = 0;
  Access kind = Access::call;
  int word = 0;
  int index = -1;  // of its trace's accesses; -1: of where O is rescaled
};
using Items = std::vector<Item>;

/// Of a turn, with what a branch does on top of it.
Items items_of(const SpillTrace& turn, const SpillTrace& branch) {
  Items items;
  const auto cycle = [](int at) { return static_cast<double>(at); };
  for (std::size_t i = 0; i < turn.accesses.size(); ++i)
    if (const SpillAccess& a = turn.accesses[i]; a.kind != Access::call)
      items.push_back({cycle(branch.later(a.at)), cycle(branch.later(a.waited)), a.kind, a.word, static_cast<int>(i)});
  for (const SpillAccess& a : branch.accesses)
    items.push_back({cycle(branch.place + a.at), cycle(branch.place + a.waited), a.kind, a.word});
  std::ranges::stable_sort(items, {}, &Item::at);
  items.push_back({.at = cycle(turn.cycles + branch.cycles)});
  return items;
}

/// Of what stands around key tiles, evenly over its time; loads are waited for at its end.
Items items_around(const SpillTrace& trace, double cycles) {
  Items items;
  const double each = cycles / static_cast<double>(std::max<std::size_t>(trace.accesses.size(), 1));
  for (std::size_t i = 0; i < trace.accesses.size(); ++i) {
    const SpillAccess& a = trace.accesses[i];
    items.push_back({(static_cast<double>(i) + 0.5) * each, cycles, a.kind, a.word, static_cast<int>(i)});
  }
  items.push_back({.at = cycles});
  return items;
}

/// Of steps of a kind, as many as were gone through.
struct Counted {
  std::vector<double> missed;  // by access
  double times = 0, waits = 0;
  void add(const std::vector<bool>& of_warp, double of_waits, double stands_for) {
    missed.resize(of_warp.size());
    for (std::size_t i = 0; i < of_warp.size(); ++i) missed[i] += of_warp[i] ? stands_for : 0;
    times += stands_for, waits += stands_for * of_waits;
  }
  void operator+=(const Counted& other) {
    missed.resize(std::max(missed.size(), other.missed.size()));
    for (std::size_t i = 0; i < other.missed.size(); ++i) missed[i] += other.missed[i];
    times += other.times, waits += other.waits;
  }
};

struct Totals {
  std::array<Counted, 4> of;  // by SpillStep::Kind
  double rescale_missed = 0, rescale_loads = 0;
  void operator+=(const Totals& other) {
    for (std::size_t kind = 0; kind < of.size(); ++kind) of[kind] += other.of[kind];
    rescale_missed += other.rescale_missed, rescale_loads += other.rescale_loads;
  }
};

/// Of the warps that were the last of their CTA in a key tile: what they did without waiting, and that; both in cycles
/// of a warp alone.
struct LastWarps {
  double work = 0, waits = 0, tiles = 0;
};

class Sm {
 public:
  Sm(const SpillTraces& traces, const SpillingSm& sm, int warps, int lines, const FramePlaces& places,
     const SpillCycles& times, int words, Noise& noise, LastWarps& last, Totals& totals)
      : traces_(traces),
        slots_of_(sm.slots),
        times_(times),
        start_(items_around(traces.begin, times.around)),
        finish_(items_around(traces.end, times.around)),
        masked_{items_of(traces.masked, {}), items_of(traces.masked, traces.masked_rescale)},
        whole_{items_of(traces.whole, {}), items_of(traces.whole, traces.whole_rescale)},
        frames_(places, sm.sm, words, static_cast<int>(sm.slots.size()) * warps),
        cache_(lines, frames_.rows()),
        noise_(noise),
        last_(last),
        totals_(totals),
        takes_(miss_cycles(sm.slots.size())),
        warps_(static_cast<std::size_t>(warps)),
        events_(sm.slots.size() * warps_) {
    for (std::size_t slot = 0; slot < sm.slots.size(); ++slot) slots_.emplace_back(warps_);
    for (std::size_t slot = 0; slot < sm.slots.size(); ++slot) begin(slot, static_cast<double>(slot) * times.between);
    while (!done_) next();
  }

 private:
  struct Load {
    double arrives, waited;
  };
  struct Warp {
    const Items* items = nullptr;
    std::size_t at = 0;
    double pace = 1, late = 0;
    double work = 0;  // cycles of its step, at its own pace alone
    std::vector<Load> on_their_way;
    std::vector<bool> missed;  // of its step's accesses
    int rescale_missed = 0, rescale_loads = 0;
  };
  struct Slot {
    explicit Slot(std::size_t n) : warps(n), paces(n) {}
    std::vector<Warp> warps;
    WarpPaces paces;
    std::size_t life = 0, step = 0, busy = 0;  // busy: warps that have yet to end the step
    double begun = 0;
    bool runs_whole = false, runs_masked = false;  // the step before was such a key tile
    Totals of_life;
  };

  static bool is_tile(Step kind) { return kind == Step::masked || kind == Step::whole; }
  const SpillStep& step_of(std::size_t slot) const { return slots_of_[slot][slots_[slot].life][slots_[slot].step]; }
  const Items& items_of_step(const SpillStep& step, std::size_t warp) const {
    const bool rescales = (step.rescaling >> warp & 1) != 0;
    switch (step.kind) {
      case Step::start:
        return start_;
      case Step::masked:
        return masked_[rescales ? 1 : 0];
      case Step::whole:
        return whole_[rescales ? 1 : 0];
      default:
        return finish_;
    }
  }
  const SpillTrace& trace_of(Step kind) const {
    return kind == Step::start    ? traces_.begin
           : kind == Step::masked ? traces_.masked
           : kind == Step::whole  ? traces_.whole
                                  : traces_.end;
  }
  /// How much longer than alone warps take for what they do in a key tile without waiting.
  double stretch(double alone) const {
    if (times_.key_tile == 0) return 1;
    const double stretch = last_.tiles == 0 ? times_.key_tile / std::max(1.0, alone)
                                            : (times_.key_tile * last_.tiles - last_.waits) / last_.work;
    return std::max(1.0, stretch);
  }
  void begin(std::size_t number, double now) {
    Slot& slot = slots_[number];
    const SpillStep& step = step_of(number);
    const bool whole = step.kind == Step::whole, masked = step.kind == Step::masked;
    slot.begun = now, slot.busy = slot.warps.size();
    if (is_tile(step.kind)) slot.paces.draw(noise_);
    for (std::size_t i = 0; i < slot.warps.size(); ++i) {
      Warp& warp = slot.warps[i];
      warp = {};
      warp.items = &items_of_step(step, i);
      const double alone = warp.items->back().at, pace = is_tile(step.kind) ? slot.paces.of(i) : 1;
      warp.work = pace * alone;
      warp.pace = is_tile(step.kind) ? pace * stretch(alone) : 1;
      warp.missed.resize(trace_of(step.kind).accesses.size());
      const auto store_all = [&](const SpillTrace& of) {
        for (const SpillAccess& a : of.accesses) cache_.store(line(number, i, a.word));
      };
      if ((whole && !slot.runs_whole) || (masked && !slot.runs_masked)) store_all(traces_.run);
      if (whole && !slot.runs_whole) store_all(traces_.enter);
      events_.set(frame_of(number, i), time_of(slot, warp));
    }
    slot.runs_whole = whole, slot.runs_masked = masked;
  }
  /// Of a warp's next access, behind what it has to wait for until then.
  static double time_of(const Slot& slot, Warp& warp) {
    const double at = (*warp.items)[warp.at].at, end = warp.items->back().at;
    std::erase_if(warp.on_their_way, [&](const Load& load) {
      const double waited = std::min(load.waited, end);
      if (waited > at) return false;
      warp.late = std::max(warp.late, load.arrives - (slot.begun + warp.pace * waited));
      return true;
    });
    return slot.begun + warp.pace * at + warp.late;
  }
  int line(std::size_t slot, std::size_t warp, int word) const { return frames_.line(frame_of(slot, warp), word); }
  int frame_of(std::size_t slot, std::size_t warp) const { return static_cast<int>(slot * warps_ + warp); }
  void next() {
    const int frame = events_.next();
    const double now = events_.time(frame);
    const std::size_t number = static_cast<std::size_t>(frame) / warps_,
                      of_slot = static_cast<std::size_t>(frame) % warps_;
    cache_.advance(now);
    Slot& slot = slots_[number];
    Warp& warp = slot.warps[of_slot];
    if (warp.at + 1 == warp.items->size()) {
      events_.remove(frame);
      return end(number, warp, now);
    }
    const Item& item = (*warp.items)[warp.at++];
    if (item.kind == Access::store) {
      cache_.store(line(number, of_slot, item.word));
    } else {
      const bool held = cache_.load(line(number, of_slot, item.word), item.kind == Access::last_load, takes_);
      if (!held) warp.on_their_way.push_back({now + takes_, item.waited});
      if (item.index < 0)
        ++warp.rescale_loads, warp.rescale_missed += held ? 0 : 1;
      else
        warp.missed[static_cast<std::size_t>(item.index)] = !held;
    }
    events_.set(frame, time_of(slot, warp));
  }
  void end(std::size_t number, const Warp& warp, double now) {
    Slot& slot = slots_[number];
    const SpillStep& step = step_of(number);
    const double waits = is_tile(step.kind) ? waits_for(trace_of(step.kind), warp.missed) : 0;
    slot.of_life.of[static_cast<std::size_t>(step.kind)].add(warp.missed, waits, step.stands_for);
    slot.of_life.rescale_missed += step.stands_for * warp.rescale_missed;
    slot.of_life.rescale_loads += step.stands_for * warp.rescale_loads;
    if (--slot.busy > 0) return;
    if (is_tile(step.kind)) ++tiles_, ++last_.tiles, last_.work += warp.work, last_.waits += warp.late;
    if (++slot.step < slots_of_[number][slot.life].size()) return begin(number, now);
    slot.step = 0, ++slot.life;
    totals_ += std::exchange(slot.of_life, {});
    // what the others do from then on they do with fewer beside them
    const bool out_of_ctas = slot.life == slots_of_[number].size();
    if (out_of_ctas)
      for (Slot& each : slots_) totals_ += each.of_life;
    done_ = out_of_ctas || tiles_ >= sampled_tiles * slots_.size();
    if (!done_) begin(number, now);
  }

  const SpillTraces& traces_;
  const std::vector<std::vector<SpillLife>>& slots_of_;
  const SpillCycles& times_;
  Items start_, finish_;
  std::array<Items, 2> masked_, whole_;  // where O is not rescaled, and is
  Frames frames_;
  L1Cache cache_;
  Noise& noise_;
  LastWarps& last_;
  Totals& totals_;
  double takes_;
  std::size_t warps_;
  std::vector<Slot> slots_;
  EventQueue events_;  // of each warp, by frame
  std::size_t tiles_ = 0;
  bool done_ = false;
};

SpillMisses misses_of(const SpillTrace& trace, const Counted& counted) {
  SpillMisses of;
  of.of_access.resize(trace.accesses.size());
  if (counted.times == 0) return of;
  for (std::size_t i = 0; i < of.of_access.size(); ++i) of.of_access[i] = counted.missed[i] / counted.times;
  of.waits = counted.waits / counted.times;
  of.part = part_missing(trace, of.of_access);
  return of;
}

}  // namespace

SpillLives spill_lives(const SpillTraces& traces, std::span<const SpillingSm> sms, int warps, int lines,
                       const FramePlaces& places, const SpillCycles& times) {
  int words = 0;
  for (const SpillTrace* of : {&traces.begin, &traces.run, &traces.enter, &traces.masked, &traces.masked_rescale,
                               &traces.whole, &traces.whole_rescale, &traces.end})
    for (const SpillAccess& a : of->accesses) words = std::max(words, a.word + 1);
  Totals totals;
  LastWarps last;
  Noise noise;
  for (const SpillingSm& sm : sms) Sm(traces, sm, warps, lines, places, times, words, noise, last, totals);
  SpillLives of{misses_of(traces.masked, totals.of[static_cast<std::size_t>(Step::masked)]),
                misses_of(traces.whole, totals.of[static_cast<std::size_t>(Step::whole)])};
  if (totals.rescale_loads > 0) of.rescale = totals.rescale_missed / totals.rescale_loads;
  of.finish = misses_of(traces.end, totals.of[static_cast<std::size_t>(Step::finish)]).part;
  return of;
}

}  // namespace attest
