#include "attest/simulator/l2_cache.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace attest {
namespace {

constexpr int vector_ways = 16, way_bits = 5;

}  // namespace

L2Cache::L2Cache(int partitions, int sets, int ways, int dirty_ways)
    : partitions_(partitions),
      sets_per_partition_(sets),
      ways_(ways),
      padded_ways_((ways + vector_ways - 1) / vector_ways * vector_ways),
      dirty_ways_(dirty_ways),
      sets_(static_cast<std::size_t>(partitions) * static_cast<std::size_t>(sets)),
      tags_(sets_.size() * static_cast<std::size_t>(padded_ways_)),
      ages_(tags_.size(), std::numeric_limits<std::uint32_t>::max()),
      dirty_sectors_(tags_.size()) {}

int L2Cache::find(std::size_t set, std::uint32_t tag) const {
  // without an early exit, so that the compiler compares eight tags at a time
  const std::uint32_t* tags = &tags_[first_way(set)];
  std::uint32_t hits = 0;
  for (int first = 0; first < padded_ways_; first += vector_ways) {
    std::uint32_t part = 0;
    for (int i = 0; i < vector_ways; ++i) part |= static_cast<std::uint32_t>(tags[first + i] == tag) << i;
    hits |= part << first;
  }
  hits &= sets_[set].used;
  return hits == 0 ? -1 : std::countr_zero(hits);
}

/// 27 bits of a set's clock are more than any walk's accesses to one set.
void L2Cache::touch(std::size_t set, int way) {
  ages_[first_way(set) + static_cast<std::size_t>(way)] =
      ++sets_[set].clock << way_bits | static_cast<std::uint32_t>(way);
}

int L2Cache::oldest(std::size_t set, std::uint32_t ways) const {
  const std::uint32_t* ages = &ages_[first_way(set)];
  constexpr std::uint32_t never = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t least = never;
  for (int first = 0; first < padded_ways_; first += vector_ways) {
    const std::uint32_t part = ways >> first;
    for (int i = 0; i < vector_ways; ++i) least = std::min(least, (part >> i & 1) != 0 ? ages[first + i] : never);
  }
  return static_cast<int>(least & ((1u << way_bits) - 1));
}

void L2Cache::clean(std::size_t set, int way) {
  std::uint8_t& sectors = dirty_sectors_[first_way(set) + static_cast<std::size_t>(way)];
  written_back_sectors_ += sectors;
  sectors = 0;
  sets_[set].dirty &= ~(1u << way);
}

void L2Cache::make_dirty(std::size_t set, int way, std::uint8_t sectors) {
  std::uint8_t& dirty = dirty_sectors_[first_way(set) + static_cast<std::size_t>(way)];
  dirty = std::max(dirty, sectors);
  Set& s = sets_[set];
  s.dirty |= 1u << way;
  if (std::popcount(s.dirty) > dirty_ways_) clean(set, oldest(set, s.dirty));
}

void L2Cache::insert(std::size_t set, std::uint32_t tag, std::uint8_t dirty_sectors, bool evict_first) {
  Set& s = sets_[set];
  const std::uint32_t all = ways_ == 32 ? ~0u : (1u << ways_) - 1;
  int way = 0;
  if (s.used != all) {
    way = std::countr_one(s.used);
  } else if (s.first_to_go != 0) {
    way = oldest(set, s.first_to_go);
  } else {
    if (evict_first) return;
    way = oldest(set, all);
  }
  const std::uint32_t bit = 1u << way;
  if ((s.dirty & bit) != 0) clean(set, way);
  s.used |= bit;
  s.first_to_go = evict_first ? s.first_to_go | bit : s.first_to_go & ~bit;
  tags_[first_way(set) + static_cast<std::size_t>(way)] = tag;
  touch(set, way);
  if (dirty_sectors != 0) make_dirty(set, way, dirty_sectors);
}

L2Cache::Outcome L2Cache::read(const CachedLine& line, int side, bool evict_first) {
  const int near_side = partitions_ == 1 ? 0 : side;
  const std::size_t near_set = set(near_side, line.set);
  if (const int way = find(near_set, line.tag); way >= 0) {
    touch(near_set, way);
    return Outcome::near_hit;
  }
  Outcome outcome = Outcome::miss;
  if (near_side != line.home) {
    const std::size_t home_set = set(line.home, line.set);
    if (const int way = find(home_set, line.tag); way >= 0) {
      touch(home_set, way);
      outcome = Outcome::far_hit;
    } else {
      insert(home_set, line.tag, 0, evict_first);
    }
  }
  insert(near_set, line.tag, 0, evict_first);
  return outcome;
}

void L2Cache::write(const CachedLine& line, int side) {
  const std::size_t home_set = set(line.home, line.set);
  if (const int way = find(home_set, line.tag); way >= 0) {
    touch(home_set, way);
    make_dirty(home_set, way, line.sectors);
  } else {
    insert(home_set, line.tag, line.sectors, false);
  }
  if (partitions_ == 1) return;
  const std::size_t other_set = set(1 - line.home, line.set);
  const int copy = find(other_set, line.tag);
  if (side == line.home) {  // the other side's copy is stale now
    if (copy < 0) return;
    const std::uint32_t kept = ~(1u << copy);
    sets_[other_set].used &= kept, sets_[other_set].first_to_go &= kept;
  } else if (copy >= 0) {
    touch(other_set, copy);
  } else {
    insert(other_set, line.tag, 0, false);
  }
}

std::int64_t L2Cache::dirty_sectors() const {
  std::int64_t sectors = 0;
  for (const std::uint8_t s : dirty_sectors_) sectors += s;
  return sectors;
}

}  // namespace attest
