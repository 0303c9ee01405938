// Which sets of an L2 whose hash is known a walk follows.
#pragma once
#include <cstdint>
#include <vector>

#include "l2_hash.h"

namespace attest {

/// Of some slices those sets of all groups whose number has in so many of its four lowest bits one value, so that a
/// segment has as many lines in them whatever its group. The four sets of a directory's entry stay together, and so do
/// slices that keep each other's copies. Of a directory those sets are followed that differ in the other bits: of each
/// segment they get what sets of a directory get, one entry or none.
class SetChoice {
 public:
  /// Of slices that keep each other's copies, or of one alone.
  struct Slices {
    std::uint32_t first, count, value;
  };

  /// About one set in `sampling`. Lines that follow each other have one value of those bits and go to slices that do:
  /// these have different ones, in the order, of 128 that were tried, in which a key tile's lines are followed most
  /// evenly.
  SetChoice(const L2Hash& hash, int sampling);

  /// Other values, slice by slice, so that of what lies in sets with n and more nearly the same part is followed,
  /// whatever n is: of each of `counts`, which have a number for each set as LineSampler::whole_set() has them.
  void match(const std::vector<std::vector<int>>& counts);

  const std::vector<Slices>& slices() const { return slices_; }
  /// Of the four lowest of a set's number, in which those that are followed differ.
  unsigned free_bits() const { return free_bits_; }

 private:
  std::uint32_t values() const { return 1U << (L2Hash::directory_set_bits - free_bits_); }
  std::uint32_t all_slices_;  // of a partition
  unsigned free_bits_;
  std::vector<Slices> slices_;
};

}  // namespace attest
