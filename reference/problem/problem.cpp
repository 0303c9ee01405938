#include "attest/problem/problem.h"

#include <fmt/format.h>

#include <cmath>

#include "attest/problem/error.h"

namespace attest {
namespace {

void check_range(std::string_view field, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high)
    throw InvalidInput(field, fmt::format("{}", value), fmt::format("is outside {} to {}", low, high));
}

void check_elements(std::string_view tensor, std::int64_t batch, std::int64_t seqlen, std::int64_t heads,
                    std::int64_t dim) {
  constexpr auto limit = std::int64_t{1} << 40;
  const __int128 elements = static_cast<__int128>(batch) * seqlen * heads * dim;  // at most 2^(20+26+16+8)
  if (elements >= limit)
    throw InvalidInput(tensor, fmt::format("{} x {} x {} x {} elements", batch, seqlen, heads, dim),
                       "are 2^40 or more, the most a tensor may have");
}

}  // namespace

Dtype dtype_from_string(std::string_view name) {
  for (const Dtype dtype : all_dtypes)
    if (to_string(dtype) == name) return dtype;
  throw InvalidInput("dtype", fmt::format("'{}'", name), "is none of fp16, bf16, fp32");
}

std::string_view to_string(Causal causal) {
  switch (causal) {
    case Causal::none:
      return "none";
    case Causal::bottom_right:
      return "bottom-right";
    case Causal::top_left:
      return "top-left";
  }
  return "?";
}

Causal causal_from_string(std::string_view name) {
  for (const Causal causal : {Causal::none, Causal::bottom_right, Causal::top_left})
    if (to_string(causal) == name) return causal;
  throw InvalidInput("causal", fmt::format("'{}'", name), "is none of none, bottom-right, top-left");
}

double effective_softmax_scale(const Problem& problem) {
  return problem.softmax_scale.value_or(1.0 / std::sqrt(static_cast<double>(problem.headdim)));
}

void validate(const Problem& p) {
  constexpr auto max_seqlen = std::int64_t{1} << 26;
  constexpr auto max_window = std::int64_t{1} << 30;
  check_range("batch", p.batch, 1, 1 << 20);
  check_range("nheads", p.nheads, 1, 1 << 16);
  check_range("nheads_k", p.nheads_k, 1, 1 << 16);
  if (p.nheads % p.nheads_k != 0)
    throw InvalidInput("nheads", fmt::format("{}", p.nheads),
                       fmt::format("is not a multiple of nheads_k = {}", p.nheads_k));
  check_range("seqlen_q", p.seqlen_q, 0, max_seqlen);
  check_range("seqlen_k", p.seqlen_k, 0, max_seqlen);
  check_range("headdim", p.headdim, 1, 256);
  check_range("headdim_v", p.headdim_v, 1, 256);
  check_range("window_left", p.window_left, -1, max_window);
  check_range("window_right", p.window_right, -1, max_window);
  if (p.softmax_scale && !(std::abs(*p.softmax_scale) <= 0x1p20))
    throw InvalidInput("softmax_scale", fmt::format("{}", *p.softmax_scale),
                       "is not a finite number of magnitude up to 2^20");
  check_elements("q", p.batch, p.seqlen_q, p.nheads, p.headdim);
  check_elements("k", p.batch, p.seqlen_k, p.nheads_k, p.headdim);
  check_elements("v", p.batch, p.seqlen_k, p.nheads_k, p.headdim_v);
  check_elements("o", p.batch, p.seqlen_q, p.nheads, p.headdim_v);
}

}  // namespace attest
