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

/// Of lines in order that are taken for a share of all, evenly: how many before that one.
inline std::int64_t followed_before(std::int64_t line, double share) {
  return static_cast<std::int64_t>(static_cast<double>(line) * share);
}

/// The `number`th of the lines that are followed. `sets` a partition; `local_memory_sets` as in DeviceSpec: up to 1 a
/// part of the sets, into which regions (address.h) fall at random, so that of lines that follow each other two are in
/// one set as often as two lines of a region are in one slice. Beyond 1 lines fall into all sets one by one, a part of
/// them in turn and the others at random.
inline LocalPlace local_place(std::int64_t number, int sets, const DeviceSpec& device) {
  const std::int64_t partitions = device.l2_partitions;
  const double local_memory_sets = device.local_memory_sets;
  if (local_memory_sets > 1) {
    const auto in_turn_before = [&](std::int64_t n) { return followed_before(n, local_memory_sets - 1); };
    const std::int64_t turn = in_turn_before(number);
    const bool in_turn = turn != in_turn_before(number + 1);
    const std::int64_t set =
        in_turn ? turn / partitions : static_cast<std::int64_t>(mix(static_cast<std::uint64_t>(number)) >> 32);
    return {static_cast<int>((in_turn ? turn : number - turn) % partitions), static_cast<int>(set % sets)};
  }
  const auto place = [&](std::int64_t n) { return n * device.l2_slices_per_partition / LineSampler::region_lines; };
  const std::int64_t at = place(number);
  const bool second = number > 0 && place(number - 1) == at;
  const auto of_sets = static_cast<std::uint64_t>(std::ceil(local_memory_sets * sets));
  return {static_cast<int>((second ? at / 2 : at) % partitions),
          static_cast<int>(mix(static_cast<std::uint64_t>(at)) % of_sets)};
}

}  // namespace attest
