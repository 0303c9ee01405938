// The parts of a drawn case, in the order in which they are drawn: each rests on those before it.
#pragma once
#include "attest/fuzz/generators.h"
#include "draw.h"

namespace attest {

inline constexpr std::int64_t tile_sizes[] = {16, 32, 64, 128};

/// What a case has beside shape, mask and layout. None at all in two of five, one, two, or more.
struct Wanted {
  enum Feature { prefix, documents, softcap, alibi, sink, bias, varlen, seqused, pages, splits, count };
  bool has[count] = {};
  bool operator[](Feature feature) const { return has[feature]; }
};
Wanted draw_wanted(Draw& draw);

/// 1 to limit, half of them lengths at which kernels were wrong; 1 for limits below.
std::int64_t draw_length(Draw& draw, std::int64_t limit);

/// Head dimensions, heads, batch and lengths within `work`; where lengths vary, varlen_q, varlen_k and seqused_k.
void draw_extents(Draw& draw, const Wanted& wanted, std::int64_t work, const Budget& budget, Problem& p);
/// longest_alone > 0: one batch entry has the longest sequences, the others none longer than that.
void draw_varlen(Draw& draw, const Wanted& wanted, std::int64_t longest_alone, Problem& p);
void draw_seqused(Draw& draw, Problem& p);

/// Causal, windows, prefix and documents.
void draw_mask(Draw& draw, const Wanted& wanted, Problem& p);

/// Scale, softcap, ALiBi, sink and bias.
void draw_scores(Draw& draw, const Wanted& wanted, Problem& p);

/// Strides and pages.
Layout draw_layout(Draw& draw, const Wanted& wanted, const Problem& p);

}  // namespace attest
