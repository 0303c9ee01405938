// Where a line of local memory lies in L2: by micro-benchmarks of what is written back and read back, and of how many
// lines sets have (`local_places` and `local_census` in docs/results/h200-l2.md and docs/results/h100.md), no mapping
// is known.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "address.h"

namespace attest {

/// Frames of so many words of a thread, a line each of a warp.
struct LocalFrames {
  std::int64_t warps = 0, words = 0;
};

struct LocalPlace {
  int home, set;
};

/// `sets` a partition; `local_memory_sets`, 0.75 and more, as in DeviceSpec: up to 1 lines fall at random into sets
/// that get uneven parts of them, a set of one partition as much as that of its number in the other. Beyond 1 sets get
/// even parts, some of the lines in turn, the first words of all warps first, and the others at random.
LocalPlace local_place(const LocalFrames& frames, std::int64_t warp, std::int64_t word, int sets,
                       const DeviceSpec& device);

/// Where frames' lines lie in an L2 of which a sampler follows some sets. Those stand for all: of the sets in the order
/// of how many lines of home 0, then of home 1, they have of the first `counted` words, one in so many, chosen so that
/// lines of either home that warps of either side store are among them as often as among all. `side` is a warp's;
/// `device` must live as long.
class LocalPlaces {
 public:
  LocalPlaces(const LocalFrames& frames, std::int64_t counted, const std::function<int(std::int64_t warp)>& side,
              const LineSampler& sampler, const DeviceSpec& device);
  /// None where the line's set is not followed.
  std::optional<LocalPlace> of(std::int64_t warp, std::int64_t word) const;

 private:
  LocalFrames frames_;
  const DeviceSpec& device_;
  std::vector<std::int32_t> followed_;  // by set of a partition, its number among those followed, or -1
};

}  // namespace attest
