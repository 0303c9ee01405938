// What all of a kernel's CTAs read and write, by those that were walked and by the sets of L2 that were sampled.
#pragma once
#include "attest/simulator/tile_walk.h"
#include "grid.h"
#include "schedule.h"
#include "traffic.h"

namespace attest {

class WalkTotals {
 public:
  /// `began_together`: what had been counted when the first CTA ended.
  WalkTotals(const Grid& grid, const Schedule& schedule, const Resolution& resolution, const DeviceSpec& device,
             const TileWalkOptions& options, const Traffic& traffic, const Traffic::Count& began_together)
      : grid_(grid),
        schedule_(schedule),
        resolution_(resolution),
        device_(device),
        options_(options),
        traffic_(traffic),
        began_together_(began_together) {}

  /// A walk's figures but for those of time.
  TileWalk all() const;

 private:
  double of_all_sets(std::int64_t sectors) const {  // bytes
    return static_cast<double>(sectors * LineSampler::sector_bytes) / traffic_.share_of_sets();
  }
  double unsampled(double once) const { return options_.warm ? 0 : once; }  // what DRAM reads of so few bytes
  double tensor_reads(double scale) const;
  double bias_reads() const {
    const Traffic::Reads& n = traffic_.count().bias;
    return n.asked_bytes == 0 ? unsampled(grid_.bias_bytes) : n.of(grid_.bias_read_bytes);
  }
  double extrapolated_writes(double written, double scale) const;
  double completed(double written_of_all) const;
  double unmerged_later() const;
  std::vector<double> shared(double scale) const;  // TileWalk's

  const Grid& grid_;
  const Schedule& schedule_;
  const Resolution& resolution_;
  const DeviceSpec& device_;
  const TileWalkOptions& options_;
  const Traffic& traffic_;
  const Traffic::Count& began_together_;
};

}  // namespace attest
