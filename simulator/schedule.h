// Which CTA slot works on what, and in which order.
#pragma once
#include <cstdint>
#include <vector>

#include "attest/simulator/device.h"
#include "grid.h"

namespace attest {

/// A cluster's share of the work: query tiles from `q_tile` on, a CTA each, of one head.
struct Task {
  std::int64_t batch = 0, head = 0;
  int q_tile = 0, split = 0;
};

/// Slots are clusters of CTAs that the device holds at a time. A grid hands its tasks to the slots in order, each to
/// the first that is free, and so does a dynamic scheduler; a static one gives every slot its own, `slots()` apart.
/// Where the first tiles come from a counter as well, slots are in the order in which CTAs arrive there.
///
/// Order: query tiles fastest, then splits, then heads and batch entries as the plan's grid has them. With sections,
/// heads whose K and V fit `l2_section_bytes` together (a power of two of them) are done before the next ones: their
/// heads fastest, then query tiles.
class Schedule {
 public:
  Schedule(const Grid& grid, const DeviceSpec& device, int ctas_per_sm);

  std::int64_t tasks() const { return tasks_; }
  Task task(std::int64_t index) const;
  int slots() const { return slots_; }
  bool fixed() const { return fixed_; }
  int sm(int slot) const;
  /// Its number on the device, which counts TPCs, of two SMs, round all GPCs; here SMs of a GPC follow each other.
  int number_on_device(int sm) const { return numbers_[static_cast<std::size_t>(sm)]; }
  /// So many SMs, or as many as have work where there are so many tasks, spread evenly over these.
  std::vector<int> spread_sms(std::int64_t n, std::int64_t tasks) const;
  /// Slots so many apart are on one SM, and no others.
  int slots_a_round() const { return round_; }
  /// The GPC a slot belongs to: CTAs of a plain grid fill one after the other, clusters of CTAs go round them.
  int gpc(int slot) const;
  /// Its GPC's side, and so its near partition of L2.
  int side(int slot) const;

 private:
  /// When the CTA of an SM is at the counter of tiles, in times that a side's first CTAs arrive within.
  double arrival(int sm) const;
  int gpc_of(int sm) const;
  int side_of(int gpc) const;

  const Grid& grid_;
  const DeviceSpec& device_;
  int cluster_, round_, slots_;
  bool fixed_;
  std::int64_t groups_;   // of query tiles, a head
  std::int64_t section_;  // heads worked on together; 0: no sections
  std::int64_t tasks_;
  std::vector<int> sms_;  // of a round's slots
  std::vector<int> numbers_;
};

}  // namespace attest
