// When in an event a CTA's warps come to the words of their local memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "spills_to_come.h"
#include "traffic.h"
#include "warp_paces.h"

namespace attest {

/// Each warp goes through each key tile at a pace of its own, and the slowest ends it.
class SpillTimes {
 public:
  explicit SpillTimes(std::size_t warps) : paces_(warps) {}

  /// Of an event of so many key tiles that begins `now` and takes `cycles`; numbered as the lines that each tile uses.
  std::vector<SpillsToCome::Use> of_event(const std::vector<SpilledLine>& lines, double now, double cycles, int tiles) {
    std::vector<SpillsToCome::Use> uses;
    if (lines.empty()) return uses;
    uses.reserve(lines.size() * static_cast<std::size_t>(tiles));
    const double each = cycles / tiles;
    for (int tile = 0; tile < tiles; ++tile) {
      paces_.draw(noise_);
      for (std::size_t i = 0; i < lines.size(); ++i)
        uses.push_back({now + (tile + lines[i].at * paces_.of(lines[i].warp) / paces_.slowest()) * each, i});
    }
    return uses;
  }

 private:
  static constexpr std::uint64_t seed = 0x9E3779B97F4A7C15;  // so that paces are no other noise's
  Noise noise_{seed};
  WarpPaces paces_;
};

}  // namespace attest
