// When in an event a CTA's warps come to the words of their local memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "spills_to_come.h"
#include "traffic.h"
#include "warp_paces.h"

namespace attest {

/// Each warp goes through each key tile at a pace of its own, and the slowest ends it.
class SpillTimes {
 public:
  explicit SpillTimes(std::size_t warps) : paces_(warps) {}

  /// Of an event that begins `now` and takes `cycles`, of key tiles that use those lines. Until the next event's.
  std::span<const SpillsToCome::Use> of_event(const std::vector<const std::vector<SpilledLine>*>& tiles, double now,
                                              double cycles) {
    uses_.clear();
    const double each = cycles / static_cast<double>(tiles.size());
    double tile = 0;
    for (const std::vector<SpilledLine>* lines : tiles) {
      if (!lines->empty()) paces_.draw(noise_);
      for (const SpilledLine& line : *lines)
        uses_.push_back({now + (tile + line.at * paces_.of(line.warp) / paces_.slowest()) * each, &line});
      ++tile;
    }
    return uses_;
  }

 private:
  static constexpr std::uint64_t seed = 0x9E3779B97F4A7C15;  // so that paces are no other noise's
  Noise noise_{seed};
  WarpPaces paces_;
  std::vector<SpillsToCome::Use> uses_;
};

}  // namespace attest
