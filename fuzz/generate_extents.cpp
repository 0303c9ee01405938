// Head dimensions, heads and the longest of each sequence: what the work goes into.
#include <cmath>

#include "generator_parts.h"

namespace attest {
namespace {

// Values at which attention kernels were wrong, from the bugs that docs/fuzzing.md cites and others like them.
constexpr std::int64_t special_lengths[] = {1, 2, 3, 5, 63, 64, 65, 127, 128, 129, 192, 255, 256, 257, 448, 1025, 4090};
constexpr std::int64_t special_residues[] = {0, 1, 63, 64, 65, 127};  // modulo 128
constexpr std::int64_t special_headdims[] = {1, 8, 16, 32, 40, 64, 72, 80, 96, 100, 128, 192, 256};
constexpr std::int64_t groups[] = {1, 2, 3, 5, 7, 8};

struct Lengths {
  std::int64_t q, k;
};

// Lengths with q * k <= area, in the relations that matter: either one first, decoding, a query sequence that reaches
// more than a tile beyond the keys, squares, a difference that is no multiple of a tile, and nothing at all.
Lengths draw_lengths(Draw& draw, bool few_queries, std::int64_t area, std::int64_t max_seqlen) {
  const auto within = [&](std::int64_t other) { return std::min(max_seqlen, area / std::max<std::int64_t>(1, other)); };
  const std::int64_t kind = few_queries ? 50 : draw.in_range(0, 99);
  const auto root = static_cast<std::int64_t>(std::sqrt(static_cast<double>(area)));
  if (kind < 48) {  // what the first leaves of the area is the second's limit
    const std::int64_t first = draw_length(draw, std::min(max_seqlen, draw.log_uniform(root, area)));
    const std::int64_t second = draw_length(draw, within(first));
    return kind < 30 ? Lengths{second, first} : Lengths{first, second};
  }
  if (kind < 58) {
    const std::int64_t q = draw.chance(70) ? 1 : draw.in_range(1, std::min<std::int64_t>(4, within(1)));
    return {q, draw_length(draw, within(q))};
  }
  if (kind < 68) {
    const std::int64_t k = draw.in_range(1, std::min<std::int64_t>(8, within(1)));
    return {draw.in_range(std::min<std::int64_t>(129, within(k)), std::min<std::int64_t>(600, within(k))), k};
  }
  if (kind < 82) {
    const std::int64_t q = draw_length(draw, std::min(root, max_seqlen));
    return {q, draw.chance(50) ? q : draw_length(draw, std::min(root, max_seqlen))};
  }
  if (kind < 95) {
    const std::int64_t k = draw_length(draw, within(1));
    const std::int64_t q = std::max<std::int64_t>(1, k - draw.in_range(1, 200));
    return {std::min(q, within(k)), k};
  }
  const std::int64_t other = draw.chance(20) ? 0 : draw_length(draw, std::min<std::int64_t>(max_seqlen, 1025));
  return draw.chance(60) ? Lengths{other, 0} : Lengths{0, other};
}

void draw_headdims(Draw& draw, std::int64_t work, Problem& p) {
  // Small problems have small heads, or nothing would be left for lengths.
  const std::int64_t limit = std::clamp<std::int64_t>(work / 64, 1, 256);
  const auto headdim = [&] {
    const std::int64_t kind = draw.in_range(0, 99);
    if (kind < 50) return draw.one_up_to(special_headdims, limit);
    return kind < 82 ? draw.in_range(1, std::min<std::int64_t>(16, limit)) : draw.in_range(1, limit);
  };
  p.headdim = headdim();
  p.headdim_v = draw.chance(60) ? p.headdim : headdim();
}

void draw_heads(Draw& draw, const Wanted& wanted, std::int64_t most, Problem& p) {
  // How many heads and batch entries together: `most` would leave one query and one key to each.
  const std::int64_t limit = draw.log_uniform(1, std::clamp<std::int64_t>(most / 8, 1, 64));
  constexpr std::int64_t batches[] = {1, 2, 3, 4, 5, 7};
  constexpr std::int64_t large_batches[] = {1, 2, 3, 4, 5, 7, 9, 13, 18};
  if (wanted[Wanted::varlen] || wanted[Wanted::seqused])
    p.batch = draw.one_up_to(large_batches, std::max(limit, std::min<std::int64_t>(most, 5)));
  else
    p.batch = draw.chance(45) ? 1 : draw.one_up_to(batches, limit);
  const std::int64_t heads = std::max<std::int64_t>(1, limit / p.batch);
  const std::int64_t group = draw.chance(40) ? 1 : draw.one_up_to(groups, heads);
  constexpr std::int64_t kv_heads[] = {1, 2, 3, 4, 5, 8};
  p.nheads_k = draw.chance(35) ? 1 : draw.one_up_to(kv_heads, heads / group);
  p.nheads = p.nheads_k * group;
}

}  // namespace

std::int64_t draw_length(Draw& draw, std::int64_t limit) {
  if (limit <= 1) return 1;
  const std::int64_t kind = draw.in_range(0, 99);
  if (kind < 45) return draw.one_up_to(special_lengths, limit);
  if (kind < 65 && limit >= 256) return 128 * draw.in_range(1, limit / 128 - 1) + draw.one_of(special_residues);
  return draw.log_uniform(1, limit);
}

void draw_extents(Draw& draw, const Wanted& wanted, std::int64_t work, const Budget& budget, Problem& p) {
  draw_headdims(draw, work, p);
  draw_heads(draw, wanted, work / (p.headdim + p.headdim_v), p);
  const std::int64_t scores = std::max<std::int64_t>(1, work / (p.headdim + p.headdim_v) / p.nheads);
  const std::int64_t each = std::max<std::int64_t>(1, scores / p.batch);
  // One batch entry alone may take half of all work, if the tensors, whose batch entries all have room for the longest,
  // stay small.
  const bool one_long =
      wanted[Wanted::varlen] && !wanted[Wanted::pages] && !wanted[Wanted::bias] && p.batch > 1 && draw.chance(60);
  const std::int64_t area = one_long ? std::max(each, scores / 2) : each;
  constexpr std::int64_t most_elements = 1 << 21;
  const std::int64_t room = most_elements / (p.batch * p.nheads * std::max(p.headdim, p.headdim_v));
  const bool few_queries = wanted[Wanted::splits] && draw.chance(60);  // which leaves keys to split
  const Lengths lengths = draw_lengths(draw, few_queries, area, std::clamp<std::int64_t>(room, 1, budget.max_seqlen));
  p.seqlen_q = lengths.q;
  p.seqlen_k = lengths.k;
  if (wanted[Wanted::varlen])
    draw_varlen(draw, wanted, one_long ? static_cast<std::int64_t>(std::sqrt(static_cast<double>(each) / 2)) : 0, p);
  // Keys in pages are not packed: their lengths are told by seqused_k.
  if (wanted[Wanted::seqused] || (wanted[Wanted::varlen] && wanted[Wanted::pages])) draw_seqused(draw, p);
}

}  // namespace attest
