// Where a line of local memory lies in L2: by micro-benchmarks of what is written back and read back (`local_places` in
// docs/results/h200-l2.md and docs/results/h100.md), no mapping is known.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "address.h"

namespace attest {

struct LocalPlace {
  int home, set;
};

/// The `number`th of all CTAs' lines. Frames lie in regions (address.h), so that of lines that follow each other two
/// are in one set as often as two lines of a region are in one slice. `sets` a partition; of them, in
/// `local_memory_sets` as in DeviceSpec, up to 1 a part, at random, beyond it the part of the lines that go round them
/// in turn.
inline LocalPlace local_place(std::int64_t number, double local_memory_sets, int sets, const DeviceSpec& device) {
  const std::int64_t partitions = device.l2_partitions;
  const auto in_turn_before = [&](std::int64_t n) {
    return static_cast<std::int64_t>(std::max(0.0, local_memory_sets - 1) * static_cast<double>(n));
  };
  const std::int64_t turn = in_turn_before(number);
  if (turn != in_turn_before(number + 1))
    return {static_cast<int>(turn % partitions), static_cast<int>(turn / partitions % sets)};
  const auto of_sets = static_cast<std::uint64_t>(std::ceil(std::min(1.0, local_memory_sets) * sets));
  const auto place = [&](std::int64_t n) { return n * device.l2_slices_per_partition / LineSampler::region_lines; };
  const std::int64_t at = place(number);
  const bool second = number > 0 && place(number - 1) == at;
  return {static_cast<int>((second ? at / 2 : at) % partitions),
          static_cast<int>(mix(static_cast<std::uint64_t>(at)) % of_sets)};
}

}  // namespace attest
