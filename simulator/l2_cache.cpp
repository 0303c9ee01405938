#include "attest/simulator/l2_cache.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace attest {

L2Cache::L2Cache(int partitions, int sets, int ways, int dirty_ways)
    : partitions_(partitions),
      sets_per_partition_(sets),
      ways_(ways),
      dirty_ways_(dirty_ways),
      sets_(static_cast<std::size_t>(partitions) * static_cast<std::size_t>(sets)) {}

int L2Cache::find(const Set& set, std::uint32_t tag) const {
  // without an early exit, so that the compiler compares eight tags at a time; ways past `used` are left out below
  std::uint32_t hits = 0;
  for (int i = 0; i < max_ways; ++i) hits |= static_cast<std::uint32_t>(set.tag[i] == tag) << i;
  hits &= set.used == 32 ? ~0u : (1u << set.used) - 1;
  return hits == 0 ? -1 : std::countr_zero(hits);
}

void L2Cache::touch(Set& set, int at) {
  const std::uint32_t tag = set.tag[at];
  const std::uint8_t dirty = set.dirty_sectors[at];
  const std::uint32_t first_to_go = set.first_to_go >> at & 1;
  shift(set, at);
  set.tag[0] = tag;
  set.dirty_sectors[0] = dirty;
  set.first_to_go |= first_to_go;
}

void L2Cache::shift(Set& set, int count) {
  std::memmove(&set.tag[1], &set.tag[0], static_cast<std::size_t>(count) * sizeof(set.tag[0]));
  std::memmove(&set.dirty_sectors[1], &set.dirty_sectors[0], static_cast<std::size_t>(count));
  const std::uint32_t moved = (2u << count) - 1;
  set.first_to_go = (set.first_to_go & ~moved) | (set.first_to_go << 1 & moved);
}

void L2Cache::clean_oldest(Set& set) {
  for (int i = set.used - 1; i >= 0; --i) {
    if (set.dirty_sectors[i] == 0) continue;
    written_back_sectors_ += set.dirty_sectors[i];
    set.dirty_sectors[i] = 0;
    --set.dirty;
    return;
  }
}

void L2Cache::insert(Set& set, std::uint32_t tag, std::uint8_t dirty_sectors, bool evict_first) {
  if (set.used < ways_) {
    shift(set, set.used++);
  } else {
    const int oldest_to_go = std::bit_width(set.first_to_go) - 1;
    if (oldest_to_go < 0 && evict_first) return;
    const int victim = oldest_to_go >= 0 ? oldest_to_go : set.used - 1;
    if (const std::uint8_t sectors = set.dirty_sectors[victim]; sectors != 0) {
      written_back_sectors_ += sectors;
      --set.dirty;
    }
    shift(set, victim);
  }
  set.tag[0] = tag;
  set.dirty_sectors[0] = dirty_sectors;
  set.first_to_go |= static_cast<std::uint32_t>(evict_first);
  if (dirty_sectors != 0 && ++set.dirty > dirty_ways_) clean_oldest(set);
}

L2Cache::Outcome L2Cache::read(const CachedLine& line, int side, bool evict_first) {
  const int near_side = partitions_ == 1 ? 0 : side;
  Set& near_set = set(near_side, line.set);
  if (const int at = find(near_set, line.tag); at >= 0) {
    touch(near_set, at);
    return Outcome::near_hit;
  }
  Outcome outcome = Outcome::miss;
  if (near_side != line.home) {
    Set& home_set = set(line.home, line.set);
    if (const int at = find(home_set, line.tag); at >= 0) {
      touch(home_set, at);
      outcome = Outcome::far_hit;
    } else {
      insert(home_set, line.tag, 0, evict_first);
    }
  }
  insert(near_set, line.tag, 0, evict_first);
  return outcome;
}

void L2Cache::write(const CachedLine& line, int side) {
  Set& home_set = set(line.home, line.set);
  if (const int at = find(home_set, line.tag); at >= 0) {
    touch(home_set, at);
    std::uint8_t& dirty = home_set.dirty_sectors[0];
    const bool was_dirty = dirty != 0;
    dirty = std::max(dirty, line.sectors);
    if (!was_dirty && ++home_set.dirty > dirty_ways_) clean_oldest(home_set);
  } else {
    insert(home_set, line.tag, line.sectors, false);
  }
  if (partitions_ == 1) return;
  if (side == line.home) {  // the other side's copy is stale now
    Set& other = set(1 - line.home, line.set);
    if (const int at = find(other, line.tag); at >= 0) {
      std::copy(other.tag.begin() + at + 1, other.tag.begin() + other.used, other.tag.begin() + at);
      std::copy(other.dirty_sectors.begin() + at + 1, other.dirty_sectors.begin() + other.used,
                other.dirty_sectors.begin() + at);
      const std::uint32_t below = (1u << at) - 1;
      other.first_to_go = (other.first_to_go & below) | (other.first_to_go >> 1 & ~below);
      --other.used;
    }
    return;
  }
  Set& near_set = set(side, line.set);
  if (const int at = find(near_set, line.tag); at >= 0)
    touch(near_set, at);
  else
    insert(near_set, line.tag, 0, false);
}

std::int64_t L2Cache::dirty_sectors() const {
  std::int64_t sectors = 0;
  for (const Set& s : sets_)
    for (int i = 0; i < s.used; ++i) sectors += s.dirty_sectors[i];
  return sectors;
}

}  // namespace attest
