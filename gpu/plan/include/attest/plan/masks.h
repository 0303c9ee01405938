// What a query sees, and the class of each key tile of a tile of queries. `Plan` supplies the tiles' shape and, for one
// query, its ends: key_begin, key_end (causal, windows, length), prefix_end, document_begin, document_end. None of
// these falls as the query grows, which is what lets a tile be judged by its first and last query.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

#include "attest/plan/work.h"

namespace attest {

/// The document that holds `position`: how many documents end at or before it.
constexpr int document_of(const Work& work, int position) {
  int low = 0, high = work.num_documents;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (work.document_ends[middle] <= position)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/// The mask of one query: its document's ends found once, then a few compares a key.
template <class Plan>
class RowMask {
 public:
  constexpr RowMask(const Plan& plan, const Work& work, int row)
      : plan_(plan),
        work_(work),
        row_(row),
        begin_(plan.document_begin(work, row)),
        end_(plan.document_end(work, row)),
        prefix_(plan.prefix_end(work)) {}
  constexpr bool sees(int key) const {
    return key >= begin_ && key < end_ && (key < prefix_ || plan_.visible(work_, row_, key));
  }

 private:
  const Plan& plan_;
  const Work& work_;
  int row_, begin_, end_, prefix_;
};

enum class TileClass : std::uint8_t { skip, full, partial };

/// Key tiles that are visited: [begin, end), and below them [prefix_begin, prefix_end), which hold keys of the prefix
/// that nothing else shows. Of these, [full_begin, full_end) and [prefix_full_begin, prefix_full_end) need no mask.
struct TileRange {
  int begin = 0, end = 0;
  int full_begin = 0, full_end = 0;
  int prefix_begin = 0, prefix_end = 0;
  int prefix_full_begin = 0, prefix_full_end = 0;

  constexpr int size() const { return end - begin + prefix_end - prefix_begin; }
  friend constexpr bool operator==(const TileRange&, const TileRange&) = default;
};

/// Keys [low, high) that a tile of queries sees some of, and [full_low, full_high) that all of them see.
struct KeyInterval {
  int low = 0, high = 0, full_low = 0, full_high = 0;
  constexpr bool empty() const { return high <= low; }
  constexpr bool touches(int key0, int key1) const { return !empty() && key0 < high && key1 > low; }
  constexpr bool covers(int key0, int key1) const { return key0 >= full_low && key1 <= full_high; }
};

/// The interval around the diagonal, and the prefix where it stands apart: where it reaches up to what causal and
/// windows leave to every query, the two are one.
struct VisibleKeys {
  KeyInterval main, prefix;
};

template <class Plan>
constexpr VisibleKeys visible_keys(const Plan& plan, const Work& work) {
  const int first = work.q_tile * plan.tile_m, last = std::min(first + plan.tile_m, work.seqlen_q) - 1;
  if (last < first) return {};
  if (plan.prefix_end(work) <= 0 && work.num_documents == 0)  // the same in fewer steps
    return {{std::max(plan.key_begin(work, first), 0), plan.key_end(work, last),
             std::max(plan.key_begin(work, last), 0), plan.key_end(work, first)},
            {}};
  const int prefix = std::max(plan.prefix_end(work), 0);
  const bool joined = prefix > 0 && prefix >= plan.key_begin(work, last);
  const auto low = [&](int row) {
    return std::max({plan.document_begin(work, row), joined ? 0 : plan.key_begin(work, row), 0});
  };
  const auto high = [&](int row) {
    const int end = std::max(plan.key_end(work, row), joined ? prefix : 0);
    return std::min(plan.document_end(work, row), end);
  };
  VisibleKeys keys{{low(first), high(last), low(last), high(first)}, {}};
  if (prefix > 0 && !joined)
    keys.prefix = {plan.document_begin(work, first), std::min(plan.document_end(work, last), prefix),
                   plan.document_begin(work, last), std::min(plan.document_end(work, first), prefix)};
  return keys;
}

/// The one classifier: what a tile of queries has to do with a tile of keys. `full`: every query sees every key;
/// `skip`: none sees any. Without prefix and documents the converse holds too.
template <class Plan>
constexpr TileClass classify(const Plan& plan, const Work& work, int key_tile) {
  const VisibleKeys keys = visible_keys(plan, work);
  const int key0 = key_tile * plan.tile_n, key1 = key0 + plan.tile_n;
  if (keys.main.touches(key0, key1)) return keys.main.covers(key0, key1) ? TileClass::full : TileClass::partial;
  if (keys.prefix.touches(key0, key1)) return keys.prefix.covers(key0, key1) ? TileClass::full : TileClass::partial;
  return TileClass::skip;
}

/// classify() over all key tiles at once, in closed form.
template <class Plan>
constexpr TileRange tile_range(const Plan& plan, const Work& work) {
  const VisibleKeys keys = visible_keys(plan, work);
  const auto n = static_cast<unsigned>(plan.tile_n);
  TileRange range, prefix;
  const auto tiles = [n](const KeyInterval& k, int last_end) {
    if (k.empty()) return TileRange{};
    // low is not negative, so neither is high; unsigned divisions by a power of two are shifts
    const auto down = [n](int x) { return static_cast<int>(static_cast<unsigned>(std::max(x, 0)) / n); };
    const auto up = [n](int x) { return static_cast<int>((static_cast<unsigned>(x) + n - 1) / n); };
    TileRange r{down(k.low), std::min(up(k.high), last_end)};
    r.full_end = std::clamp(down(k.full_high), r.begin, r.end);
    r.full_begin = std::clamp(up(k.full_low), r.begin, r.full_end);
    return r;
  };
  range = tiles(keys.main, std::numeric_limits<int>::max());
  if (keys.prefix.empty()) return range;
  const bool alone = range.begin == range.end;
  prefix = tiles(keys.prefix,
                 alone ? std::numeric_limits<int>::max() : std::max(range.begin, keys.prefix.low / plan.tile_n));
  if (alone) return prefix;
  range.prefix_begin = prefix.begin, range.prefix_end = prefix.end;
  range.prefix_full_begin = prefix.full_begin, range.prefix_full_end = prefix.full_end;
  return range;
}

/// In which order a CTA walks its key tiles.
enum class KeyOrder : std::uint8_t { descending, ascending };

/// A CTA's walk over the tiles of a range: positions [first, last), of which a split has its share. Positions come in
/// six runs, some of them empty: masked, full, masked around the diagonal, then likewise in the prefix.
struct KeyWalk {
  TileRange range;
  KeyOrder order = KeyOrder::descending;
  int first = 0, last = 0;

  constexpr int tile(int position) const {
    const int main = range.end - range.begin;
    const int i = order == KeyOrder::ascending ? range.size() - 1 - position : position;
    return i < main ? range.end - 1 - i : range.prefix_end - 1 - (i - main);
  }
  /// First position past run 0 to 5. Runs 1 and 4 need no mask, in either order.
  constexpr int run_end(int run) const {
    const int size = range.size();
    const int end = run == 5                        ? size
                    : order == KeyOrder::descending ? descending_run_end(run)
                                                    : size - descending_run_end(4 - run);
    return std::min(end, last);
  }

 private:
  constexpr int descending_run_end(int run) const {
    const int main = range.end - range.begin;
    switch (run) {
      case 0:
        return range.end - range.full_end;
      case 1:
        return range.end - range.full_begin;
      case 2:
        return main;
      case 3:
        return main + range.prefix_end - range.prefix_full_end;
      default:
        return main + range.prefix_end - range.prefix_full_begin;
    }
  }
};

/// The share of split `split` of `num_splits`: as many tiles each as it takes, so the last ones may have none.
constexpr KeyWalk key_walk(const TileRange& range, KeyOrder order, int split, int num_splits) {
  const int size = range.size(), share = num_splits == 1 ? size : (size + num_splits - 1) / num_splits;
  return {range, order, std::min(split * share, size), std::min((split + 1) * share, size)};
}

}  // namespace attest
