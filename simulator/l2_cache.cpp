#include "attest/simulator/l2_cache.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

namespace attest {
namespace {

/// What a read brings: the 64-byte halves that its sectors are in, or the whole line.
constexpr CachedLine brought(CachedLine line) {
  line.sectors = line.whole ? 15 : (line.sectors | (line.sectors & 5) << 1 | (line.sectors & 10) >> 1) & 15;
  return line;
}

constexpr int lines_in_part = 2;  // of a set (`write_parts`)

constexpr std::uint32_t never = std::numeric_limits<std::uint32_t>::max();

}  // namespace

L2Cache::L2Cache(int partitions, int sets, int ways, int dirty_ways, int directory_sets)
    : partitions_(partitions),
      sets_per_partition_(sets),
      ways_(ways),
      padded_ways_((static_cast<std::size_t>(ways) + vector_ways - 1) / vector_ways * vector_ways),
      set_words_((directory_sets == 0 ? 3 : 4) * padded_ways_ + num_words +
                 num_sectors * padded_ways_ / sizeof(std::uint32_t)),
      dirty_ways_(dirty_ways),
      words_(static_cast<std::size_t>(partitions) * static_cast<std::size_t>(sets) * set_words_),
      directory_sets_(directory_sets),
      directories_(static_cast<std::size_t>(partitions) * static_cast<std::size_t>(directory_sets)) {}

int L2Cache::oldest(std::uint32_t* set, std::uint32_t ways) const {
  std::uint32_t least = never;
  for (std::size_t first = 0; first < padded_ways_; first += vector_ways)
    for (std::size_t i = 0; i < vector_ways; ++i)
      least = std::min(least, (ways >> first >> i & 1) != 0 ? ages(set)[first + i] : never);
  return static_cast<int>(least & ((1u << way_bits) - 1));
}

void L2Cache::write_back(std::uint32_t* set, int way, std::uint8_t which) {
  std::uint8_t& dirty_now = sectors(set, way, written);
  const int n = std::popcount(which);
  written_back_sectors_ += n, dirty_sectors_ -= n;
  completed_sectors_ += std::popcount(static_cast<std::uint8_t>(which & incomplete(set, way)));
  dirty_now &= ~which;
  if (dirty_now == 0) word(set, dirty) &= ~(1u << way);
  add_present(set, way, which);
}

void L2Cache::complete_another(std::uint32_t* set, int way) {
  std::uint32_t& ways = word(set, in_part);
  const std::uint32_t bit = 1u << way;
  if (incomplete(set, way) != 0) ways |= bit;
  if (std::popcount(ways) <= lines_in_part) return;
  const int other = oldest(set, ways & ~bit);
  write_back(set, other, incomplete(set, other));
}

void L2Cache::make_dirty(std::uint32_t* set, int way, std::uint8_t more) {
  std::uint8_t& dirty_now = sectors(set, way, written);
  dirty_sectors_ += std::popcount(static_cast<std::uint8_t>(more & ~dirty_now));
  dirty_now |= more;
  word(set, dirty) |= 1u << way;
}

int L2Cache::insert(std::uint32_t* set, const CachedLine& line, bool evict_first, bool copy) {
  const std::uint32_t all = ways_ == 32 ? ~0u : (1u << ways_) - 1, to_go = word(set, first_to_go) & ~word(set, dirty);
  const int way = word(set, used) != all ? std::countr_one(word(set, used)) : oldest(set, to_go != 0 ? to_go : all);
  const std::uint32_t bit = 1u << way;
  if ((word(set, dirty) & bit) != 0) clean(set, way);
  const std::uint32_t before = set[way];
  word(set, used) |= bit;
  mark(set, way, evict_first);
  set[way] = line.tag;
  sectors(set, way, present) = line.sectors;
  pieces(set, way) = 0;
  touch(set, way);
  if (directory_sets_ > 0) {
    const std::uint32_t gone = std::exchange(noted(set, way), copy && is_noted(line) ? line.directory + 1u : 0u);
    // sets of partition 1 stand behind those of partition 0
    const bool of_first = set < words_.data() + static_cast<std::size_t>(sets_per_partition_) * set_words_;
    if (gone != 0) copy_gone(of_first ? 1 : 0, gone - 1, before);
  }
  return way;
}

void L2Cache::forget(std::uint32_t* set, int way) {
  const std::uint32_t kept = ~(1u << way);
  word(set, used) &= kept, word(set, first_to_go) &= kept;
  if (directory_sets_ > 0) noted(set, way) = 0;
}

template <class F>
void L2Cache::for_copies(int home, const Entry& entry, F&& f) {
  for (std::uint32_t line = 0; line < 4; ++line) {
    std::uint32_t* const at = set(1 - home, entry.set | line);
    if (const int way = find(at, entry.tag ^ line); way >= 0) f(at, way);
  }
}

std::size_t L2Cache::find(const Directory& of, std::uint32_t tag) {
  std::size_t number = 0;
  while (number < of.entries && (of.entry[number].tag ^ tag) >= 4) ++number;
  return number;
}

void L2Cache::erase(Directory& of, std::size_t number) {
  std::copy(of.entry.begin() + static_cast<std::ptrdiff_t>(number) + 1,
            of.entry.begin() + static_cast<std::ptrdiff_t>(of.entries),
            of.entry.begin() + static_cast<std::ptrdiff_t>(number));
  --of.entries;
}

void L2Cache::drop_oldest(int home, Directory& of) {
  for_copies(home, of.entry[0], [&](std::uint32_t* at, int way) { forget(at, way); });
  erase(of, 0);
}

void L2Cache::access_from_afar(const CachedLine& line) {
  if (!is_noted(line)) return;
  Directory& of = directory(line.home, line.directory);
  std::size_t number = find(of, line.tag);
  if (number == of.entries) {
    const unsigned set = line.set ^ unsigned { line.paired } << 2;
    of.entry[of.entries++] = {line.tag ^ (set & 3), static_cast<std::uint16_t>(set & ~3u)};
    if (of.entries == of.entry.size()) drop_oldest(line.home, of), drop_oldest(line.home, of);
    return;
  }
  if (of.entries > directory_entries && number > 0) drop_oldest(line.home, of), --number;
  std::rotate(of.entry.begin() + static_cast<std::ptrdiff_t>(number),
              of.entry.begin() + static_cast<std::ptrdiff_t>(number) + 1,
              of.entry.begin() + static_cast<std::ptrdiff_t>(of.entries));
}

void L2Cache::copy_gone(int home, std::size_t number, std::uint32_t tag) {
  Directory& of = directory(home, number);
  if (of.entries > directory_entries) drop_oldest(home, of);
  const std::size_t at = find(of, tag);
  if (at == of.entries) return;
  bool left = false;
  for_copies(home, of.entry[at], [&](std::uint32_t*, int) { left = true; });
  if (!left) erase(of, at);
}

std::int64_t L2Cache::incomplete_sectors() const {
  std::int64_t n = 0;
  for (auto words = words_.begin(); words != words_.end(); words += static_cast<std::ptrdiff_t>(set_words_)) {
    const std::uint32_t* const set = &*words;
    for (std::uint32_t left = word(set, dirty); left != 0; left &= left - 1) {
      const int way = std::countr_zero(left);
      n += std::popcount(incomplete(set, way));
    }
  }
  return n;
}

void L2Cache::empty() {
  std::ranges::fill(words_, 0);
  for (Directory& of : directories_) of.entries = 0;
  dirty_sectors_ = 0;
}

L2Cache::Outcome L2Cache::read_beyond(std::uint32_t* near_set, int way, const CachedLine& line, int side,
                                      bool evict_first) {
  Outcome outcome = Outcome::miss;
  const CachedLine fetched = brought(line);
  CachedLine lacking = fetched;
  if (way >= 0) lacking.sectors = fetched.sectors & ~sectors(near_set, way, present) & 15;
  if (partitions_ > 1 && side != line.home) {
    crossed_sectors_ += lacking.count();
    std::uint32_t* const home_set = set(line.home, line);
    if (const int at_home = find(home_set, line.tag); at_home >= 0) {
      const int due = due_way(home_set);
      touch(home_set, at_home);
      mark(home_set, at_home, evict_first);
      clean_due(home_set, due);
      const std::uint8_t there = sectors(home_set, at_home, present);
      CachedLine beyond = lacking;
      beyond.sectors = lacking.sectors & ~there & 15;
      if (beyond.sectors == 0) outcome = Outcome::far_hit;
      filled_sectors_ += beyond.count();
      add_present(home_set, at_home, lacking.sectors);
    } else {
      filled_sectors_ += lacking.count();
      insert_read(home_set, lacking, evict_first, false);
    }
    access_from_afar(line);
  } else {
    filled_sectors_ += lacking.count();
    access_at_home(line);
  }
  if (way >= 0)
    add_present(near_set, way, fetched.sectors);
  else
    insert_read(near_set, fetched, evict_first, partitions_ > 1 && side != line.home);
  return outcome;
}

L2Cache::Outcome L2Cache::prefetch(const CachedLine& line, int side) {
  const bool far = partitions_ > 1 && side != line.home;
  if (far) {
    std::uint32_t* const near_set = set(side, line);
    const int copy = find(near_set, line.tag);
    if (copy >= 0 && (line.sectors & ~sectors(near_set, copy, present)) == 0) return Outcome::near_hit;
    crossed_sectors_ += brought(line).count();
  }
  const Outcome at_home = read(line, line.home);
  return far && at_home == Outcome::near_hit ? Outcome::far_hit : at_home;
}

void L2Cache::write(const CachedLine& line, int side, std::uint32_t written_pieces) {
  const auto write_to = [&](std::uint32_t* set, int way) {
    const std::uint32_t all = pieces(set, way) |= written_pieces;
    std::uint8_t full = 0;
    for (int sector = 0; sector < 4; ++sector)
      full |= static_cast<std::uint8_t>((all >> sector * pieces_a_sector & 255) == 255) << sector;
    add_present(set, way, line.sectors & full);
  };
  CachedLine bare = line;
  bare.sectors = 0;
  const auto access = [&](std::uint32_t* set, bool copy) {
    int due = due_way(set), way = find(set, line.tag);
    if (way < 0) {
      way = insert(set, bare, false, copy);
      if (way == due) due = -1;
    } else {
      touch(set, way);
      mark(set, way, false);
    }
    write_to(set, way);
    if (!copy) {
      make_dirty(set, way, line.sectors);
      complete_another(set, way);
    }
    clean_due(set, due);
  };
  access(set(line.home, line), false);
  if (partitions_ == 1) return;
  std::uint32_t* const other_set = set(1 - line.home, line);
  if (side != line.home) {
    crossed_sectors_ += line.count();
    access_from_afar(line);
    access(other_set, true);
    return;
  }
  access_at_home(line);
  if (const int copy = find(other_set, line.tag); copy >= 0) {  // it is stale now
    forget(other_set, copy);
    if (is_noted(line)) copy_gone(line.home, line.directory, line.tag);
  }
}

}  // namespace attest
