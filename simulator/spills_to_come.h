// When CTAs use the words of their local memory.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "event_queue.h"

namespace attest {

struct SpilledLine;

/// Of each slot, the uses of the event that it is in: an event ends when all of its uses have come.
class SpillsToCome {
 public:
  struct Use {
    double at;
    const SpilledLine* line;
    std::size_t number = 0;  // in its event
  };

  explicit SpillsToCome(std::size_t slots) : next_(slots), of_slots_(slots) {}

  /// In any order; of equal times they come as they are given. Throws std::logic_error where some of that slot's
  /// before have not come.
  void set(int slot, std::span<const Use> event) {
    auto& [uses, done] = of_slots_[static_cast<std::size_t>(slot)];
    if (done < uses.size()) throw std::logic_error("an event's uses of local memory follow its end");
    if (event.empty()) return;
    uses.assign(event.begin(), event.end()), done = 0;
    for (std::size_t i = 0; i < uses.size(); ++i) uses[i].number = i;
    std::ranges::sort(uses, {}, [](const Use& use) { return std::pair(use.at, use.number); });
    next_.set(slot, uses.front().at);
  }
  /// Calls spill(slot, line) of those that are due by `now`, in the order of their times, and of equal
  /// times of their slots.
  template <class Spill>
  void until(double now, Spill&& spill) {
    while (!next_.empty()) {
      const int slot = next_.next();
      if (next_.time(slot) > now) return;
      auto& [uses, done] = of_slots_[static_cast<std::size_t>(slot)];
      spill(slot, *uses[done].line);
      if (++done < uses.size())
        next_.set(slot, uses[done].at);
      else
        next_.remove(slot);
    }
  }

 private:
  struct OfSlot {
    std::vector<Use> uses;
    std::size_t done = 0;
  };
  EventQueue next_;
  std::vector<OfSlot> of_slots_;
};

}  // namespace attest
