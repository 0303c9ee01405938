#include "attest/simulator/l2_cache.h"

#include <algorithm>

namespace attest {

L2Cache::L2Cache(int partitions, int sets, int ways, int dirty_ways)
    : partitions_(partitions),
      sets_per_partition_(sets),
      ways_(ways),
      dirty_ways_(dirty_ways),
      sets_(static_cast<std::size_t>(partitions * sets)) {}

int L2Cache::find(const Set& set, std::uint32_t tag) {
  for (int i = 0; i < set.used; ++i)
    if (set.way[i].tag == tag) return i;
  return -1;
}

void L2Cache::touch(Set& set, int at) {
  const Way way = set.way[at];
  std::copy_backward(set.way.begin(), set.way.begin() + at, set.way.begin() + at + 1);
  set.way[0] = way;
}

void L2Cache::clean_oldest(Set& set) {
  for (int i = set.used - 1; i >= 0; --i) {
    if (set.way[i].dirty_sectors == 0) continue;
    written_back_sectors_ += set.way[i].dirty_sectors;
    set.way[i].dirty_sectors = 0;
    --set.dirty;
    return;
  }
}

void L2Cache::insert(Set& set, std::uint32_t tag, std::uint8_t dirty_sectors) {
  if (set.used < ways_) {
    ++set.used;
  } else if (const Way& last = set.way[set.used - 1]; last.dirty_sectors != 0) {
    written_back_sectors_ += last.dirty_sectors;
    --set.dirty;
  }
  std::copy_backward(set.way.begin(), set.way.begin() + set.used - 1, set.way.begin() + set.used);
  set.way[0] = {tag, dirty_sectors};
  if (dirty_sectors != 0 && ++set.dirty > dirty_ways_) clean_oldest(set);
}

L2Cache::Outcome L2Cache::read(const CachedLine& line, int side) {
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
      insert(home_set, line.tag, 0);
    }
  }
  insert(near_set, line.tag, 0);
  return outcome;
}

void L2Cache::write(const CachedLine& line, int side) {
  Set& home_set = set(line.home, line.set);
  if (const int at = find(home_set, line.tag); at >= 0) {
    touch(home_set, at);
    Way& way = home_set.way[0];
    const bool was_dirty = way.dirty_sectors != 0;
    way.dirty_sectors = std::max(way.dirty_sectors, line.sectors);
    if (!was_dirty && ++home_set.dirty > dirty_ways_) clean_oldest(home_set);
  } else {
    insert(home_set, line.tag, line.sectors);
  }
  if (partitions_ == 1) return;
  if (side == line.home) {  // the other side's copy is stale now
    Set& other = set(1 - line.home, line.set);
    if (const int at = find(other, line.tag); at >= 0) {
      std::copy(other.way.begin() + at + 1, other.way.begin() + other.used, other.way.begin() + at);
      --other.used;
    }
    return;
  }
  Set& near_set = set(side, line.set);
  if (const int at = find(near_set, line.tag); at >= 0)
    touch(near_set, at);
  else
    insert(near_set, line.tag, 0);
}

std::int64_t L2Cache::dirty_sectors() const {
  std::int64_t sectors = 0;
  for (const Set& s : sets_)
    for (int i = 0; i < s.used; ++i) sectors += s.way[i].dirty_sectors;
  return sectors;
}

}  // namespace attest
