// When each CTA slot has something to do next.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace attest {

/// One time a slot; the earliest comes first, of equal times the slot with the lower number. A tournament: a node has
/// the winner of the two below it, so that another time for a slot is played once on each level.
class EventQueue {
 public:
  explicit EventQueue(std::size_t slots) : leaves_(std::bit_ceil(slots < 2 ? 2 : slots)), nodes_(2 * leaves_) {
    for (std::size_t slot = 0; slot < leaves_; ++slot) nodes_[leaves_ + slot] = {key_of(never), slot};
    for (std::size_t node = leaves_ - 1; node > 0; --node) nodes_[node] = nodes_[2 * node];
  }
  bool empty() const { return nodes_[1].key == key_of(never); }
  int next() const { return static_cast<int>(nodes_[1].slot); }
  double time(int slot) const { return time_of(nodes_[leaves_ + static_cast<std::size_t>(slot)].key); }
  void set(int slot, double time) {
    std::uint64_t key = key_of(time);
    std::size_t node = leaves_ + static_cast<std::size_t>(slot), best = static_cast<std::size_t>(slot);
    nodes_[node] = {key, best};
    for (; node > 1; node /= 2) {
      const Node other = nodes_[node ^ 1];
      const bool loses = other.key < key + (node & 1);  // of equal times the left one, which has the lower numbers
      key = loses ? other.key : key;
      best = loses ? other.slot : best;
      nodes_[node / 2] = {key, best};
    }
  }
  void remove(int slot) { set(slot, never); }

 private:
  /// Whole numbers that are ordered as the times are: no branch hangs on who wins.
  struct Node {
    std::uint64_t key;
    std::size_t slot;
  };
  static constexpr double never = std::numeric_limits<double>::infinity();
  static constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  static std::uint64_t key_of(double time) {
    const auto bits = std::bit_cast<std::uint64_t>(time + 0.0);  // -0 is 0
    return (bits & sign) != 0 ? ~bits : bits | sign;
  }
  static double time_of(std::uint64_t key) { return std::bit_cast<double>((key & sign) != 0 ? key & ~sign : ~key); }

  std::size_t leaves_;
  std::vector<Node> nodes_;  // 1 is the root, 2n and 2n + 1 are below n; the slots' own from leaves_ on
};

}  // namespace attest
