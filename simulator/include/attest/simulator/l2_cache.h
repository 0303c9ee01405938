// A GPU's L2 as micro-benchmarks of an H200 show it: one or two partitions, each with a home half of memory and both
// keeping copies, set-associative with true LRU, write-back with a limit on dirty lines.
//
//        SM on side 0                     SM on side 1
//             |                                |
//        [partition 0] <---- fabric ----> [partition 1]
//             |                                |
//        DRAM, even homes                 DRAM, odd homes
//
// A read of a line that lives on the other side looks near, then crosses to the home side, then goes to DRAM, and fills
// both. A near hit does not refresh the home copy.
#pragma once
#include <cstdint>
#include <vector>

namespace attest {

/// One 128-byte line of memory as the cache sees it: place and name, computed once.
struct CachedLine {
  std::uint32_t tag;  // hash of the address, apart from the bits that chose the set
  std::uint16_t set;
  std::uint8_t home;     // partition whose DRAM holds it
  std::uint8_t sectors;  // 32-byte sectors of it that the access wants, 1 to 4
};

class L2Cache {
 public:
  static constexpr int max_ways = 32;
  enum class Outcome : std::uint8_t { near_hit, far_hit, miss };

  /// `sets` a partition. At most `dirty_ways` lines of a set stay dirty: one more writes the oldest back.
  L2Cache(int partitions, int sets, int ways, int dirty_ways);

  /// An SM on `side` reads; a miss fills from DRAM. Lines read with `evict_first` are the first to go, and take no
  /// other line's place.
  Outcome read(const CachedLine& line, int side, bool evict_first = false);
  /// An SM on `side` writes: the line is allocated dirty at home, with a copy near, and DRAM is not read.
  void write(const CachedLine& line, int side);

  std::int64_t written_back_sectors() const { return written_back_sectors_; }
  std::int64_t dirty_sectors() const;

 private:
  /// What a set knows beside its ways' tags, ages and dirty sectors. A bit a way.
  struct Set {
    std::uint32_t used = 0, first_to_go = 0, dirty = 0;
    std::uint32_t clock = 0;
  };
  std::size_t set(int partition, int index) const {
    return static_cast<std::size_t>(partition) * static_cast<std::size_t>(sets_per_partition_) +
           static_cast<std::size_t>(index);
  }
  std::size_t first_way(std::size_t set) const { return set * static_cast<std::size_t>(padded_ways_); }
  int find(std::size_t set, std::uint32_t tag) const;
  void touch(std::size_t set, int way);
  /// The least recently used way of those in `ways`, which is not 0.
  int oldest(std::size_t set, std::uint32_t ways) const;
  void insert(std::size_t set, std::uint32_t tag, std::uint8_t dirty_sectors, bool evict_first);
  void make_dirty(std::size_t set, int way, std::uint8_t sectors);
  void clean(std::size_t set, int way);

  int partitions_;
  int sets_per_partition_;
  int ways_, padded_ways_;  // the latter: a whole number of vectors
  int dirty_ways_;
  std::int64_t written_back_sectors_ = 0;
  std::vector<Set> sets_;
  std::vector<std::uint32_t> tags_;
  std::vector<std::uint32_t> ages_;  // the set's clock when the way was last used, and the way in the lowest 5 bits
  std::vector<std::uint8_t> dirty_sectors_;
};

}  // namespace attest
