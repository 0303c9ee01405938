// How the warps of a CTA keep apart between two barriers.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

#include "noise.h"

namespace attest {

/// Of the warps of a CTA that spills, from one barrier to the next: the standard deviation of what each takes, in parts
/// of it (warp_paces in docs/results/h200-l1.md): 0.05 on an H200 and 0.07 on an H100.
inline constexpr double warp_pace_deviation = 0.06;

/// What each warp takes for its work between two barriers, over their mean. All are done when the slowest is.
class WarpPaces {
 public:
  explicit WarpPaces(std::size_t warps) : of_warps_(warps, 1) {}
  void draw(Noise& noise) {
    for (double& pace : of_warps_) pace = 1 + warp_pace_deviation * noise();
    slowest_ = *std::ranges::max_element(of_warps_);
  }
  double of(std::size_t warp) const { return of_warps_[warp]; }
  double slowest() const { return slowest_; }

 private:
  std::vector<double> of_warps_;
  double slowest_ = 1;
};

}  // namespace attest
