// One CTA's share of a problem, and the class of each of its key tiles.
#pragma once
#include <algorithm>

namespace attest {

/// Numbers a CTA is launched with. Query i is aligned with key i + diagonal; it sees keys from i + diagonal - left to
/// i + diagonal + right, where left, right < 0 mean unlimited. A causal mask is right = 0.
struct Work {
  int q_tile = 0;
  int seqlen_q = 0;
  int seqlen_k = 0;
  int diagonal = 0;
  int left = -1;
  int right = -1;
  bool causal = false;
};

enum class TileClass { skip, full, partial };

/// Key tiles [begin, end) are visited; of these [full_begin, full_end) need no mask. Empty: begin == end.
struct TileRange {
  int begin = 0, end = 0;
  int full_begin = 0, full_end = 0;
};

/// The one classifier: what a tile of queries has to do with a tile of keys. `plan` gives the tiles' shape and the key
/// interval [key_begin, key_end) of a query, both ends of which never fall as the query grows.
template <class Plan>
constexpr TileClass classify(const Plan& plan, const Work& work, int key_tile) {
  const int first = work.q_tile * plan.tile_m, last = std::min(first + plan.tile_m, work.seqlen_q) - 1;
  if (last < first) return TileClass::skip;
  const int key0 = key_tile * plan.tile_n, key1 = key0 + plan.tile_n;
  const int low = plan.key_begin(work, first), high = plan.key_end(work, last);  // of all its queries together
  if (high <= low || key0 >= high || key1 <= low) return TileClass::skip;
  const bool full = key0 >= plan.key_begin(work, last) && key1 <= plan.key_end(work, first);
  return full ? TileClass::full : TileClass::partial;
}

/// classify() over all key tiles at once, in closed form.
template <class Plan>
constexpr TileRange tile_range(const Plan& plan, const Work& work) {
  const int first = work.q_tile * plan.tile_m, last = std::min(first + plan.tile_m, work.seqlen_q) - 1;
  const int n = plan.tile_n;
  if (last < first) return {};
  const int low = std::max(plan.key_begin(work, first), 0), high = plan.key_end(work, last);
  if (high <= low) return {};
  TileRange range{low / n, (high + n - 1) / n, 0, 0};
  const int full_low = std::max(plan.key_begin(work, last), 0), full_high = std::max(plan.key_end(work, first), 0);
  range.full_end = std::clamp(full_high / n, range.begin, range.end);
  range.full_begin = std::clamp((full_low + n - 1) / n, range.begin, range.full_end);
  return range;
}

}  // namespace attest
