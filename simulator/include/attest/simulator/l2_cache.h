// A GPU's L2 as micro-benchmarks of an H200 show it: one or two partitions, each with a home half of memory and both
// keeping copies, set-associative with true LRU, write-back with a limit on dirty lines, of which the oldest are
// cleaned.
//
//        SM on side 0                     SM on side 1
//             |                                |
//        [partition 0] <---- fabric ----> [partition 1]
//             |                                |
//        DRAM, even homes                 DRAM, odd homes
//
// A read of a line that lives on the other side looks near, then crosses to the home side, then goes to DRAM, and fills
// both. A near hit does not refresh the home copy. A line is there sector by sector as it is written, and by its
// 64-byte halves as it is read.
//
// The home notes in a directory what the other partition has copies of: four lines an entry, 512 bytes of neighbours.
// An entry that must go takes those copies with it, whether they are in use or not (docs/results/h200-l2.md).
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace attest {

/// One 128-byte line of memory as the cache sees it: place and name, computed once. Where its home has a directory, it
/// is one of four lines, whose sets and tags differ in the two lowest bits alone.
struct CachedLine {
  static constexpr std::uint16_t not_noted = 0xFFFF;
  std::uint32_t tag;  // hash of the address, apart from the bits that chose the set
  std::uint16_t set;
  std::uint8_t home : 1;        // partition whose DRAM holds it
  std::uint8_t sectors : 4;     // a bit for each 32-byte sector of it that the access wants, the first lowest
  std::uint8_t whole : 1 = 0;   // a read brings all of the line, not the 64-byte halves that it wants (L2::128B)
  std::uint8_t beside : 1 = 0;  // of a row's copy, what is asked for and not wanted
  std::uint8_t paired : 1 = 0;  // the other partition's copy is in the set whose number differs in the third bit
  // Of its first sector so much is not in the access, and of its last one, in units of 2 bytes.
  std::uint8_t before : 4 = 0, behind : 4 = 0;
  std::uint16_t directory = not_noted;  // number of the set of its home's directory that notes copies of it
  int count() const { return std::popcount(sectors); }
  int bytes() const { return beside != 0 ? 0 : 32 * count() - 2 * (before + behind); }
};

class L2Cache {
 public:
  static constexpr int max_ways = 32;
  enum class Outcome : std::uint8_t { near_hit, far_hit, miss };

  /// `sets` a partition. Where more than `dirty_ways` lines of a set are dirty, the next access of the set, whatever
  /// line it is of, has the oldest of them written back, of those whose last access had `evict_first` where there are
  /// any: by the accesses before it, so that a write to that line goes to DRAM with it. `directory_sets` a partition:
  /// of more than 6 entries of one the oldest goes with the next access at home that its number names, a read or a
  /// write from either side or word that a copy is gone, but for an access from the other side that is its own; of 8,
  /// two. Each access from the other side makes its entry the youngest, and it goes once it has no copies.
  L2Cache(int partitions, int sets, int ways, int dirty_ways, int directory_sets = 0);

  /// An SM on `side` reads; a miss fills from DRAM. A clean line whose last access had `evict_first`, as a last use has
  /// (ld.lu, LDL.LU), is among the first to go; where none is, one that comes takes the oldest line's place as any
  /// other does, dirty or not.
  Outcome read(const CachedLine& line, int side, bool evict_first = false) {
    std::uint32_t* const near_set = set(partitions_ == 1 ? 0 : side, line);
    const int way = find(near_set, line.tag);
    if (way < 0) return read_beyond(near_set, way, line, side, evict_first);
    const int due = due_way(near_set);
    touch(near_set, way);
    mark(near_set, way, evict_first);
    clean_due(near_set, due);
    if ((line.sectors & ~sectors(near_set, way, present)) == 0) {
      if (side == line.home) access_at_home(line);
      return Outcome::near_hit;
    }
    return read_beyond(near_set, way, line, side, evict_first);
  }
  /// An SM on `side` asks for it in advance: a miss fills from DRAM, and what lives on the other side crosses but
  /// leaves no copy near, so that the read that follows brings it across again.
  Outcome prefetch(const CachedLine& line, int side);
  /// An SM on `side` writes: the line is allocated dirty at home, with a copy near, and DRAM is not read. Of a sector
  /// that has been written in part alone it is when the line is cleaned, or when it is read, unless the rest has been
  /// written before. Two lines of a set may have such sectors: a third has those of the older one completed and
  /// written.
  void write(const CachedLine& line, int side) { write(line, side, pieces_of(line)); }
  /// The same by a warp some of whose lanes do not store: all of its sectors are written in part.
  void write_with_gaps(const CachedLine& line, int side) { write(line, side, 0); }

  /// Nothing is in it, nor counted for it.
  void empty();

  /// From DRAM: what reads bring, of which some may never be asked for.
  std::int64_t filled_sectors() const { return filled_sectors_; }
  /// From DRAM: what was written in part when it was cleaned.
  std::int64_t completed_sectors() const { return completed_sectors_; }
  std::int64_t written_back_sectors() const { return written_back_sectors_; }
  /// Between the partitions: what is read beyond the near one that lives on the other side, and what is written there.
  std::int64_t crossed_sectors() const { return crossed_sectors_; }
  std::int64_t dirty_sectors() const { return dirty_sectors_; }
  std::int64_t incomplete_sectors() const;  // of these, those that have been written in part; counted when asked for

 private:
  static constexpr int pieces_a_sector = 8;
  static constexpr std::uint32_t pieces_of(const CachedLine& line) {
    const int first = std::countr_zero(line.sectors) * pieces_a_sector + line.before / 2;
    const int end = std::bit_width(line.sectors) * pieces_a_sector - line.behind / 2;
    return static_cast<std::uint32_t>((std::uint64_t{1} << end) - (std::uint64_t{1} << first));
  }
  /// A set is a block of words: tags of its ways | their ages: the set's clock when the way was last used, with the
  /// way in the lowest 5 bits | its clock | a bit a way: used, first to go, dirty, has sectors written in part | a byte
  /// a way: its sectors that are present, and those that are written | a word a way: which of its 32 pieces of 4 bytes
  /// writes of parts of sectors have had | where there are directories, a word a way: of a copy, the number of its
  /// directory set and one.
  enum Word : std::size_t { clock, used, first_to_go, dirty, in_part, num_words };
  enum Sectors : std::size_t { present, written, num_sectors };
  static constexpr std::size_t vector_ways = 16;
  static constexpr int way_bits = 5;
  std::uint32_t* set(int partition, const CachedLine& line) {
    return set(partition, line.set ^ (partition != line.home ? unsigned{line.paired} << 2 : 0u));
  }
  std::uint32_t* set(int partition, std::size_t index) {
    return &words_[(static_cast<std::size_t>(partition) * static_cast<std::size_t>(sets_per_partition_) + index) *
                   set_words_];
  }
  std::uint32_t* ages(std::uint32_t* set) const { return set + padded_ways_; }
  std::uint32_t& word(std::uint32_t* set, Word which) const { return set[2 * padded_ways_ + which]; }
  std::uint32_t word(const std::uint32_t* set, Word which) const { return set[2 * padded_ways_ + which]; }
  std::uint8_t sectors(const std::uint32_t* set, int way, Sectors which) const {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(set + 2 * padded_ways_ + num_words);
    return bytes[which * padded_ways_ + static_cast<std::size_t>(way)];
  }
  std::uint8_t& sectors(std::uint32_t* set, int way, Sectors which) const {
    auto* const bytes = reinterpret_cast<std::uint8_t*>(set + 2 * padded_ways_ + num_words);
    return bytes[which * padded_ways_ + static_cast<std::size_t>(way)];
  }
  std::uint32_t& pieces(std::uint32_t* set, int way) const {
    return set[2 * padded_ways_ + num_words + num_sectors * padded_ways_ / sizeof(std::uint32_t) +
               static_cast<std::size_t>(way)];
  }
  std::uint32_t& noted(std::uint32_t* set, int way) const {
    return set[3 * padded_ways_ + num_words + num_sectors * padded_ways_ / sizeof(std::uint32_t) +
               static_cast<std::size_t>(way)];
  }
  int find(const std::uint32_t* set, std::uint32_t tag) const {
    // without an early exit, so that the compiler compares eight tags at a time
    std::uint32_t hits = 0;
    for (std::size_t first = 0; first < padded_ways_; first += vector_ways) {
      std::uint32_t part = 0;
      for (std::size_t i = 0; i < vector_ways; ++i) part |= static_cast<std::uint32_t>(set[first + i] == tag) << i;
      hits |= part << first;
    }
    hits &= set[2 * padded_ways_ + used];
    return hits == 0 ? -1 : std::countr_zero(hits);
  }
  void touch(std::uint32_t* set, int way) const {
    // 27 bits of a set's clock are more than any walk's accesses to one set
    ages(set)[way] = ++word(set, clock) << way_bits | static_cast<std::uint32_t>(way);
  }
  /// Whether it is the first to go is what its last access says.
  void mark(std::uint32_t* set, int way, bool evict_first) const {
    std::uint32_t& to_go = word(set, first_to_go);
    to_go = (to_go & ~(1u << way)) | static_cast<std::uint32_t>(evict_first) << way;
  }
  /// A read that `near_set` does not have, or, where its `way` is not negative, not all sectors of.
  Outcome read_beyond(std::uint32_t* near_set, int way, const CachedLine& line, int side, bool evict_first);
  /// The least recently used way of those in `ways`, which is not 0.
  int oldest(std::uint32_t* set, std::uint32_t ways) const;
  /// The way that the access which now comes has cleaned, or -1. Asked before it, for clean_due() after it.
  int due_way(std::uint32_t* set) const {
    const std::uint32_t all = word(set, dirty), to_go = all & word(set, first_to_go);
    return std::popcount(all) <= dirty_ways_ ? -1 : oldest(set, to_go != 0 ? to_go : all);
  }
  void clean_due(std::uint32_t* set, int due) {
    if (due >= 0) clean(set, due);
  }
  /// The way that the line has now; `copy`: the set is not one of its home.
  int insert(std::uint32_t* set, const CachedLine& line, bool evict_first, bool copy);
  void insert_read(std::uint32_t* set, const CachedLine& line, bool evict_first, bool copy) {
    const int due = due_way(set);
    if (insert(set, line, evict_first, copy) != due) clean_due(set, due);
  }
  void forget(std::uint32_t* set, int way);

  static constexpr std::size_t directory_entries = 6;
  /// What the other partition has copies of.
  struct Entry {
    std::uint32_t tag;  // of its lines, with what their two lowest bits differ by from their sets'
    std::uint16_t set;  // the first of the four that the copies are in
  };
  struct Directory {
    std::size_t entries = 0;
    std::array<Entry, directory_entries + 2> entry;  // the oldest first
  };
  bool is_noted(const CachedLine& line) const { return directory_sets_ > 0 && line.directory != CachedLine::not_noted; }
  Directory& directory(int home, std::size_t number) {
    return directories_[static_cast<std::size_t>(home * directory_sets_) + number];
  }
  /// Calls f(set, way) for each copy of an entry.
  template <class F>
  void for_copies(int home, const Entry& entry, F&& f);
  static std::size_t find(const Directory& of, std::uint32_t tag);
  static void erase(Directory& of, std::size_t number);
  void drop_oldest(int home, Directory& of);
  void access_at_home(const CachedLine& line) {
    if (!is_noted(line)) return;
    if (Directory& of = directory(line.home, line.directory); of.entries > directory_entries)
      drop_oldest(line.home, of);
  }
  /// The other side reads beyond its partition, or writes.
  void access_from_afar(const CachedLine& line);
  /// A copy of the line with that tag is no longer there.
  void copy_gone(int home, std::size_t number, std::uint32_t tag);
  void write(const CachedLine& line, int side, std::uint32_t written_pieces);
  void make_dirty(std::uint32_t* set, int way, std::uint8_t more);
  void clean(std::uint32_t* set, int way) { write_back(set, way, sectors(set, way, written)); }
  void write_back(std::uint32_t* set, int way, std::uint8_t which);
  std::uint8_t incomplete(const std::uint32_t* set, int way) const {
    return sectors(set, way, written) & ~sectors(set, way, present) & 15;
  }
  void add_present(std::uint32_t* set, int way, std::uint8_t more) {
    sectors(set, way, present) |= more;
    if (incomplete(set, way) == 0) word(set, in_part) &= ~(1u << way);
  }
  /// Once a write of the way's sectors has been noted.
  void complete_another(std::uint32_t* set, int way);

  int partitions_;
  int sets_per_partition_;
  int ways_;
  std::size_t padded_ways_;  // a whole number of vectors
  std::size_t set_words_;
  int dirty_ways_;
  std::int64_t filled_sectors_ = 0, completed_sectors_ = 0, written_back_sectors_ = 0, crossed_sectors_ = 0,
               dirty_sectors_ = 0;
  std::vector<std::uint32_t> words_;
  int directory_sets_;
  std::vector<Directory> directories_;
};

}  // namespace attest
