// When each CTA slot has something to do next.
#pragma once
#include <bit>
#include <cstddef>
#include <limits>
#include <vector>

namespace attest {

/// One time a slot; the earliest comes first, of equal times the slot with the lower number. A tournament: a node holds
/// the winner of the two below it, so that another time for a slot is played once on each level.
class EventQueue {
 public:
  explicit EventQueue(std::size_t slots)
      : leaves_(std::bit_ceil(slots < 2 ? 2 : slots)),
        times_(leaves_, std::numeric_limits<double>::infinity()),
        winners_(leaves_) {
    for (std::size_t node = leaves_ - 1; node > 0; --node)
      winners_[node] = 2 * node >= leaves_ ? static_cast<int>(2 * node - leaves_) : winners_[2 * node];
  }
  bool empty() const {
    return times_[static_cast<std::size_t>(winners_[1])] == std::numeric_limits<double>::infinity();
  }
  int next() const { return winners_[1]; }
  double time(int slot) const { return times_[static_cast<std::size_t>(slot)]; }
  void set(int slot, double time) {
    times_[static_cast<std::size_t>(slot)] = time;
    int best = slot;
    double best_time = time;
    for (std::size_t node = leaves_ + static_cast<std::size_t>(slot); node > 1; node /= 2) {
      const std::size_t sibling = node ^ 1;
      const int other = sibling >= leaves_ ? static_cast<int>(sibling - leaves_) : winners_[sibling];
      const double other_time = times_[static_cast<std::size_t>(other)];
      // of equal times the left one, which has the lower numbers
      const bool loses = other_time < best_time || (other_time == best_time && other < best);
      best = loses ? other : best;
      best_time = loses ? other_time : best_time;
      winners_[node / 2] = best;
    }
  }
  void remove(int slot) { set(slot, std::numeric_limits<double>::infinity()); }

 private:
  std::size_t leaves_;
  std::vector<double> times_;
  std::vector<int> winners_;  // by node, 1 is the root, 2n and 2n + 1 are below n; leaves have no node of their own
};

}  // namespace attest
