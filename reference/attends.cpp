#include "attest/reference/attends.h"

namespace attest {
namespace {

// The number of the document that covers position x.
std::size_t document_of(const Problem& problem, std::int64_t x) {
  std::size_t d = 0;
  for (std::int64_t end = 0; d < problem.documents.size(); ++d) {
    end += problem.documents[d];
    if (x < end) break;
  }
  return d;
}

}  // namespace

std::int64_t queries_of(const Problem& problem, std::int64_t b) {
  return problem.varlen_q.empty() ? problem.seqlen_q : problem.varlen_q[static_cast<std::size_t>(b)];
}

std::int64_t keys_of(const Problem& problem, std::int64_t b) {
  if (!problem.seqused_k.empty()) return problem.seqused_k[static_cast<std::size_t>(b)];
  return problem.varlen_k.empty() ? problem.seqlen_k : problem.varlen_k[static_cast<std::size_t>(b)];
}

std::int64_t diagonal_offset(const Problem& problem, std::int64_t b) {
  return problem.causal == Causal::top_left ? 0 : keys_of(problem, b) - queries_of(problem, b);
}

bool attends(const Problem& problem, std::int64_t b, std::int64_t i, std::int64_t j) {
  const std::int64_t off = diagonal_offset(problem, b);
  if (j >= keys_of(problem, b)) return false;
  if (document_of(problem, i) != document_of(problem, j)) return false;
  if (j < problem.prefix) return true;
  if (problem.causal != Causal::none && j > i + off) return false;
  if (problem.window_right >= 0 && j > i + off + problem.window_right) return false;
  if (problem.window_left >= 0 && j < i + off - problem.window_left) return false;
  return true;
}

}  // namespace attest
