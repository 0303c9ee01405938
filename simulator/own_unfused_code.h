// What warps of gpu/unfused's kernels execute, off their machine code: simulator/measured/unfused_paths.csv, whole
// tiles of 16-bit elements without masks.
#pragma once

namespace attest {

/// Of a warp: instructions, those of the pipes of comparisons and of products, cycles that it takes alone, and how
/// often it waits for L2 besides.
struct WarpCode {
  double instructions = 0, alu = 0, fma = 0, cycles = 0, waits = 0;
  friend constexpr WarpCode operator+(WarpCode a, WarpCode b) {
    return {a.instructions + b.instructions, a.alu + b.alu, a.fma + b.fma, a.cycles + b.cycles, a.waits + b.waits};
  }
  friend constexpr WarpCode operator*(double n, WarpCode c) {
    return {n * c.instructions, n * c.alu, n * c.fma, n * c.cycles, n * c.waits};
  }
  friend constexpr bool operator==(const WarpCode&, const WarpCode&) = default;
};

/// A slice of 128 x 32 of an operand is two turns of a loop that copies, the results of a warp are two rounds of four
/// turns of two; of each the longer one holds the first.
struct OwnProductCode {
  WarpCode start, step, copy_a, copy_b, between, results, turn;
  constexpr WarpCode once() const { return start + between + 2 * (results + 4 * turn); }
  constexpr WarpCode slice() const { return step + copy_a + copy_b; }
};
/// 256 keys of a row, which is read twice.
struct OwnSoftmaxCode {
  WarpCode start, maximum, between, exponentials, end;
  constexpr WarpCode once() const { return start + between + end; }
  constexpr WarpCode keys() const { return maximum + exponentials; }
};

inline constexpr OwnProductCode own_scores_code{
    .start = {202, 62, 59, 655, 0},
    .step = {304, 104, 62, 992, 2},
    .copy_a = {58, 24, 20, 195, 1},
    .copy_b = {67, 25, 22, 234, 1},
    .between = {80, 29, 12, 159, 0},
    .results = {441, 150, 142, 1546, 4},
    .turn = {85, 33, 31, 305, 0},
};
inline constexpr OwnSoftmaxCode own_softmax_code{
    .start = {193, 77, 54, 777, 0},
    .maximum = {361, 240, 39, 1976, 1},
    .between = {71, 26, 23, 171, 0},
    .exponentials = {424, 244, 89, 2334, 1},
    .end = {77, 24, 32, 256, 0},
};
inline constexpr OwnProductCode own_output_code{
    .start = {201, 64, 56, 639, 0},
    .step = {305, 86, 46, 1088, 2},
    .copy_a = {54, 22, 16, 191, 1},
    .copy_b = {66, 27, 19, 236, 1},
    .between = {80, 28, 15, 152, 0},
    .results = {813, 212, 294, 4105, 4},
    .turn = {176, 48, 70, 934, 0},
};

}  // namespace attest
