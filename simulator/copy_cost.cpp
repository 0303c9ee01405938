#include <algorithm>
#include <span>

#include "attest/simulator/counts.h"
#include "distinct.h"

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
  return {count_distinct(std::span(sectors).first(n)), stretches};
}

/// Of zeros beside what is read: those of storing all lanes' bytes, and of eight lanes, some of which are zeros, one
/// more for each further row that the others read from.
int with_zeros(const SharedAccess& to, std::span<const std::int64_t, 32> from, std::uint32_t present) {
  constexpr std::size_t together = 8;
  int wavefronts_of_zeros = wavefronts(to);
  for (std::size_t first = 0; first < from.size(); first += together) {
    int rows = 0;
    bool zeros = false;
    std::size_t before = from.size();  // a lane that reads
    for (std::size_t lane = first; lane < first + together; ++lane) {
      if ((to.active >> lane & 1) == 0) continue;
      if ((present >> lane & 1) == 0) {
        zeros = true;
        continue;
      }
      const bool reads_on =
          before < lane && from[lane] == from[before] + static_cast<std::int64_t>(16 * (lane - before));
      rows += reads_on ? 0 : 1;
      before = lane;
    }
    if (zeros) wavefronts_of_zeros += std::max(0, rows - 1);
  }
  return wavefronts_of_zeros;
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
  if (stores_zeros)
    cost.wavefronts += wavefronts(zeros);
  else if (zeros.active != 0)
    cost.wavefronts += with_zeros(to, from, present);
  return cost;
}

}  // namespace attest
