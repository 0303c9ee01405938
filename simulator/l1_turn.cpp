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

struct Turn {
  std::vector<Event> events;
  double cycles = 0;
  int copies = 0, words = 0;          // lines that a warp copies; of its frame
  double lines_a_row = 1, twice = 0;  // of what is copied; of the lines
};

/// Calls take their time, which the trace leaves out, and spread their copies over it.
Turn turn_of(const KernelPlan& plan, const DeviceSpec& device, const SpillTrace& trace) {
  Turn turn;
  const auto call = [&](double at, Operand x) {
    const double takes = copy_time(plan, device, x, false).cycles;
    turn.events.push_back({at + turn.cycles, Event::Kind::call, 0});
    const CopiedRow row = copied_row(plan, x);
    const int lines = plan.copy_bytes(x) == 16 ? 0 : static_cast<int>(row.lines * plan.rows(x) / plan.num_warps);
    turn.lines_a_row = row.lines, turn.twice = row.twice / row.lines;
    for (int i = 1; i <= lines; ++i)
      turn.events.push_back({at + turn.cycles + takes * i / (lines + 1), Event::Kind::copy, turn.copies++});
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
  Sm(const KernelPlan& plan, const Turn& turn, const SpillTrace& trace, std::int64_t row_stride_bytes, int lines,
     int ctas, bool together)
      : warps_(plan.num_warps),
        ctas_(ctas),
        together_(together),
        turn_(turn),
        trace_(trace),
        passing_(std::max(1, 16 * lines)),
        frame_((turn.words + L1Cache::lines_a_row - 1) / L1Cache::lines_a_row * L1Cache::lines_a_row),
        first_argument_(ctas * warps_ * frame_),
        cache_(lines, rows(row_stride_bytes)),
        arrives_(argument_lines, -HUGE_VAL) {}

  void call(double now) {
    for (std::size_t line = 0; line < argument_lines; ++line) {
      const bool held = cache_.load(first_argument_ + static_cast<int>(line), false);
      if (!held && now >= arrives_[line]) arrives_[line] = now + l1_miss_cycles;
      ++asked_;
      waited_for_ += std::max(0.0, arrives_[line] - now) / l1_miss_cycles;
    }
  }
  void copy(const Event& e, int turn) {
    for (int warp = 0; warp < warps_; ++warp) {
      const int number = (turn * turn_.copies + e.index) * warps_ + warp;
      const int line = copied_.at(static_cast<std::size_t>(together_ ? 0 : e.cta) * static_cast<std::size_t>(passing_) +
                                  static_cast<std::size_t>(number % passing_));
      ++copies_;
      found_ += cache_.load(line, false) ? 1 : 0;
      if (std::floor((number + 1) * turn_.twice) > std::floor(number * turn_.twice)) cache_.load(line, false);
    }
  }
  void spill(const Event& e) {
    const SpillAccess& a = trace_.accesses[static_cast<std::size_t>(e.index)];
    for (int warp = e.cta * warps_; warp < (e.cta + 1) * warps_; ++warp) {
      const int line = warp * frame_ + a.word;
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
  /// Of frames, of arguments, and of what each head's copies pass through.
  std::vector<std::uint32_t> rows(std::int64_t row_stride_bytes) {
    std::vector<std::uint32_t> all = rows_of_frames(ctas_ * warps_, frame_ / L1Cache::lines_a_row);
    all.push_back(row_at_random(0));
    for (int head = 0; head < (together_ ? 1 : ctas_); ++head) {
      const std::int64_t first =
          std::int64_t{row_at_random(1 + static_cast<std::uint64_t>(head))} * L1Cache::lines_a_row;
      for (int i = 0; i < passing_; ++i) {
        const auto row = static_cast<std::int64_t>(i / turn_.lines_a_row);
        const std::int64_t line = first + row * row_stride_bytes / LineSampler::line_bytes + i -
                                  static_cast<std::int64_t>(std::ceil(static_cast<double>(row) * turn_.lines_a_row));
        copied_.push_back(static_cast<int>(static_cast<std::int64_t>(all.size()) * L1Cache::lines_a_row +
                                           line % L1Cache::lines_a_row));
        all.push_back(static_cast<std::uint32_t>(line / L1Cache::lines_a_row));
      }
    }
    return all;
  }

  int warps_, ctas_;
  bool together_;
  const Turn& turn_;
  const SpillTrace& trace_;
  int passing_, frame_, first_argument_;  // lines: of a head's copies, which come again; of a warp's words
  std::vector<int> copied_;               // lines, head after head
  L1Cache cache_;
  std::vector<double> arrives_;
  std::vector<std::vector<bool>> missed_;
  double asked_ = 0, waited_for_ = 0, copies_ = 0, found_ = 0, loads_ = 0, missing_ = 0, turns_ = 0, waits_ = 0;
};

}  // namespace

L1Turn l1_turn(const KernelPlan& plan, const DeviceSpec& device, const SpillTrace& trace, std::int64_t row_stride_bytes,
               int ctas, bool together, bool in_step) {
  constexpr int distances = 4, turns = 10, settled = 4;
  const Turn turn = turn_of(plan, device, trace);
  if (turn.cycles == 0) return {};  // nothing of it passes through L1
  const int lines = l1_lines(plan.smem_bytes(), ctas, device);
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
    Sm sm(plan, turn, trace, row_stride_bytes, lines, ctas, together);
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
