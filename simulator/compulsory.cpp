#include "attest/simulator/compulsory.h"

#include <algorithm>
#include <map>
#include <utility>

#include "attest/problem/dtype.h"

namespace attest {
namespace {

/// Query i sees keys [clamp(i + low, 0, keys), clamp(i + high, 0, keys)), prefix and documents apart.
struct Interval {
  std::int64_t low, high;
};

Interval interval(const Problem& p, const Lengths& n) {
  const std::int64_t off = p.causal == Causal::top_left ? 0 : n.keys - n.queries;
  const std::int64_t unlimited = n.queries + n.keys + 1;
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

/// What the queries of a batch entry see together.
struct Seen {
  std::int64_t queries = 0, keys = 0;  // that see something, that are seen
  double pairs = 0;
};

Seen seen_through_interval(const Interval& at, const Lengths& n) {
  Seen seen;
  if (n.queries == 0 || n.keys == 0) return seen;
  seen.pairs = sum_clamped(at.high, n.queries, n.keys) - sum_clamped(at.low, n.queries, n.keys);
  // a query sees something from i + high >= 1 on, up to i + low <= keys - 1
  const std::int64_t first = std::max<std::int64_t>(0, 1 - at.high), last = std::min(n.queries, n.keys - at.low) - 1;
  if (last < first) return seen;
  seen.queries = last - first + 1;
  // the interval moves by one key a query, so that the keys seen by any of them are one interval
  seen.keys = std::clamp<std::int64_t>(last + at.high, 0, n.keys) - std::clamp<std::int64_t>(first + at.low, 0, n.keys);
  return seen;
}

Seen seen_row_by_row(const Problem& p, const Interval& at, const Lengths& n) {
  Seen seen;
  std::vector<int> starts(static_cast<std::size_t>(n.keys + 1));  // less ends, of runs of keys that a query sees
  std::int64_t document_end = p.documents.empty() ? std::max(n.queries, n.keys) : p.documents[0], document_begin = 0;
  std::size_t document = 0;
  for (std::int64_t i = 0; i < n.queries; ++i) {
    while (i >= document_end) document_begin = document_end, document_end += p.documents[++document];
    const auto inside = [&](std::int64_t key) {
      return std::clamp(key, std::min(document_begin, n.keys), std::min(document_end, n.keys));
    };
    const std::int64_t prefix_begin = inside(0), prefix_end = inside(p.prefix);
    const std::int64_t begin = std::max(inside(i + at.low), prefix_end), end = std::max(begin, inside(i + at.high));
    for (const auto& [first, last] : {std::pair{prefix_begin, prefix_end}, std::pair{begin, end}})
      ++starts[static_cast<std::size_t>(first)], --starts[static_cast<std::size_t>(last)];
    const std::int64_t keys = prefix_end - prefix_begin + end - begin;
    seen.queries += keys > 0;
    seen.pairs += static_cast<double>(keys);
  }
  int open = 0;
  for (std::int64_t j = 0; j < n.keys; ++j) seen.keys += (open += starts[static_cast<std::size_t>(j)]) > 0;
  return seen;
}

Seen seen_of(const Problem& p, const Lengths& n) {
  const Interval at = interval(p, n);
  return p.prefix == 0 && p.documents.empty() ? seen_through_interval(at, n) : seen_row_by_row(p, at, n);
}

}  // namespace

std::vector<Lengths> lengths_of(const Problem& p) {
  if (p.varlen_q.empty() && p.varlen_k.empty() && p.seqused_k.empty()) return {{p.seqlen_q, p.seqlen_k, p.batch}};
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> entries;
  for (std::size_t b = 0; b < static_cast<std::size_t>(p.batch); ++b) {
    const std::int64_t keys = p.varlen_k.empty() ? p.seqlen_k : p.varlen_k[b];
    ++entries[{p.varlen_q.empty() ? p.seqlen_q : p.varlen_q[b], p.seqused_k.empty() ? keys : p.seqused_k[b]}];
  }
  std::vector<Lengths> result;
  result.reserve(entries.size());
  for (const auto& [lengths, count] : entries) result.push_back({lengths.first, lengths.second, count});
  return result;
}

CompulsoryBytes compulsory_bytes(const Problem& p) {
  const std::int64_t bytes = bytes_of(p.dtype), output = bytes == 1 ? 2 : bytes;
  CompulsoryBytes result;
  double bias_pairs = 0;  // of one head
  for (const Lengths& n : lengths_of(p)) {
    const Seen seen = seen_of(p, n);
    result.write += n.entries * p.nheads * n.queries * (p.headdim_v * output + 4);
    result.read +=
        n.entries * (p.nheads * seen.queries * p.headdim + p.nheads_k * seen.keys * (p.headdim + p.headdim_v)) * bytes;
    // a bias shared by batch entries is read as far as the entry sees of it that sees most
    const bool by_batch = p.bias == Bias::bhqk || p.bias == Bias::bqk;
    bias_pairs = by_batch ? bias_pairs + seen.pairs * static_cast<double>(n.entries) : std::max(bias_pairs, seen.pairs);
  }
  const bool by_head = p.bias == Bias::bhqk || p.bias == Bias::hqk;
  if (p.bias != Bias::none) result.read += 4 * static_cast<std::int64_t>(bias_pairs) * (by_head ? p.nheads : 1);
  return result;
}

double visible_pairs(const Problem& p) {
  double pairs = 0;
  for (const Lengths& n : lengths_of(p)) pairs += seen_of(p, n).pairs * static_cast<double>(n.entries * p.nheads);
  return pairs;
}

double all_pairs(const Problem& p) {
  double pairs = 0;
  for (const Lengths& n : lengths_of(p))
    pairs += static_cast<double>(n.entries * p.nheads) * static_cast<double>(n.queries) * static_cast<double>(n.keys);
  return pairs;
}

double flops_of_pairs(const Problem& p, double pairs) {
  return 2 * static_cast<double>(p.headdim + p.headdim_v) * pairs;
}

}  // namespace attest
