// Which keys a query sees, and what happens to a score on its way to the softmax.
#include <cmath>

#include "generator_parts.h"

namespace attest {
namespace {

std::int64_t draw_window(Draw& draw, std::int64_t length) {
  const std::int64_t kind = draw.in_range(0, 99);
  if (kind < 25) return -1;
  if (kind < 40) return 0;
  if (kind < 65) return draw.one_of(tile_sizes) + draw.in_range(-1, 1);
  if (kind < 75) return length + draw.in_range(0, 1);
  if (kind < 78) return std::int64_t{1} << 30;
  return draw.in_range(0, std::max<std::int64_t>(1, length));
}

std::int64_t draw_prefix(Draw& draw, std::int64_t seqlen_k) {
  const std::int64_t kind = draw.in_range(0, 99);
  if (kind < 15) return 1;
  if (kind < 50) return draw.one_of(tile_sizes) + draw.in_range(-1, 1);
  if (kind < 65) return std::max<std::int64_t>(1, seqlen_k + draw.in_range(-1, 2));
  return draw.in_range(1, std::max<std::int64_t>(1, seqlen_k));
}

// Places within 1 to total - 1 where a document ends: at the edges of tiles and beside them, or anywhere.
std::vector<std::int64_t> draw_boundaries(Draw& draw, std::int64_t total) {
  std::vector<std::int64_t> boundaries;
  const std::int64_t kind = draw.in_range(0, 99);
  const std::int64_t many = std::clamp<std::int64_t>(total / 2, 1, 40);
  const std::int64_t count = kind < 50 ? draw.in_range(1, 3) : kind < 75 ? draw.in_range(1, 7) : draw.in_range(1, many);
  for (std::int64_t n = 0; n < count; ++n) {
    const std::int64_t tile = draw.one_of(tile_sizes);
    const std::int64_t at =
        kind < 50 ? tile * draw.in_range(1, std::max<std::int64_t>(1, total / tile)) + draw.in_range(-1, 1)
                  : draw.in_range(1, std::max<std::int64_t>(1, total - 1));
    if (at > 0 && at < total) boundaries.push_back(at);
  }
  std::sort(boundaries.begin(), boundaries.end());  // twice the same place: an empty document
  return boundaries;
}

std::vector<std::int64_t> draw_documents(Draw& draw, std::int64_t total) {
  std::vector<std::int64_t> documents;
  std::int64_t begin = 0;
  if (!draw.chance(6))
    for (const std::int64_t end : draw_boundaries(draw, total)) {
      documents.push_back(end - begin);
      begin = end;
    }
  documents.push_back(total - begin);
  if (!draw.chance(30)) return documents;
  const std::int64_t kind = draw.in_range(0, 3), count = kind == 3 ? 2 : 1;  // first, last, anywhere, in a row
  const std::int64_t at = kind == 0 ? 0 : kind == 1 ? std::ssize(documents) : draw.in_range(0, std::ssize(documents));
  documents.insert(documents.begin() + at, static_cast<std::size_t>(count), 0);
  return documents;
}

}  // namespace

void draw_mask(Draw& draw, const Wanted& wanted, Problem& p) {
  const std::int64_t kind = draw.in_range(0, 99);
  // A prefix is for masks that would hide it.
  const std::int64_t unmasked = wanted[Wanted::prefix] ? 10 : 40;
  p.causal = kind < unmasked ? Causal::none : kind < 75 ? Causal::bottom_right : Causal::top_left;
  const std::int64_t length = std::max(p.seqlen_q, p.seqlen_k);
  if (draw.chance(35)) {
    p.window_left = draw_window(draw, length);
    p.window_right = draw_window(draw, length);
  }
  if (wanted[Wanted::prefix]) p.prefix = draw_prefix(draw, p.seqlen_k);
  if (wanted[Wanted::documents]) p.documents = draw_documents(draw, length);
}

void draw_scores(Draw& draw, const Wanted& wanted, Problem& p) {
  if (draw.chance(15)) {
    constexpr double scales[] = {0, 1, 0.1, 0.37, 2.5, -0.25, -1, 0x1p-7, 1e-3};
    p.softmax_scale = draw.chance(30) ? -1 / std::sqrt(static_cast<double>(p.headdim)) : draw.one_of(scales);
  }
  constexpr double caps[] = {1, 5, 15, 20, 30, 50, 0.1, 1000};
  if (wanted[Wanted::softcap]) p.softcap = draw.one_of(caps);
  p.alibi = wanted[Wanted::alibi];
  p.sink = wanted[Wanted::sink];
  constexpr Bias shapes[] = {Bias::bhqk, Bias::hqk, Bias::bqk, Bias::qk};
  if (wanted[Wanted::bias]) p.bias = draw.one_of(shapes);
}

}  // namespace attest
