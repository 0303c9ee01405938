#include "shared_waits.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "event_queue.h"
#include "noise.h"

namespace attest {
namespace {

constexpr std::int64_t turns_a_slice = 4, of_operand = 2, most_waves = 6, most_slices = 64;

/// When what each turn of some rows asks for is in L2.
class Arrivals {
 public:
  Arrivals(std::int64_t rows, std::int64_t slices)
      : turns_(of_operand * slices), there_(static_cast<std::size_t>(rows * turns_), unasked) {}
  /// Of who asks first for it, it is there at `from_dram`.
  double of(std::int64_t row, std::int64_t turn, double from_dram) {
    double& there = there_[static_cast<std::size_t>(row * turns_ + turn)];
    if (there == unasked) there = from_dram;
    return there;
  }

 private:
  static constexpr double unasked = std::numeric_limits<double>::infinity();
  std::int64_t turns_;
  std::vector<double> there_;
};

}  // namespace

double wait_of_turn(const SharedTurns& s) {
  const std::int64_t ctas = std::min(s.ctas, most_waves * s.slots), slices = std::min(s.slices, most_slices);
  if (ctas * slices == 0) return 0;
  const std::int64_t rows = (ctas - 1) / s.across + 1, of_head = s.across * s.down;
  Arrivals a(rows, slices), b(((ctas - 1) / of_head + 1) * s.across, slices);
  struct Slot {
    std::int64_t cta = 0, turn = -1;  // -1: begins; beyond the last: ends
  };
  std::vector<Slot> slots(static_cast<std::size_t>(std::min(ctas, s.slots)));
  EventQueue events(slots.size());
  std::int64_t next = 0;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    slots[i].cta = next++;
    events.set(static_cast<int>(i), 0);
  }
  Noise noise;
  const double part = s.slice / turns_a_slice, deviation = 2 * s.slice_deviation;
  double waited = 0;
  while (!events.empty()) {
    const int i = events.next();
    const double now = events.time(i);
    Slot& slot = slots[static_cast<std::size_t>(i)];
    const std::int64_t turn = slot.turn++;
    if (turn < 0) {
      events.set(i, now + s.begin * (1 + s.slice_deviation * noise()));
    } else if (turn < turns_a_slice * slices) {
      const bool is_b = turn % turns_a_slice >= of_operand;
      const std::int64_t of_rows = turn / turns_a_slice * of_operand + turn % of_operand;
      double ready = now + s.l2;
      if (is_b ? s.b_in_dram : s.a_in_dram) {
        const double from_dram = ready + std::max(0.0, s.dram + s.dram_deviation * noise());
        const std::int64_t row = is_b ? slot.cta / of_head * s.across + slot.cta % s.across : slot.cta / s.across;
        ready = std::max(ready, (is_b ? b : a).of(row, of_rows, from_dram));
      }
      waited += ready - now;
      events.set(i, ready + part * (1 + deviation * noise()));
    } else if (next < ctas) {
      slot = {next++, -1};
      events.set(i, now + s.end * (1 + s.slice_deviation * noise()));
    } else {
      events.remove(i);
    }
  }
  return waited / static_cast<double>(ctas * slices * turns_a_slice);
}

}  // namespace attest
