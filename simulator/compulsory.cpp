#include "attest/simulator/compulsory.h"

#include <algorithm>

#include "attest/problem/dtype.h"

namespace attest {
namespace {

/// Query i sees keys [clamp(i + low, 0, seqlen_k), clamp(i + high, 0, seqlen_k)).
struct Interval {
  std::int64_t low, high;
};

Interval interval(const Problem& p) {
  const std::int64_t off = p.causal == Causal::top_left ? 0 : p.seqlen_k - p.seqlen_q;
  const std::int64_t unlimited = p.seqlen_q + p.seqlen_k + 1;
  std::int64_t right = p.window_right < 0 ? unlimited : std::min(p.window_right, unlimited);
  if (p.causal != Causal::none) right = std::min<std::int64_t>(right, 0);
  const std::int64_t left = p.window_left < 0 ? unlimited : std::min(p.window_left, unlimited);
  return {off - left, off + right + 1};
}

/// sum over i in [0, m) of clamp(i + c, 0, n).
double sum_clamped(std::int64_t c, std::int64_t m, std::int64_t n) {
  const std::int64_t rise = std::clamp<std::int64_t>(-c, 0, m);        // first i with i + c >= 0
  const std::int64_t flat = std::clamp<std::int64_t>(n - c, rise, m);  // first i with i + c >= n
  const auto first = static_cast<double>(rise + c), last = static_cast<double>(flat - 1 + c);
  const double slope = flat > rise ? (first + last) / 2 * static_cast<double>(flat - rise) : 0;
  return slope + static_cast<double>(n) * static_cast<double>(m - flat);
}

}  // namespace

CompulsoryBytes compulsory_bytes(const Problem& p) {
  const Interval at = interval(p);
  const std::int64_t bytes = bytes_of(p.dtype), heads = p.batch * p.nheads;
  CompulsoryBytes result;
  result.write = heads * p.seqlen_q * (p.headdim_v * bytes + 4);
  if (p.seqlen_q == 0 || p.seqlen_k == 0) return result;
  // a query sees something from i + high >= 1 on, up to i + low <= seqlen_k - 1
  const std::int64_t first_row = std::max<std::int64_t>(0, 1 - at.high);
  const std::int64_t last_row = std::min(p.seqlen_q, p.seqlen_k - at.low) - 1;
  if (last_row < first_row) return result;
  // the interval moves by one key a query, so that the keys seen by any of them are one interval
  const std::int64_t first_key = std::clamp<std::int64_t>(first_row + at.low, 0, p.seqlen_k);
  const std::int64_t last_key = std::clamp<std::int64_t>(last_row + at.high, 0, p.seqlen_k);
  result.read = heads * (last_row - first_row + 1) * p.headdim * bytes +
                p.batch * p.nheads_k * (last_key - first_key) * (p.headdim + p.headdim_v) * bytes;
  return result;
}

double visible_pairs(const Problem& p) {
  const Interval at = interval(p);
  return static_cast<double>(p.batch * p.nheads) *
         (sum_clamped(at.high, p.seqlen_q, p.seqlen_k) - sum_clamped(at.low, p.seqlen_q, p.seqlen_k));
}

double flops_of_pairs(const Problem& p, double pairs) {
  return 2 * static_cast<double>(p.headdim + p.headdim_v) * pairs;
}

}  // namespace attest
