// When CTAs use their local memory within the key tiles of an event.
#pragma once
#include <functional>
#include <queue>
#include <tuple>
#include <vector>

namespace attest {

/// Of each slot, the uses after the first of the event that it is in, evenly spread over it.
class SpillsToCome {
 public:
  /// `uses` of an event of slot `slot` that begins `now` and takes `cycles`; the first is the caller's.
  void add(int slot, double now, double cycles, int uses) {
    const double each = cycles / uses;
    if (uses > 1) uses_.push({now + each, each, slot, 1, uses});
  }
  /// Calls spill(slot, number of the use) of those that are due by `now`, in the order of their times.
  template <class Spill>
  void until(double now, Spill&& spill) {
    while (!uses_.empty() && uses_.top().at <= now) {
      Use next = uses_.top();
      uses_.pop();
      spill(next.slot, next.number);
      next.at += next.each;
      if (++next.number < next.uses) uses_.push(next);
    }
  }

 private:
  struct Use {
    double at, each;  // when, and cycles to the next
    int slot, number, uses;
    bool operator>(const Use& other) const { return std::tie(at, slot) > std::tie(other.at, other.slot); }
  };
  std::priority_queue<Use, std::vector<Use>, std::greater<>> uses_;
};

}  // namespace attest
