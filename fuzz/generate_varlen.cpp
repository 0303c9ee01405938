// Batch entries of different lengths.
#include "generator_parts.h"

namespace attest {
namespace {

using List = std::vector<std::int64_t>;

// Empty sequences where a scheduler trips over them: first, last, in the middle, in a row.
void empty_some(Draw& draw, List& lengths) {
  const auto batch = static_cast<std::int64_t>(lengths.size());
  const auto empty = [&](std::int64_t b) { lengths[static_cast<std::size_t>(b)] = 0; };
  const std::int64_t kind = draw.in_range(0, 4);
  if (kind == 0) empty(0);
  if (kind == 1) empty(batch - 1);
  if (kind == 2) empty(batch / 2);
  if (kind >= 3) {
    const std::int64_t first = draw.in_range(0, batch - 1), count = draw.in_range(2, 4);
    for (std::int64_t b = first; b < std::min(batch, first + count); ++b) empty(b);
  }
}

List draw_list(Draw& draw, std::int64_t batch, std::int64_t longest) {
  List lengths(static_cast<std::size_t>(batch), longest);
  const std::int64_t kind = draw.in_range(0, 99);
  if (kind < 10) return lengths;  // all the same
  for (std::int64_t& length : lengths) {
    length = std::min(longest, draw_length(draw, longest));
    if (kind < 20) length = std::min<std::int64_t>(length, 1);
    if (kind < 60 && draw.chance(15)) length = 0;
  }
  if (kind >= 60) empty_some(draw, lengths);
  return lengths;
}

}  // namespace

void draw_varlen(Draw& draw, const Wanted& wanted, std::int64_t longest_alone, Problem& p) {
  const std::int64_t sides = draw.in_range(0, 99);
  const bool paged = wanted[Wanted::pages];
  const bool q = sides < 80 || longest_alone > 0 || paged, k = (sides >= 20 || longest_alone > 0) && !paged;
  if (q) p.varlen_q = draw_list(draw, p.batch, p.seqlen_q);
  if (k) p.varlen_k = draw_list(draw, p.batch, p.seqlen_k);
  if (q && k && draw.chance(25))  // attention of a sequence to itself
    for (std::size_t b = 0; b < p.varlen_k.size(); ++b) p.varlen_k[b] = std::min(p.varlen_q[b], p.seqlen_k);
  if (longest_alone > 0) {  // one long among short ones, on either side
    const std::int64_t which = draw.in_range(0, p.batch - 1);
    for (List* lengths : {&p.varlen_q, &p.varlen_k})
      for (std::int64_t b = 0; b < std::ssize(*lengths); ++b) {
        std::int64_t& length = (*lengths)[static_cast<std::size_t>(b)];
        if (b != which) length = std::min(length, longest_alone);
      }
  }
  if (q) p.seqlen_q = *std::max_element(p.varlen_q.begin(), p.varlen_q.end());
  if (k) p.seqlen_k = *std::max_element(p.varlen_k.begin(), p.varlen_k.end());
}

void draw_seqused(Draw& draw, Problem& p) {
  const std::int64_t kind = draw.in_range(0, 99);
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t keys = p.varlen_k.empty() ? p.seqlen_k : p.varlen_k[static_cast<std::size_t>(b)];
    const std::int64_t mine = draw.in_range(0, 99);
    const bool full = kind < 8 || mine < 25, none = mine >= 90;
    p.seqused_k.push_back(full ? keys : none ? 0 : std::min(keys, draw_length(draw, keys)));
  }
}

}  // namespace attest
