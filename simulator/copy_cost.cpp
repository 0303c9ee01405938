#include <algorithm>

#include "attest/simulator/counts.h"

namespace attest {
namespace {

/// A lane's granule: both addresses are multiples of its size.
struct LaneCopy {
  std::int64_t from;
  std::uint32_t to;
};

/// Of 16 bytes, beyond L1.
CopyCost whole_chunks(std::span<const LaneCopy> lanes) {
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
  for (const LaneCopy& lane : lanes) {
    const std::int64_t from = lane.from / 16;
    const std::uint32_t to = lane.to / 16;
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
  CopyCost cost{static_cast<int>(n)};
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

/// Of 8 or 4 bytes, through L1.
CopyCost through_l1(std::span<const LaneCopy> lanes, int bytes) {
  std::array<std::int64_t, 32> sectors;
  std::size_t n = 0;
  int stretches = 0;  // of lanes whose bytes follow each other
  for (const LaneCopy& lane : lanes) {
    stretches += n == 0 || lanes[n - 1].from + bytes != lane.from;
    sectors[n++] = lane.from / 32;
  }
  const auto end = sectors.begin() + static_cast<std::ptrdiff_t>(n);
  std::sort(sectors.begin(), end);
  return {static_cast<int>(std::unique(sectors.begin(), end) - sectors.begin()), stretches};
}

/// Of shared memory, that the lanes write.
int lines(const SharedAccess& access) {
  std::array<std::uint32_t, 32> touched;
  std::size_t n = 0;
  for (std::size_t lane = 0; lane < 32; ++lane)
    if (access.active >> lane & 1) touched[n++] = access.address[lane] / 128;
  std::sort(touched.begin(), touched.begin() + static_cast<std::ptrdiff_t>(n));
  return static_cast<int>(std::unique(touched.begin(), touched.begin() + static_cast<std::ptrdiff_t>(n)) -
                          touched.begin());
}

}  // namespace

CopyCost copy_cost(const SharedAccess& to, std::span<const std::int64_t, 32> from, std::uint32_t present,
                   bool stores_zeros) {
  std::array<LaneCopy, 32> copies;
  std::size_t n = 0;
  for (std::size_t lane = 0; lane < 32; ++lane)
    if ((to.active & present) >> lane & 1) copies[n++] = {from[lane], to.address[lane]};
  const std::span<const LaneCopy> lanes(copies.data(), n);
  if (to.bytes != 16) {
    CopyCost cost = through_l1(lanes, to.bytes);
    cost.wavefronts = std::max(cost.wavefronts, wavefronts(to));
    return cost;
  }
  CopyCost cost = whole_chunks(lanes);
  SharedAccess zeros = to;
  zeros.active &= ~present;
  cost.wavefronts += stores_zeros ? wavefronts(zeros) : lines(zeros);
  return cost;
}

}  // namespace attest
