#include "l1_turn.h"

#include <algorithm>
#include <cmath>

#include "address.h"
#include "attest/simulator/step_time.h"
#include "copy_time.h"

namespace attest {
namespace {

constexpr int argument_lines = 4;  // of ForwardParams: the tensor's, the page table, granules, slots

/// In a CTA's turn; its warps go together.
struct Event {
  enum class Kind : std::uint8_t { call, copy, spill };
  double at;
  Kind kind;
  int index;  // of the lines that a warp copies, or of the trace's accesses
  int cta = 0;
};

/// Of a row that begins anywhere in a line, in steps of what a lane copies.
struct CopiedRow {
  double lines = 0, twice = 0;  // that two granules of it share: they are read twice
};
CopiedRow copied_row(const KernelPlan& plan, Operand x) {
  const int bytes = plan.copy_bytes(x), row_bytes = plan.valid_columns(x) * plan.bytes(x),
            granule = plan.copy_lanes(x) * bytes, meetings = (row_bytes - 1) / granule;
  const double in_a_line = 1 - bytes / double{LineSampler::line_bytes};
  return {1 + (row_bytes - bytes) / double{LineSampler::line_bytes}, meetings * in_a_line};
}

/// A line that each of a CTA's warps reads in a call.
struct Copy {
  Operand x;
  CopiedRow row;
  int number, of_call;  // which of the call's lines
};

struct Turn {
  std::vector<Event> events;
  double cycles = 0;
  std::vector<Copy> copies;
  int words = 0;  // of a warp's frame
};

/// Calls take their time, which the trace leaves out, and spread their copies over it.
Turn turn_of(const KernelPlan& plan, const DeviceSpec& device, const SpillTrace& trace) {
  Turn turn;
  const auto call = [&](double at, Operand x) {
    const double takes = copy_time(plan, device, x, false).cycles;
    turn.events.push_back({at + turn.cycles, Event::Kind::call, 0});
    const CopiedRow row = copied_row(plan, x);
    const int lines = plan.copy_bytes(x) == 16 ? 0 : static_cast<int>(row.lines * plan.rows(x) / plan.num_warps);
    for (int i = 0; i < lines; ++i) {
      turn.events.push_back(
          {at + turn.cycles + takes * (i + 1) / (lines + 1), Event::Kind::copy, static_cast<int>(turn.copies.size())});
      turn.copies.push_back({x, row, i, lines});
    }
    turn.cycles += takes;
  };
  if (trace.accesses.empty())
    for (const Operand x : {Operand::k, Operand::v}) call(0, x);
  Operand next = Operand::k;
  for (std::size_t i = 0; i < trace.accesses.size(); ++i) {
    const SpillAccess& a = trace.accesses[i];
    if (a.kind == SpillAccess::Kind::call) {
      call(a.at, next);
      next = next == Operand::k ? Operand::v : Operand::k;
    } else {
      turn.events.push_back({a.at + turn.cycles, Event::Kind::spill, static_cast<int>(i)});
      turn.words = std::max(turn.words, a.word + 1);
    }
  }
  turn.cycles += trace.cycles;
  return turn;
}

/// An SM's L1 while its CTAs go through turns.
class Sm {
 public:
  Sm(const KernelPlan& plan, const Turn& turn, const SpillTrace& trace, const RowStrides& strides, int turns, int lines,
     int ctas, bool together, int placement)
      : warps_(plan.num_warps),
        ctas_(ctas),
        turns_in_all_(turns + ctas),
        together_(together),
        turn_(turn),
        trace_(trace),
        frames_(turn.words, ctas * plan.num_warps),
        cache_(lines, rows(strides, placement)),
        arrives_(argument_lines, -HUGE_VAL) {}

  void call(double now) {
    for (std::size_t line = 0; line < argument_lines; ++line) {
      const bool held = cache_.load(frames_.lines() + static_cast<int>(line), false);
      if (!held && now >= arrives_[line]) arrives_[line] = now + l1_miss_cycles;
      ++asked_;
      waited_for_ += std::max(0.0, arrives_[line] - now) / l1_miss_cycles;
    }
  }
  void copy(const Event& e, int turn) {
    for (int warp = 0; warp < warps_; ++warp) {
      const CopiedLine& line = copied_.at(place(together_ ? 0 : e.cta, turn, e.index, warp));
      ++copies_;
      found_ += cache_.load(line.line, false) ? 1 : 0;
      if (line.twice) cache_.load(line.line, false);
    }
  }
  void spill(const Event& e) {
    const SpillAccess& a = trace_.accesses[static_cast<std::size_t>(e.index)];
    for (int warp = e.cta * warps_; warp < (e.cta + 1) * warps_; ++warp) {
      const int line = frames_.line(warp, a.word);
      if (a.kind == SpillAccess::Kind::store) {
        cache_.store(line);
        continue;
      }
      const bool held = cache_.load(line, a.kind == SpillAccess::Kind::last_load);
      missed_[static_cast<std::size_t>(warp)][static_cast<std::size_t>(e.index)] = !held;
      ++loads_;
      missing_ += held ? 0 : 1;
    }
  }
  void begin_turn() {
    missed_.assign(static_cast<std::size_t>(ctas_) * static_cast<std::size_t>(warps_),
                   std::vector<bool>(trace_.accesses.size()));
  }
  void end_turn() {
    for (const std::vector<bool>& of_warp : missed_) waits_ += waits_for(trace_, of_warp), ++turns_;
  }
  void count_anew() { asked_ = waited_for_ = copies_ = found_ = loads_ = missing_ = turns_ = 0, waits_ = 0; }
  L1Turn counted() const {
    const auto part = [](double n, double of) { return of == 0 ? 0 : n / of; };
    return {part(waited_for_, asked_), part(missing_, loads_), part(waits_, turns_),
            part(found_ * ctas_, copies_ * (ctas_ - 1))};
  }

 private:
  struct CopiedLine {
    int line;
    bool twice;
  };
  std::size_t place(int head, int turn, int copy, int warp) const {
    const auto at = [](int i) { return static_cast<std::size_t>(i); };
    return ((at(head) * at(turns_in_all_) + at(turn)) * turn_.copies.size() + at(copy)) * at(warps_) + at(warp);
  }
  /// Of frames, of arguments, and of what each head's copies pass through, in the order of place().
  std::vector<std::uint32_t> rows(const RowStrides& strides, int placement) {
    std::vector<std::uint32_t> all = frames_.rows();
    const auto anywhere = [placement](int object) {
      return row_at_random(static_cast<std::uint64_t>(placement) << 32 | static_cast<std::uint64_t>(object));
    };
    all.push_back(anywhere(0));
    for (int head = 0; head < (together_ ? 1 : ctas_); ++head)
      for (int turn = 0; turn < turns_in_all_; ++turn)
        for (const Copy& copy : turn_.copies)
          for (int warp = 0; warp < warps_; ++warp) {
            const bool key = copy.x == Operand::k;
            const std::int64_t number = (std::int64_t{turn} * copy.of_call + copy.number) * warps_ + warp;
            const auto row = static_cast<std::int64_t>(static_cast<double>(number) / copy.row.lines);
            const double twice = copy.row.twice / copy.row.lines, n = static_cast<double>(number);
            const std::int64_t line = std::int64_t{anywhere(2 * head + (key ? 1 : 2))} * L1Cache::lines_a_row +
                                      row * (key ? strides.k : strides.v) / LineSampler::line_bytes + number -
                                      static_cast<std::int64_t>(std::ceil(static_cast<double>(row) * copy.row.lines));
            copied_.push_back({static_cast<int>(static_cast<std::int64_t>(all.size()) * L1Cache::lines_a_row +
                                                line % L1Cache::lines_a_row),
                               std::floor((n + 1) * twice) > std::floor(n * twice)});
            all.push_back(static_cast<std::uint32_t>(line / L1Cache::lines_a_row));
          }
    return all;
  }

  int warps_, ctas_, turns_in_all_;
  bool together_;
  const Turn& turn_;
  const SpillTrace& trace_;
  Frames frames_;
  std::vector<CopiedLine> copied_;
  L1Cache cache_;
  std::vector<double> arrives_;
  std::vector<std::vector<bool>> missed_;
  double asked_ = 0, waited_for_ = 0, copies_ = 0, found_ = 0, loads_ = 0, missing_ = 0, turns_ = 0, waits_ = 0;
};

}  // namespace

L1Turn l1_turn(const KernelPlan& plan, const DeviceSpec& device, const SpillTrace& trace, const RowStrides& strides,
               int lines, int ctas, bool together, bool in_step) {
  constexpr int distances = 16, turns = 10, settled = 4;
  const Turn turn = turn_of(plan, device, trace);
  if (turn.cycles == 0) return {};  // nothing of it passes through L1
  L1Turn mean;
  for (int d = 0; d < distances; ++d) {
    // of CTAs in step one is a key tile's deviation behind
    const double behind = in_step ? step_deviation(plan, device, ctas) : (2 * d + 1) / (2.0 * distances);
    struct Placed {
      double at;
      int turns_behind;
      Event event;
    };
    std::vector<Placed> events;
    for (int cta = 0; cta < ctas; ++cta)
      for (Event e : turn.events) {
        e.cta = cta;
        const double at = e.at / turn.cycles + cta * behind;
        events.push_back({(at - std::floor(at)) * turn.cycles, static_cast<int>(at), e});
      }
    std::stable_sort(events.begin(), events.end(), [](const Placed& a, const Placed& b) { return a.at < b.at; });
    Sm sm(plan, turn, trace, strides, turns, lines, ctas, together, d);
    for (int t = 0; t < turns; ++t) {
      if (t == settled) sm.count_anew();
      sm.begin_turn();
      for (const auto& [at, turns_behind, e] : events) {
        if (e.kind == Event::Kind::call) sm.call(t * turn.cycles + at);
        if (e.kind == Event::Kind::copy) sm.copy(e, ctas + t - turns_behind);
        if (e.kind == Event::Kind::spill) sm.spill(e);
      }
      sm.end_turn();
    }
    const L1Turn of = sm.counted();
    mean.arguments += of.arguments / distances, mean.loads += of.loads / distances;
    mean.waits += of.waits / distances, mean.copies += of.copies / distances;
  }
  return mean;
}

}  // namespace attest
