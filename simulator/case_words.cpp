#include "case_words.h"

#include <fmt/format.h>

namespace attest {

std::string case_words(const Case& c) {
  const Problem& p = c.problem;
  std::string text = fmt::format(
      "batch {}, {} head{}{}, {} x {} tokens, headdim {}{}, {}", p.batch, p.nheads, p.nheads == 1 ? "" : "s",
      p.nheads_k == p.nheads ? "" : fmt::format(" on {}", p.nheads_k), p.seqlen_q, p.seqlen_k, p.headdim,
      p.headdim_v == p.headdim ? "" : fmt::format("/{}", p.headdim_v), to_string(p.dtype));
  if (p.causal != Causal::none) text += fmt::format(", causal {}", to_string(p.causal));
  if (p.window_left >= 0 || p.window_right >= 0) text += fmt::format(", window {},{}", p.window_left, p.window_right);
  if (p.prefix != 0) text += fmt::format(", prefix {}", p.prefix);
  if (!p.documents.empty()) text += fmt::format(", {} documents", p.documents.size());
  if (p.softcap != 0) text += fmt::format(", softcap {}", p.softcap);
  if (p.alibi) text += ", ALiBi";
  if (p.sink) text += ", a sink";
  if (p.bias != Bias::none) text += fmt::format(", bias {}", to_string(p.bias));
  if (!p.varlen_q.empty() || !p.varlen_k.empty()) text += ", packed sequences of their own lengths";
  if (!p.seqused_k.empty()) text += ", keys used in part";
  if (c.layout.page_size != 0) text += fmt::format(", pages of {} keys", c.layout.page_size);
  if (c.num_splits != 1) text += fmt::format(", {} splits", c.num_splits);
  if (c.backward) text += ", backward";
  return text;
}

}  // namespace attest
