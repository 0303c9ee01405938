// Which element of a tile each lane of a warp holds or points at: ldmatrix.x4, mma.m16n8k16 (16-bit elements),
// mma.m16n8k8 (32-bit) and mma.m16n8k32 (8-bit), from the PTX ISA's sections on these instructions.
#pragma once
#include "attest/plan/swizzle.h"

namespace attest {

struct Element {
  int row, col;
};

// ---- ldmatrix.x4: the chunk whose address lane l supplies; lanes 8i..8i+7 supply the 8 rows of matrix i.

/// 16 rows x 2 chunks of Q: registers 0..3 are the A operand of one matrix step.
constexpr Cell a_cell(int lane) { return {lane & 15, lane >> 4}; }
/// 16 keys x 2 chunks of K: registers {0, 1} are the B operand of keys 0..7, {2, 3} of keys 8..15.
constexpr Cell b_cell(int lane) { return {(lane & 7) + ((lane >> 4) << 3), (lane >> 3) & 1}; }
/// 16 keys x 2 chunks of V, transposed: registers {0, 1} are the B operand of the first chunk's columns, {2, 3} of the
/// second's. 16-bit elements only.
constexpr Cell b_transposed_cell(int lane) { return {lane & 15, lane >> 4}; }

/// 32-bit V has no transposing load: each lane loads words. Register r of lane l is V[key][column] of an 8-key step and
/// 16 columns, r = 2 * (column block of 8) + (first or second key of the pair). Keys are taken in pairs (2t, 2t + 1)
/// for the hardware's k = t and t + 4, so that P's accumulator layout is its operand layout.
constexpr Element b_word(int lane, int reg) { return {2 * (lane & 3) + (reg & 1), 8 * (reg >> 1) + (lane >> 2)}; }

/// 32 keys x 1 chunk of 8-bit V, transposed as if pairs of columns were one element: no load transposes bytes. Register
/// i of lane 4g + t then holds columns 2g and 2g + 1 of keys 8i + 2t and 8i + 2t + 1, and a byte permutation of
/// registers (0, 1) and (2, 3) gives four keys of one column: the B operand of the even columns, and that of the odd
/// ones. The hardware's keys 4t to 4t + 3 of either half are the tile's 2t, 2t + 1, 8 + 2t, 9 + 2t, which is how P's
/// accumulators lie, so that these become its operand registers without a shuffle.
constexpr Cell b_bytes_cell(int lane) { return {lane, 0}; }

// ---- operands and accumulators of a matrix step

/// Accumulator e (0..3) of an m16n8 block.
constexpr Element accumulator(int lane, int e) { return {(lane >> 2) + 8 * (e >> 1), 2 * (lane & 3) + (e & 1)}; }
/// Half h of A register j, m16n8k16: row and k.
constexpr Element a_element16(int lane, int j, int h) {
  return {(lane >> 2) + 8 * (j & 1), 2 * (lane & 3) + 8 * (j >> 1) + h};
}
/// Half h of B register j, m16n8k16: k and column.
constexpr Element b_element16(int lane, int j, int h) { return {2 * (lane & 3) + 8 * j + h, lane >> 2}; }
/// A register j, m16n8k8.
constexpr Element a_element32(int lane, int j) { return {(lane >> 2) + 8 * (j & 1), (lane & 3) + 4 * (j >> 1)}; }
/// B register j, m16n8k8.
constexpr Element b_element32(int lane, int j) { return {(lane & 3) + 4 * j, lane >> 2}; }

/// Byte h of A register j, m16n8k32.
constexpr Element a_element8(int lane, int j, int h) {
  return {(lane >> 2) + 8 * (j & 1), 4 * (lane & 3) + 16 * (j >> 1) + h};
}
/// Byte h of B register j, m16n8k32.
constexpr Element b_element8(int lane, int j, int h) { return {4 * (lane & 3) + 16 * j + h, lane >> 2}; }

}  // namespace attest
