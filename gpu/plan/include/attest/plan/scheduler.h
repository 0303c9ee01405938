// The scheduler: which CTA of a grid computes what.
#pragma once
#include <cstdint>

namespace attest {

/// Order of CTAs in a plain grid, fastest index first. Query tiles and splits are slowest where order is all the same,
/// as on the CPU.
enum class GridOrder : std::uint8_t { tiles_batch_heads, tiles_heads_batch };

/// One CTA a tile, or as many as fit at once that take tile after tile: each its own at a fixed stride, or the next
/// one.
enum class Persistence : std::uint8_t { none, static_stride, dynamic };

/// What a grid has to cover: every (query tile, split, batch entry, head).
struct GridExtents {
  std::int64_t q_tiles = 0, splits = 1;
  std::int64_t num_batches = 1, nheads = 1, nheads_k = 1;
  std::int64_t seqlen_k = 0;  // of the longest batch entry

  constexpr std::int64_t size() const { return q_tiles * splits * num_batches * nheads; }
};

/// A CTA's place in it.
struct CtaIndex {
  std::int64_t q_tile = 0, split = 0, batch = 0, head = 0;
};

constexpr CtaIndex cta_index(const GridExtents& grid, GridOrder order, std::int64_t cta) {
  const std::int64_t members = grid.num_batches * grid.nheads, member = cta % members, above = cta / members;
  CtaIndex index{above / grid.splits, above % grid.splits, 0, 0};
  if (order == GridOrder::tiles_batch_heads) {
    index.batch = member % grid.num_batches;
    index.head = member / grid.num_batches;
  } else {
    index.head = member % grid.nheads;
    index.batch = member / grid.nheads;
  }
  return index;
}

/// Blocks of a GPU's grid, which start in the order of their numbers, x fastest: x is a head's query tiles, the last
/// one first where `longest_first`, with the splits of each next to one another; y heads; z batch entries. CTAs that
/// read the same keys so run side by side. Without splits nothing is divided.
constexpr CtaIndex block_index(const GridExtents& grid, bool longest_first, unsigned x, unsigned y, unsigned z) {
  CtaIndex index{x, 0, z, y};
  if (grid.splits != 1) {
    const auto splits = static_cast<unsigned>(grid.splits);
    index.q_tile = x / splits;
    index.split = x % splits;
  }
  if (longest_first) index.q_tile = grid.q_tiles - 1 - index.q_tile;
  return index;
}

}  // namespace attest
