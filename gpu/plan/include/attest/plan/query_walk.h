// The query tiles that a key tile has to do with: the forward's classifier, read along the other axis.
#pragma once
#include "attest/plan/backward_plan.h"

namespace attest {

/// Query tiles [begin, end): all that see a key of the tile lie in it. Those inside that see none are left out by
/// classify(), such as queries between a prefix and a window; but one that holds a document's end may stay.
struct QueryRange {
  int begin = 0, end = 0;
};

/// By bisection: neither the highest nor the lowest key that a query tile sees ever falls as the tile grows.
template <class Plan>
constexpr QueryRange query_range(const Plan& plan, const BackwardWork& work) {
  const int tiles = (work.seqlen_q + plan.tile_m - 1) / plan.tile_m;
  const int key0 = work.k_tile * plan.tile_n, key1 = key0 + plan.tile_n;
  const auto first_tile = [&](auto past) {
    int low = 0, high = tiles;
    while (low < high) {
      const int middle = low + (high - low) / 2;
      if (past(visible_keys(plan, work.at(middle))))
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  };
  const bool prefix = plan.prefix_end(work) > 0;
  QueryRange range;
  range.begin = first_tile([&](const VisibleKeys& k) { return std::max(k.main.high, k.prefix.high) > key0; });
  range.end = first_tile([&](const VisibleKeys& k) { return (prefix ? k.prefix.low : k.main.low) >= key1; });
  return range.begin < range.end ? range : QueryRange{};
}

/// A cursor over the pairs (query head of the group, query tile that sees a key), heads one after the other.
template <class Plan>
class QueryWalk {
 public:
  constexpr QueryWalk(const Plan& plan, const BackwardWork& work)
      : plan_(plan), work_(work), range_(query_range(plan, work)), tile_(range_.begin) {
    settle();
    first_tile_ = tile_;
  }
  constexpr bool done() const { return head_ >= work_.num_heads; }
  constexpr int head() const { return head_; }
  constexpr int tile() const { return tile_; }
  constexpr int first_tile() const { return first_tile_; }
  constexpr bool starts_head() const { return tile_ == first_tile_; }
  constexpr TileClass seen_as() const { return class_; }
  constexpr void advance() {
    ++tile_;
    settle();
  }

 private:
  constexpr void settle() {
    for (; head_ < work_.num_heads; ++head_, tile_ = range_.begin) {
      for (; tile_ < range_.end; ++tile_) {
        class_ = plan_.seen_as(work_, tile_, classify(plan_, work_.at(tile_), work_.k_tile));
        if (class_ != TileClass::skip) return;
      }
    }
  }

  const Plan& plan_;
  const BackwardWork& work_;
  QueryRange range_;
  int head_ = 0, tile_ = 0, first_tile_ = 0;
  TileClass class_ = TileClass::skip;
};

}  // namespace attest
