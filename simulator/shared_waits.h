// What CTAs of a product wait for operands that they share.
#pragma once
#include <cstdint>

namespace attest {

/// CTAs in the order in which they begin, `slots` at once. Each takes `begin` cycles, then for each slice of what it
/// sums over two turns of A, two of B and `slice` cycles, then `end`; `across` CTAs that follow each other have A's
/// rows in common, and of `down` times as many those `across` apart B's.
struct SharedTurns {
  std::int64_t ctas = 0, slots = 1, across = 1, down = 1, slices = 0;
  double begin = 0, slice = 0, end = 0;
  bool a_in_dram = false, b_in_dram = false;
  /// Cycles of a turn from L2, how much longer one from DRAM takes and the standard deviation of that; that of a
  /// slice's cycles, as a part of them.
  double l2 = 0, dram = 0, dram_deviation = 0, slice_deviation = 0;
};

/// Cycles of a turn on average over CTAs. Who asks first for what lies in DRAM waits for it, who asks while it is under
/// way for the rest of that, so that CTAs that share operands catch up with each other. Long walks are cut short.
double wait_of_turn(const SharedTurns& turns);

}  // namespace attest
