// Where a line of local memory lies in L2: by micro-benchmarks of what is written back (`local_places` in
// docs/results/h200-l2.md and docs/results/h100.md), no mapping is known.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace attest {

struct LocalPlace {
  int home, set;
};

/// The `number`th of all CTAs' lines, of which `random` is drawn. `sets` a partition; `local_memory_sets` as in
/// DeviceSpec: up to 1 a part of the sets, at random, beyond it the part of the lines that go round them in turn.
inline LocalPlace local_place(std::int64_t number, std::uint64_t random, double local_memory_sets, int sets,
                              int partitions) {
  const auto in_turn_before = [&](std::int64_t n) {
    return static_cast<std::int64_t>(std::max(0.0, local_memory_sets - 1) * static_cast<double>(n));
  };
  const std::int64_t turn = in_turn_before(number);
  if (turn != in_turn_before(number + 1))
    return {static_cast<int>(turn % partitions), static_cast<int>(turn / partitions % sets)};
  const auto of_sets = static_cast<std::uint64_t>(std::ceil(std::min(1.0, local_memory_sets) * sets));
  return {static_cast<int>(number % partitions), static_cast<int>(random % of_sets)};
}

}  // namespace attest
