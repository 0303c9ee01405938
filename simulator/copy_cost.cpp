#include <algorithm>

#include "attest/simulator/counts.h"

namespace attest {

CopyCost copy_cost(std::span<const CopiedChunk> lanes) {
  struct Piece {  // what one request brings
    std::int64_t sector;
    std::uint32_t to, shift;
    unsigned halves;
    bool moves_with(const Piece& p) const {
      return sector / 4 == p.sector / 4 && to / 4 == p.to / 4 && shift == p.shift && halves == p.halves;
    }
  };
  std::array<Piece, 32> pieces;
  std::array<std::uint32_t, 32> places;
  std::size_t n = 0, distinct = 0;
  for (const CopiedChunk& lane : lanes) {
    const std::int64_t from = lane.global / 16;
    const std::uint32_t to = lane.shared / 16;
    if (std::find(places.begin(), places.begin() + distinct, to) != places.begin() + distinct) continue;
    places[distinct++] = to;
    const Piece piece{from / 2, to / 2, (static_cast<std::uint32_t>(from) ^ to) & 3, 1u << (from & 1)};
    const auto same = std::find_if(pieces.begin(), pieces.begin() + n, [&](const Piece& p) {
      return p.sector == piece.sector && p.to == piece.to && p.shift == piece.shift;
    });
    if (same == pieces.begin() + n)
      pieces[n++] = piece;
    else
      same->halves |= piece.halves;
  }
  CopyCost cost{static_cast<int>(n), 0};
  // a wavefront for each kind of piece and each time that its fullest sector is asked for
  for (std::size_t i = 0; i < n; ++i) {
    const auto alike = [&](const Piece& p) { return p.moves_with(pieces[i]); };
    if (std::any_of(pieces.begin(), pieces.begin() + i, alike)) continue;
    std::array<int, 4> times{};
    for (std::size_t j = i; j < n; ++j)
      if (alike(pieces[j])) ++times[static_cast<std::size_t>(pieces[j].sector & 3)];
    cost.wavefronts += *std::max_element(times.begin(), times.end());
  }
  return cost;
}

}  // namespace attest
