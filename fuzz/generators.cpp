#include "attest/fuzz/generators.h"

#include <cmath>

#include "draw.h"

namespace attest {
namespace {

// Values at which attention kernels were wrong, from the bugs that docs/fuzzing.md cites and others like them.
constexpr std::int64_t special_lengths[] = {1, 2, 3, 5, 63, 64, 65, 127, 128, 129, 192, 255, 256, 257, 448, 1025, 4090};
constexpr std::int64_t special_residues[] = {0, 1, 63, 64, 65, 127};  // modulo 128
constexpr std::int64_t special_headdims[] = {1, 8, 16, 32, 40, 64, 72, 80, 96, 100, 128, 192, 256};
constexpr std::int64_t tiles[] = {16, 32, 64, 128};
constexpr std::int64_t groups[] = {1, 2, 3, 5, 7, 8};

std::int64_t draw_length(Draw& draw, std::int64_t limit) {
  if (limit <= 1) return 1;
  const std::int64_t kind = draw.in_range(0, 99);
  if (kind < 45) return draw.one_up_to(special_lengths, limit);
  if (kind < 65 && limit >= 256) return 128 * draw.in_range(1, limit / 128 - 1) + draw.one_of(special_residues);
  return draw.log_uniform(1, limit);
}

struct Lengths {
  std::int64_t q, k;
};

// Lengths with q * k <= area, in the relations that matter: either one first, decoding, a query sequence that reaches
// more than a tile beyond the keys, squares, a difference that is no multiple of a tile, and nothing at all.
Lengths draw_lengths(Draw& draw, std::int64_t area, std::int64_t max_seqlen) {
  const auto within = [&](std::int64_t other) { return std::min(max_seqlen, area / std::max<std::int64_t>(1, other)); };
  const std::int64_t kind = draw.in_range(0, 99);
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

void draw_heads(Draw& draw, std::int64_t most, Problem& p) {
  // How many heads and batch entries together: `most` would leave one query and one key to each.
  const std::int64_t limit = draw.log_uniform(1, std::clamp<std::int64_t>(most / 8, 1, 64));
  constexpr std::int64_t batches[] = {1, 2, 3, 4, 5, 7};
  p.batch = draw.chance(45) ? 1 : draw.one_up_to(batches, limit);
  const std::int64_t group = draw.chance(40) ? 1 : draw.one_up_to(groups, limit / p.batch);
  constexpr std::int64_t kv_heads[] = {1, 2, 3, 4, 5, 8};
  p.nheads_k = draw.chance(35) ? 1 : draw.one_up_to(kv_heads, limit / p.batch / group);
  p.nheads = p.nheads_k * group;
}

std::int64_t draw_window(Draw& draw, std::int64_t length) {
  const std::int64_t kind = draw.in_range(0, 99);
  if (kind < 25) return -1;
  if (kind < 40) return 0;
  if (kind < 65) return draw.one_of(tiles) + draw.in_range(-1, 1);
  if (kind < 75) return length + draw.in_range(0, 1);
  if (kind < 78) return std::int64_t{1} << 30;
  return draw.in_range(0, std::max<std::int64_t>(1, length));
}

void draw_mask(Draw& draw, Problem& p) {
  const std::int64_t kind = draw.in_range(0, 99);
  p.causal = kind < 40 ? Causal::none : kind < 75 ? Causal::bottom_right : Causal::top_left;
  if (draw.chance(65)) return;
  const std::int64_t length = std::max(p.seqlen_q, p.seqlen_k);
  p.window_left = draw_window(draw, length);
  p.window_right = draw_window(draw, length);
}

void draw_scale(Draw& draw, Problem& p) {
  if (draw.chance(85)) return;
  constexpr double scales[] = {0, 1, 0.1, 0.37, 2.5, -0.25, -1, 0x1p-7, 1e-3};
  p.softmax_scale = draw.chance(30) ? -1 / std::sqrt(static_cast<double>(p.headdim)) : draw.one_of(scales);
}

Layout draw_layout(Draw& draw) {
  Layout layout;
  if (draw.chance(50)) return layout;
  constexpr std::int64_t row_gaps[] = {1, 2, 3, 4, 8, 16, 56};
  constexpr std::int64_t seq_gaps[] = {1, 2, 3, 16, 64};
  constexpr std::int64_t offsets[] = {1, 2, 4, 7, 8, 16, 64};
  if (draw.chance(50)) layout.order = Layout::Order::bhsd;
  if (draw.chance(45)) layout.row_gap = draw.one_of(row_gaps);
  if (draw.chance(45)) layout.seq_gap = draw.one_of(seq_gaps);
  if (draw.chance(40)) layout.base_offset = draw.one_of(offsets);
  return layout;
}

Distribution draw_distribution(Draw& draw) {
  const std::int64_t kind = draw.in_range(0, 99);
  if (kind < 50) return Distribution::normal;
  if (kind < 66) return Distribution::large;
  if (kind < 76) return Distribution::shift;
  if (kind < 84) return Distribution::zero_q;
  return kind < 91 ? Distribution::one_v : Distribution::one_hot_v;
}

}  // namespace

std::int64_t work_of(const Problem& p) {
  return p.batch * p.nheads * p.seqlen_q * p.seqlen_k * (p.headdim + p.headdim_v);
}

Case generate_case(std::uint64_t seed, std::uint64_t k, const Budget& budget) {
  // The key is the whole triple, so no two cases of a campaign share a stream.
  Draw draw(rc::Random(rc::Random::Key{seed, generator_version, k, 0}));
  Case c;
  Problem& p = c.problem;
  const std::int64_t work = draw.log_uniform(budget.min_work, budget.max_work);
  constexpr Dtype dtypes[] = {Dtype::fp16, Dtype::bf16, Dtype::fp32};
  p.dtype = draw.one_of(dtypes);
  draw_headdims(draw, work, p);
  draw_heads(draw, work / (p.headdim + p.headdim_v), p);
  const std::int64_t area = std::max<std::int64_t>(1, work / (p.headdim + p.headdim_v) / (p.batch * p.nheads));
  const Lengths lengths = draw_lengths(draw, area, budget.max_seqlen);
  p.seqlen_q = lengths.q;
  p.seqlen_k = lengths.k;
  draw_mask(draw, p);
  draw_scale(draw, p);
  c.layout = draw_layout(draw);
  c.inputs = draw_distribution(draw);
  c.seed = static_cast<std::uint64_t>(draw.in_range(0, 999'999));
  validate(c);
  return c;
}

}  // namespace attest
