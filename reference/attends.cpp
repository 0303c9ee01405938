#include "attest/reference/attends.h"

namespace attest {

bool attends(const Problem& problem, std::int64_t /*b*/, std::int64_t i, std::int64_t j) {
  const std::int64_t off = problem.causal == Causal::top_left ? 0 : problem.seqlen_k - problem.seqlen_q;
  if (j >= problem.seqlen_k) return false;
  if (problem.causal != Causal::none && j > i + off) return false;
  if (problem.window_right >= 0 && j > i + off + problem.window_right) return false;
  if (problem.window_left >= 0 && j < i + off - problem.window_left) return false;
  return true;
}

}  // namespace attest
