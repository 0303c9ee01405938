#include "attest/simulator/l2_cache.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace attest {
namespace {

/// What a read brings: the 64-byte halves that its sectors are in, or the whole line.
constexpr CachedLine brought(CachedLine line) {
  line.sectors = line.whole ? 15 : (line.sectors | (line.sectors & 5) << 1 | (line.sectors & 10) >> 1) & 15;
  return line;
}

constexpr std::uint32_t never = std::numeric_limits<std::uint32_t>::max();

}  // namespace

L2Cache::L2Cache(int partitions, int sets, int ways, int dirty_ways)
    : partitions_(partitions),
      sets_per_partition_(sets),
      ways_(ways),
      padded_ways_((static_cast<std::size_t>(ways) + vector_ways - 1) / vector_ways * vector_ways),
      set_words_(2 * padded_ways_ + num_words + num_sectors * padded_ways_ / sizeof(std::uint32_t)),
      dirty_ways_(dirty_ways),
      words_(static_cast<std::size_t>(partitions) * static_cast<std::size_t>(sets) * set_words_) {}

int L2Cache::oldest(std::uint32_t* set, std::uint32_t ways) const {
  std::uint32_t least = never;
  for (std::size_t first = 0; first < padded_ways_; first += vector_ways)
    for (std::size_t i = 0; i < vector_ways; ++i)
      least = std::min(least, (ways >> first >> i & 1) != 0 ? ages(set)[first + i] : never);
  return static_cast<int>(least & ((1u << way_bits) - 1));
}

int L2Cache::one_of_the_older_half(std::uint32_t* set, std::uint32_t ways) {
  state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
  const auto half = static_cast<std::uint32_t>(std::popcount(ways)) / 2;
  for (std::uint32_t younger = half == 0 ? 0 : static_cast<std::uint32_t>(state_ >> 33) % half; younger > 0; --younger)
    ways &= ~(1u << oldest(set, ways));
  return oldest(set, ways);
}

void L2Cache::clean(std::uint32_t* set, int way) {
  std::uint8_t& dirty_now = sectors(set, way, written);
  const int n = std::popcount(dirty_now);
  written_back_sectors_ += n, dirty_sectors_ -= n;
  dirty_now = 0;
  word(set, dirty) &= ~(1u << way);
}

void L2Cache::make_dirty(std::uint32_t* set, int way, std::uint8_t more) {
  std::uint8_t& dirty_now = sectors(set, way, written);
  dirty_sectors_ += std::popcount(static_cast<std::uint8_t>(more & ~dirty_now));
  dirty_now |= more;
  std::uint32_t& ways = word(set, dirty);
  ways |= 1u << way;
  if (std::popcount(ways) > dirty_ways_) clean(set, one_of_the_older_half(set, ways));
}

void L2Cache::insert(std::uint32_t* set, const CachedLine& line, bool is_written, bool evict_first) {
  const std::uint32_t all = ways_ == 32 ? ~0u : (1u << ways_) - 1, to_go = word(set, first_to_go);
  int way = 0;
  if (word(set, used) != all) {
    way = std::countr_one(word(set, used));
  } else if (to_go != 0) {
    way = oldest(set, to_go);
  } else {
    if (evict_first) return;
    way = oldest(set, all);
  }
  const std::uint32_t bit = 1u << way;
  if ((word(set, dirty) & bit) != 0) clean(set, way);
  word(set, used) |= bit;
  word(set, first_to_go) = evict_first ? to_go | bit : to_go & ~bit;
  set[way] = line.tag;
  sectors(set, way, present) = line.sectors;
  touch(set, way);
  if (is_written) make_dirty(set, way, line.sectors);
}

L2Cache::Outcome L2Cache::read_beyond(std::uint32_t* near_set, int way, const CachedLine& line, int side,
                                      bool evict_first) {
  Outcome outcome = Outcome::miss;
  const CachedLine fetched = brought(line);
  CachedLine lacking = fetched;
  if (way >= 0) lacking.sectors = fetched.sectors & ~sectors(near_set, way, present) & 15;
  if (partitions_ > 1 && side != line.home) {
    crossed_sectors_ += lacking.count();
    std::uint32_t* const home_set = set(line.home, line.set);
    if (const int at_home = find(home_set, line.tag); at_home >= 0) {
      touch(home_set, at_home);
      if (evict_first) word(home_set, first_to_go) |= 1u << at_home;
      std::uint8_t& there = sectors(home_set, at_home, present);
      CachedLine beyond = lacking;
      beyond.sectors = lacking.sectors & ~there & 15;
      if (beyond.sectors == 0) outcome = Outcome::far_hit;
      filled_sectors_ += beyond.count();
      there |= lacking.sectors;
    } else {
      filled_sectors_ += lacking.count();
      insert(home_set, lacking, false, evict_first);
    }
  } else {
    filled_sectors_ += lacking.count();
  }
  if (way >= 0)
    sectors(near_set, way, present) |= fetched.sectors;
  else
    insert(near_set, fetched, false, evict_first);
  return outcome;
}

L2Cache::Outcome L2Cache::prefetch(const CachedLine& line, int side) {
  const bool far = partitions_ > 1 && side != line.home;
  if (far) {
    std::uint32_t* const near_set = set(side, line.set);
    const int copy = find(near_set, line.tag);
    if (copy >= 0 && (line.sectors & ~sectors(near_set, copy, present)) == 0) return Outcome::near_hit;
    crossed_sectors_ += brought(line).count();
  }
  const Outcome at_home = read(line, line.home);
  return far && at_home == Outcome::near_hit ? Outcome::far_hit : at_home;
}

void L2Cache::write(const CachedLine& line, int side) {
  std::uint32_t* const home_set = set(line.home, line.set);
  if (const int way = find(home_set, line.tag); way >= 0) {
    touch(home_set, way);
    sectors(home_set, way, present) |= line.sectors;
    make_dirty(home_set, way, line.sectors);
  } else {
    insert(home_set, line, true, false);
  }
  if (partitions_ == 1) return;
  std::uint32_t* const other_set = set(1 - line.home, line.set);
  const int copy = find(other_set, line.tag);
  if (side == line.home) {  // the other side's copy is stale now
    if (copy < 0) return;
    const std::uint32_t kept = ~(1u << copy);
    word(other_set, used) &= kept, word(other_set, first_to_go) &= kept;
    return;
  }
  crossed_sectors_ += line.count();
  if (copy < 0) return insert(other_set, line, false, false);
  touch(other_set, copy);
  sectors(other_set, copy, present) |= line.sectors;
}

}  // namespace attest
