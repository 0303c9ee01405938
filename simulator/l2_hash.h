// Which set of L2 a line of memory falls into, as an H100 and an H200 have it. Read off lines of which is known that
// they share a set (`l2_set labels`, docs/results/h200-l2.md); no document has it.
//
//     units      1024 lines an H100, 128 an H200, in an order that exclusive ors of address bits change
//     segment    5 units, or 47: 640 or 752 KiB of memory, which fill one fifth of all sets evenly, a group of 64 a
//     slice group      by the segment's number modulo 5, once the two lowest bits of it are changed by higher ones
//     slice      of a partition: an H100's 40 by five parts of a segment and three exclusive ors, an H200's 47 of 48 by
//                47 parts
//     the other six bits of a set: three of the line's, three of its part of the segment, changed by the segment's
#pragma once
#include <array>
#include <cstdint>

#include "attest/simulator/device.h"

namespace attest {

class L2Hash {
 public:
  static constexpr std::uint32_t groups = 5, sets_a_group = 64, sets_a_slice = groups * sets_a_group;
  static constexpr std::uint32_t block_lines = 1024;
  static constexpr std::int64_t line_bytes = 128;

  /// Whether the device's L2 is one whose hash is known, an H100's or an H200's.
  static bool known(const DeviceSpec& device);
  /// Of that device.
  explicit L2Hash(const DeviceSpec& device);
  /// Of a partition, into which lines fall.
  std::uint32_t slices() const { return parts_ << slice_bits_; }
  /// Of so many, the first, the other partition keeps copies in the slice whose number differs in the lowest bit.
  std::uint32_t paired_slices() const { return slice_bits_ == 0 ? 40 : 0; }

  /// What lines have in common of which the first one's number is a multiple of 1024.
  struct Block {
    std::uint32_t functionals;  // of the higher bits of their numbers
    std::uint32_t in_segment;   // the place of their first unit
    std::array<std::uint32_t, 2>
        key;  // of that segment and of the next: what it adds to the group's and the set's bits
  };
  Block block(std::uint64_t number) const;
  struct Place {
    std::uint32_t slice, index;  // the set's among those of its slice
    std::uint8_t home;
  };
  /// Of the line that is `low` lines behind the block's first.
  Place place(const Block& block, std::uint32_t low) const {
    const std::uint32_t f = block.functionals ^ of_low_[low];
    std::uint32_t unit = block.in_segment + (f & units_);
    const bool next = unit >= parts_;
    if (next) unit -= parts_;
    const Part part = parts_of_segment_[unit << 3 | (f >> 3 & 7)];
    return {static_cast<std::uint32_t>(part.number) << slice_bits_ | (f >> 6 & ((1u << slice_bits_) - 1)),
            block.key[next] ^ part.turn ^ f >> 10 << 3, static_cast<std::uint8_t>(f >> 9 & 1)};
  }

 private:
  struct Part {
    std::uint8_t number, turn;
  };

  std::uint32_t parts_;  // of a segment, a prime: as many units, or as many parts of an eighth of a unit
  unsigned unit_bits_;   // a block has so many units, as a power of two
  std::uint32_t units_;  // a bit each of these
  unsigned slice_bits_;  // that are exclusive ors
  const std::uint64_t* masks_;
  std::array<Part, 8 * 47> parts_of_segment_{};
  std::array<std::uint32_t, block_lines> of_low_{};
};

}  // namespace attest
