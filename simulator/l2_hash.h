// Which set of L2 a line of memory falls into, as an H100 and an H200 have it. Read off lines of which is known that
// they share a set (`l2_labels`, docs/results/h200-l2.md); no document has it.
//
// block      1024 lines of an H100, which are one unit; of an H200 eight units of 128, by three exclusive ors of a
//            line's number
// segment    5 units or 47: 640 or 752 KiB, which fill one fifth of all sets evenly
// group      of sets, 64 of each slice: the segment's number modulo 5, its two lowest bits changed by higher ones
// slice      of a partition: a segment's eighths of units are dealt over 5 parts or 47, in 8 turns. A part is one of an
//            H200's slices, of which the 48th has no lines; with three exclusive ors it is one of an H100's 40.
// set        of a group: the turn and three bits of the line's number, six bits that the segment's number changes
// directory  of a slice, 512 sets, which note what the other partition has copies of (L2Cache): five exclusive ors of a
//            segment's number, and the four lowest of the set's six bits as the segment's number changes them
#pragma once
#include <array>
#include <cstdint>

#include "attest/simulator/device.h"

namespace attest {

class L2Hash {
 public:
  static constexpr std::uint32_t groups = 5, sets_a_group = 64, sets_a_slice = groups * sets_a_group;
  static constexpr std::uint32_t block_lines = 1024;
  /// Bits of a directory set's number: of the segment alone, and of those that a set's lowest bits go with.
  static constexpr unsigned directory_segment_bits = 5, directory_set_bits = 4;
  static constexpr std::int64_t line_bytes = 128;

  /// Whether the device's L2 is one whose hash is known, an H100's or an H200's.
  static bool known(const DeviceSpec& device);
  /// Of a partition of that device, into which lines fall: known() must be true, here and below.
  static std::uint32_t slices(const DeviceSpec& device);
  explicit L2Hash(const DeviceSpec& device);
  std::uint32_t slices() const { return of_.parts << of_.slice_bits; }
  /// Of so many, the first, the other partition keeps copies in the slice whose number differs in the lowest bit.
  std::uint32_t paired_slices() const { return of_.paired_slices; }
  std::uint32_t slice_of_copy(std::uint32_t slice) const { return slice ^ (slice < of_.paired_slices ? 1u : 0u); }

  /// What lines have in common of which the first one's number is a multiple of 1024.
  struct Block {
    std::uint32_t functionals;               // of the higher bits of their numbers
    std::uint32_t in_segment;                // the place of their first unit
    std::array<std::uint32_t, 2> key;        // group and changes of that segment's sets, and of the next one's
    std::array<std::uint32_t, 2> directory;  // and of its directory sets
  };
  Block block(std::uint64_t number) const;
  struct Place {
    std::uint32_t slice, index, directory;  // the set's among those of its slice, and the directory set's
    std::uint8_t home;
  };
  /// Of the line that is `low` lines behind the block's first.
  Place place(const Block& block, std::uint32_t low) const {
    const std::uint32_t f = block.functionals ^ of_low_[low];
    std::uint32_t unit = block.in_segment + (f & ((1u << of_.unit_bits) - 1));
    const bool next = unit >= of_.parts;
    if (next) unit -= of_.parts;
    const Eighth eighth = eighths_[unit << 3 | (f >> 3 & 7)];
    const std::uint32_t index = block.key[next] ^ eighth.turn ^ f >> 10 << 3;
    return {static_cast<std::uint32_t>(eighth.part) << of_.slice_bits | (f >> 6 & ((1u << of_.slice_bits) - 1)), index,
            block.directory[next] ^ (index & ((1u << directory_set_bits) - 1)), static_cast<std::uint8_t>(f >> 9 & 1)};
  }

  /// What the two GPUs have of their own.
  struct Gpu {
    std::int64_t slices;          // of a partition, as a device file has them
    std::uint32_t parts;          // of a segment, a prime, and its units
    unsigned unit_bits;           // of a block, as a power of two
    unsigned slice_bits;          // that are exclusive ors
    std::uint32_t paired_slices;  // see above
    // Exclusive ors of bits of a line's number: a unit's three lowest bits, an eighth's, a slice's, and the home.
    std::array<std::uint64_t, 10> masks;
  };

 private:
  struct Eighth {
    std::uint8_t part, turn;
  };

  const Gpu& of_;
  std::array<Eighth, std::size_t{8} * 47> eighths_{};  // of a segment's units
  std::array<std::uint32_t, block_lines> of_low_{};
};

}  // namespace attest
