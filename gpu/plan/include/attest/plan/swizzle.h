// Where a 16-byte chunk of a row-major tile lies in shared memory.
#pragma once
#include <cstdint>

namespace attest {

enum class Operand : std::uint8_t { q, k, v, o };
constexpr const char* to_string(Operand x) {
  return x == Operand::q ? "Q" : x == Operand::k ? "K" : x == Operand::v ? "V" : "O";
}

/// A 16-byte chunk of a tile, before swizzling.
struct Cell {
  int row, chunk;
};

/// XOR of a chunk's low bits with bits of its row. Shared memory has 8 groups of 4 banks, a group one chunk wide, and
/// ldmatrix reads the same chunk of 8 consecutive rows at once. In a tile whose rows are 2^bits * odd chunks long (at
/// most 8 matters) rows 2^shift apart would meet in the same group, so
///
///     chunk  c c c c          row  r r r r r
///                ^^^                   \___/ bits wide, above the lowest `shift` bits
///                 +-------- XOR ---------+
///
/// sends 8 consecutive rows of any one chunk to 8 different groups.
struct Swizzle {
  int bits = 3;
  int shift = 0;

  constexpr int mask() const { return (1 << bits) - 1; }
  constexpr int operator()(int row, int chunk) const { return chunk ^ ((row >> shift) & mask()); }

  /// The conflict-free swizzle of rows of `row_chunks` chunks.
  static constexpr Swizzle for_rows_of(int row_chunks) {
    const int bits = row_chunks % 8 == 0 ? 3 : row_chunks % 4 == 0 ? 2 : row_chunks % 2 == 0 ? 1 : 0;
    return {bits, 3 - bits};
  }
};

/// A tile in shared memory: rows of `row_chunks` chunks, swizzled. Its base is a multiple of 128 bytes.
///
/// The address splits so that a lane computes its part once and a step adds constants: where row0 % 8 == 0, chunk0 is a
/// multiple of a power of two 2^a, and c < 2^a,
///     offset({row0 + r, chunk0 + c}) == (lane_part({r, c}) ^ step_xor(chunk0)) + step_add(row0, chunk0)
struct SmemLayout {
  int row_chunks = 8;
  Swizzle swizzle{};

  constexpr std::uint32_t row_bytes() const { return static_cast<std::uint32_t>(row_chunks) * 16; }
  constexpr std::uint32_t bytes(int rows) const { return static_cast<std::uint32_t>(rows) * row_bytes(); }
  constexpr std::uint32_t offset(Cell c) const {
    return static_cast<std::uint32_t>(c.row) * row_bytes() + static_cast<std::uint32_t>(swizzle(c.row, c.chunk)) * 16;
  }
  constexpr std::uint32_t lane_part(Cell c) const { return offset(c); }
  constexpr std::uint32_t step_xor(int chunk0) const {
    return static_cast<std::uint32_t>(chunk0 & swizzle.mask()) * 16;
  }
  constexpr std::uint32_t step_add(int row0, int chunk0) const {
    return static_cast<std::uint32_t>(row0) * row_bytes() + static_cast<std::uint32_t>(chunk0 & ~swizzle.mask()) * 16;
  }
};

/// A tile as a bulk tensor copy lays it out: panels of 128, 64 or 32 bytes a row, the widest that divides a row, one
/// after the other. The hardware's swizzle is on byte addresses (PTX ISA, Tensor Maps, swizzling modes); a base is a
/// multiple of 1024 bytes:
///
///     128 B   a a a b b b . . . .   bits 4-6 ^= bits 7-9
///      64 B     a a . b b . . . .   bits 4-5 ^= bits 7-8
///      32 B       a . . b . . . .   bit  4   ^= bit  7
struct PanelLayout {
  int rows = 64;
  int row_chunks = 8;
  bool swizzled = true;

  constexpr int panel_chunks() const { return row_chunks % 8 == 0 ? 8 : row_chunks % 4 == 0 ? 4 : 2; }
  constexpr std::uint32_t offset(Cell c) const {
    const int width = panel_chunks();
    const auto linear = static_cast<std::uint32_t>((c.chunk / width * rows + c.row) * width + c.chunk % width) * 16;
    return swizzled ? linear ^ (linear >> 3 & static_cast<std::uint32_t>(width - 1) * 16) : linear;
  }
};

}  // namespace attest
