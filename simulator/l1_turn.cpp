#include "l1_turn.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "copy_time.h"

namespace attest {
namespace {

constexpr int turns_gone_through = 10, turns_to_settle = 4;  // of each SM, of which the first are not counted
constexpr int argument_lines = 4;  // of ForwardParams: the tensor's, the page table, granules, slots

/// In a CTA's turn; its warps go together.
struct Event {
  enum class Kind : std::uint8_t { call, copy, spill };
  double at;
  Kind kind;
  int index;  // of the turn's copies, or of the trace's accesses
  int cta = 0;
};

/// An instruction of each warp of a CTA: of so many rows of a tile, from `row` on, the bytes from `byte` on.
struct Copy {
  Operand x;
  int row, byte, bytes;
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
    std::vector<Copy> copies;
    const int row_bytes = plan.valid_columns(x) * plan.bytes(x), panel = plan.copy_lanes(x) * plan.copy_bytes(x);
    for (int row = 0; row < plan.rows(x) && plan.copy_bytes(x) != 16; row += plan.copy_rows(x))
      for (int byte = 0; byte < row_bytes; byte += panel)
        copies.push_back({x, row, byte, std::min(panel, row_bytes - byte)});
    for (const Copy& copy : copies) {
      const double part = static_cast<double>(&copy - copies.data() + 1) / static_cast<double>(copies.size() + 1);
      turn.events.push_back({at + turn.cycles + takes * part, Event::Kind::copy, static_cast<int>(turn.copies.size())});
      turn.copies.push_back(copy);
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
  /// `keys`: of each of its CTAs.
  Sm(const KernelPlan& plan, const Turn& turn, const SpillTrace& trace, std::span<const KeysAt> keys, int turns,
     int lines, const FramePlaces& places, int placement)
      : warps_(plan.num_warps),
        ctas_(static_cast<int>(keys.size())),
        turns_in_all_(turns + ctas_),
        turn_(turn),
        trace_(trace),
        frames_(places, placement * SampledSms::apart, turn.words, ctas_ * plan.num_warps),
        cache_(lines, rows(plan, keys, placement)),
        arrives_(argument_lines, -HUGE_VAL),
        missing_(trace.accesses.size()) {}

  void advance(double now) { cache_.advance(now); }
  void call(double now) {
    for (std::size_t line = 0; line < argument_lines; ++line) {
      const bool held = cache_.load(arguments_.at(line), false, l1_miss_cycles);
      if (!held && now >= arrives_[line]) arrives_[line] = now + l1_miss_cycles;
      ++asked_;
      waited_for_ += std::max(0.0, arrives_[line] - now) / l1_miss_cycles;
    }
  }
  void copy(const Event& e, int turn) {
    for (const int line : copied_.at(place(e.cta, turn, e.index))) {
      const bool held = cache_.load(line, false, l1_miss_cycles);
      int& seen = seen_[static_cast<std::size_t>(e.cta)][static_cast<std::size_t>(line)];
      if (seen == turn) continue;  // by this CTA
      seen = turn;
      ++copies_;
      found_ += held ? 1 : 0;
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
      // beside what calls take, others hardly wait for words: they go on meanwhile
      const bool held = cache_.load(line, a.kind == SpillAccess::Kind::last_load, l1_miss_cycles);
      missed_[static_cast<std::size_t>(warp)][static_cast<std::size_t>(e.index)] = !held;
    }
  }
  void begin_turn() {
    missed_.assign(static_cast<std::size_t>(ctas_) * static_cast<std::size_t>(warps_),
                   std::vector<bool>(trace_.accesses.size()));
  }
  void end_turn() {
    for (const std::vector<bool>& of_warp : missed_) {
      waits_ += waits_for(trace_, of_warp), ++turns_;
      for (std::size_t i = 0; i < of_warp.size(); ++i) missing_[i] += of_warp[i] ? 1 : 0;
    }
  }
  void count_anew() {
    asked_ = waited_for_ = copies_ = found_ = turns_ = waits_ = 0;
    missing_.assign(trace_.accesses.size(), 0);
  }
  L1Turn counted() const {
    const auto part = [](double n, double of) { return of == 0 ? 0 : n / of; };
    L1Turn turn;
    turn.spilled.of_access = missing_;
    turn.spilled.waits = part(waits_, turns_);
    turn.arguments = part(waited_for_, asked_);
    turn.copies = part(found_ * ctas_, copies_ * (ctas_ - 1));
    for (double& of_access : turn.spilled.of_access) of_access = part(of_access, turns_);
    return turn;
  }

 private:
  std::size_t place(int cta, int turn, int copy) const {
    const auto at = [](int i) { return static_cast<std::size_t>(i); };
    return (at(cta) * at(turns_in_all_) + at(turn)) * turn_.copies.size() + at(copy);
  }
  /// Of frames, of arguments, and of what each CTA's copies pass through, which are noted in the order of place().
  std::vector<std::uint32_t> rows(const KernelPlan& plan, std::span<const KeysAt> keys, int placement) {
    const auto anywhere = [placement](int object) {
      return buffer_at_random(static_cast<std::uint64_t>(placement) << 32 | static_cast<std::uint64_t>(object));
    };
    AddressedLines addressed(frames_.rows());
    addressed.for_lines(anywhere(1), argument_lines * L1Cache::line_bytes,
                        [&](int line) { arguments_.push_back(line); });
    for (const KeysAt& at : keys)
      for (int turn = 0; turn < turns_in_all_; ++turn)
        for (const Copy& copy : turn_.copies) {
          const bool key = copy.x == Operand::k;
          const std::int64_t stride = key ? at.k_stride : at.v_stride;
          std::vector<int>& lines = copied_.emplace_back();
          for (int row = copy.row; row < std::min(copy.row + plan.copy_rows(copy.x), plan.rows(copy.x)); ++row)
            addressed.for_lines(
                anywhere(0) + (key ? at.k : at.v) + copy.byte + (std::int64_t{turn} * plan.rows(copy.x) + row) * stride,
                copy.bytes, [&](int line) { lines.push_back(line); });
        }
    seen_.assign(keys.size(), std::vector<int>(addressed.rows().size() * L1Cache::lines_a_row, -1));
    return addressed.rows();
  }

  int warps_, ctas_, turns_in_all_;
  const Turn& turn_;
  const SpillTrace& trace_;
  Frames frames_;
  std::vector<int> arguments_;            // lines
  std::vector<std::vector<int>> copied_;  // likewise, in order
  std::vector<std::vector<int>> seen_;    // by a CTA: in which turn last
  L1Cache cache_;
  std::vector<double> arrives_;
  std::vector<std::vector<bool>> missed_;
  std::vector<double> missing_;  // loads, by access
  double asked_ = 0, waited_for_ = 0, copies_ = 0, found_ = 0, turns_ = 0, waits_ = 0;
};

}  // namespace

L1Turn l1_turn(const KernelPlan& plan, const DeviceSpec& device, const SpillTrace& trace, std::span<const KeysAt> keys,
               int lines, const FramePlaces& places, int ctas, const std::optional<InStepTimes>& in_step) {
  constexpr int distances = SampledSms::n;
  const Turn turn = turn_of(plan, device, trace);
  if (turn.cycles == 0) return {};  // nothing of it passes through L1
  L1Turn mean;
  mean.spilled.of_access.resize(trace.accesses.size());
  for (int d = 0; d < distances; ++d) {
    const double part = (d + 0.5) / distances, behind = in_step ? in_step->behind(part) : part;
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
    std::vector<KeysAt> of_sm;
    for (int cta = 0; cta < ctas; ++cta) of_sm.push_back(keys[static_cast<std::size_t>(d * ctas + cta) % keys.size()]);
    Sm sm(plan, turn, trace, of_sm, turns_gone_through, lines, places, d);
    for (int t = 0; t < turns_gone_through; ++t) {
      if (t == turns_to_settle) sm.count_anew();
      sm.begin_turn();
      for (const auto& [at, turns_behind, e] : events) {
        const double now = t * turn.cycles + at;
        sm.advance(now);
        if (e.kind == Event::Kind::call) sm.call(now);
        if (e.kind == Event::Kind::copy) sm.copy(e, ctas + t - turns_behind);
        if (e.kind == Event::Kind::spill) sm.spill(e);
      }
      sm.end_turn();
    }
    const L1Turn of = sm.counted();
    mean.arguments += of.arguments / distances, mean.copies += of.copies / distances;
    mean.spilled.waits += of.spilled.waits / distances;
    for (std::size_t i = 0; i < trace.accesses.size(); ++i)
      mean.spilled.of_access[i] += of.spilled.of_access[i] / distances;
  }
  mean.spilled.part = part_missing(trace, mean.spilled.of_access);
  return mean;
}

}  // namespace attest
