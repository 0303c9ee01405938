// CTAs on each SM, and at what pace they have it go.
#pragma once
#include <vector>

#include "attest/simulator/tile_walk.h"

namespace attest {

class Residents {
 public:
  /// Of a device with so many SMs, which hold so many slots together once; `cluster` SMs stand at barriers together.
  Residents(const TileWalkOptions& options, std::int64_t sms, int slots_a_round, int cluster);

  void clear();
  void change(int sm, int by);
  int on(int sm) const { return ctas_[static_cast<std::size_t>(sm)]; }
  /// What TileWalkOptions::paces has, at how busy all SMs keep L2; of a cluster's SMs, of which `sm` is the first, the
  /// slowest one's.
  double pace(int sm) const;

 private:
  double l2_busy(int ctas) const;

  const TileWalkOptions& options_;
  const int slots_a_round_, cluster_;
  std::vector<int> ctas_;
  double l2_busy_ = 0;  // in SMs' shares of its time
};

}  // namespace attest
