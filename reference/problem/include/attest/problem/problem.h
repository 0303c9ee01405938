// What attention is asked for. A passive record: nothing here turns it into an index, an offset or a key range, so
// that what judges and what is judged cannot share a mistake through it.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "attest/problem/dtype.h"

namespace attest {

enum class Causal : std::uint8_t { none, bottom_right, top_left };

/// "none", "bottom-right", "top-left": the words of --causal.
std::string_view to_string(Causal causal);
Causal causal_from_string(std::string_view name);

/// Over which of batch (b), heads (h), queries (q) and keys (k) a dense bias varies; it is shared where a 1 stands.
enum class Bias : std::uint8_t { none, bhqk, hqk, bqk, qk };

/// "none", "bhqk", "1hqk", "b1qk", "11qk": the words of --bias.
std::string_view to_string(Bias bias);
Bias bias_from_string(std::string_view name);

/// O = softmax(score) V and LSE = log sum exp score over the keys that a query sees, with
///   score = softcap(softmax_scale * q.k) + alibi + bias,   softcap(x) = c tanh(x / c),
///   alibi = -slope |i + off - j|,   off = top-left ? 0 : keys - queries of the batch entry.
/// Inputs of 8 bits carry a factor for each tensor, batch entry and key head: q.k and v are the values times these.
/// A sink adds exp(sink) to the denominator of every row of its head. A row that sees nothing: O = 0, LSE = -inf, or
/// the sink.
///   Q   (batch, seqlen_q, nheads,   headdim)     K (batch, seqlen_k, nheads_k, headdim)
///   V   (batch, seqlen_k, nheads_k, headdim_v)   O (batch, seqlen_q, nheads,   headdim_v)
///   LSE (batch, nheads, seqlen_q), fp32
struct Problem {
  std::int64_t batch = 1;
  std::int64_t nheads = 1;
  std::int64_t nheads_k = 1;  // divides nheads: query head h reads key head h / (nheads / nheads_k)
  std::int64_t seqlen_q = 128;
  std::int64_t seqlen_k = 128;
  std::int64_t headdim = 64;
  std::int64_t headdim_v = 64;
  Dtype dtype = Dtype::bf16;
  std::optional<double> softmax_scale;  // none: 1 / sqrt(headdim)
  Causal causal = Causal::none;         // top_left also aligns the window at the first query and key
  std::int64_t window_left = -1;        // keys before the diagonal that a query sees, inclusive; -1: unlimited
  std::int64_t window_right = -1;
  std::int64_t prefix = 0;  // keys 0 to prefix - 1 are seen whatever causal and windows say
  // Lengths that cut the positions 0 to max(seqlen_q, seqlen_k) - 1 of queries and of keys into documents: a query sees
  // keys of its own document only. Empty: one document.
  std::vector<std::int64_t> documents{};
  double softcap = 0;  // c of c tanh(x / c); 0: none
  bool alibi = false;  // a slope for each batch entry and head
  bool sink = false;   // a score for each head
  Bias bias = Bias::none;
  // Queries and keys of each batch entry, the largest being seqlen_q and seqlen_k; empty: all have those.
  std::vector<std::int64_t> varlen_q{}, varlen_k{};
  std::vector<std::int64_t> seqused_k{};  // of these keys, how many exist; empty: all

  friend bool operator==(const Problem&, const Problem&) = default;
};

/// The scale that the scores are multiplied by.
double effective_softmax_scale(const Problem& problem);

/// Throws InvalidInput at the first field outside its limits:
/// 1 <= batch <= 2^20, 1 <= nheads, nheads_k <= 2^16, nheads a multiple of nheads_k, 0 <= seqlen <= 2^26,
/// 1 <= headdim, headdim_v <= 256, windows >= -1 and <= 2^30, 0 <= prefix <= 2^26, a finite softmax_scale (0 included)
/// of magnitude <= 2^20, softcap 0 or 2^-20 to 2^20, documents that add up to the longer of both sequences, a varlen_q,
/// varlen_k and seqused_k for each batch entry, seqused_k <= the entry's keys, and no tensor of 2^40 elements or more.
void validate(const Problem& problem);

}  // namespace attest
