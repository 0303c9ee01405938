// What attention is asked for. A passive record: nothing here turns it into an index, an offset or a key range, so
// that what judges and what is judged cannot share a mistake through it.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "attest/problem/dtype.h"

namespace attest {

enum class Causal : std::uint8_t { none, bottom_right, top_left };

/// "none", "bottom-right", "top-left": the words of --causal.
std::string_view to_string(Causal causal);
Causal causal_from_string(std::string_view name);

/// O = softmax(softmax_scale * Q K^T + mask) V and LSE = log sum exp of the masked, scaled scores.
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

  friend bool operator==(const Problem&, const Problem&) = default;
};

/// The scale that the scores are multiplied by.
double effective_softmax_scale(const Problem& problem);

/// Throws InvalidInput at the first field outside its limits:
/// 1 <= batch <= 2^20, 1 <= nheads, nheads_k <= 2^16, nheads a multiple of nheads_k, 0 <= seqlen <= 2^26,
/// 1 <= headdim, headdim_v <= 256, windows >= -1 and <= 2^30, a finite softmax_scale (0 included) of magnitude <= 2^20,
/// and no tensor of 2^40 elements or more.
void validate(const Problem& problem);

}  // namespace attest
