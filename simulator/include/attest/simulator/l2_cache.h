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
#include <array>
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
  /// Ways most recent first. Tags apart from the rest, so that a search compares eight at a time.
  struct Set {
    std::array<std::uint32_t, max_ways> tag;
    std::array<std::uint8_t, max_ways> dirty_sectors;  // 0: clean
    std::uint32_t first_to_go = 0;                     // a bit a way
    int used = 0;
    int dirty = 0;
  };
  Set& set(int partition, int index) {
    return sets_[static_cast<std::size_t>(partition) * static_cast<std::size_t>(sets_per_partition_) +
                 static_cast<std::size_t>(index)];
  }
  int find(const Set& set, std::uint32_t tag) const;
  static void touch(Set& set, int at);
  static void shift(Set& set, int count);  // the first `count` ways, by one, over the way after them
  void insert(Set& set, std::uint32_t tag, std::uint8_t dirty_sectors, bool evict_first);
  void clean_oldest(Set& set);

  int partitions_;
  int sets_per_partition_;
  int ways_;
  int dirty_ways_;
  std::int64_t written_back_sectors_ = 0;
  std::vector<Set> sets_;
};

}  // namespace attest
