#include "attest/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attest/problem/error.h"
#include "attest/problem/problem_limits.h"

namespace attest {
namespace {

void check_range(std::string_view field, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high)
    throw InvalidInput(field, fmt::format("{}", value), fmt::format("is outside {} to {}", low, high));
}

void check_elements(std::string_view tensor, std::int64_t batch, std::int64_t seqlen, std::int64_t heads,
                    std::int64_t dim) {
  constexpr auto limit = std::int64_t{1} << 40;
  const __int128 elements = static_cast<__int128>(batch) * seqlen * heads * dim;  // at most 2^(20+26+16+26)
  if (elements >= limit)
    throw InvalidInput(tensor, fmt::format("{} x {} x {} x {} elements", batch, seqlen, heads, dim),
                       "are 2^40 or more, the most a tensor may have");
}

// A length for each batch entry; `name` with the place of the offender is the field of the error.
void check_lengths(std::string_view name, const std::vector<std::int64_t>& lengths, std::int64_t batch) {
  if (lengths.empty()) return;
  if (std::ssize(lengths) != batch)
    throw InvalidInput(name, fmt::format("of {} lengths", lengths.size()),
                       fmt::format("does not have one for each of batch = {}", batch));
  for (std::size_t b = 0; b < lengths.size(); ++b)
    check_range(fmt::format("{}[{}]", name, b), lengths[b], 0, longest_sequence);
}

void check_longest(std::string_view name, const std::vector<std::int64_t>& lengths, std::string_view seqlen_name,
                   std::int64_t seqlen) {
  if (lengths.empty()) return;
  const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  if (longest != seqlen)
    throw InvalidInput(seqlen_name, fmt::format("{}", seqlen),
                       fmt::format("is not {}, the longest of {}", longest, name));
}

void check_documents(const Problem& p) {
  if (p.documents.empty()) return;
  const std::int64_t positions = std::max(p.seqlen_q, p.seqlen_k);
  std::int64_t sum = 0;
  for (std::size_t d = 0; d < p.documents.size(); ++d) {
    check_range(fmt::format("documents[{}]", d), p.documents[d], 0, longest_sequence);
    sum = std::min(sum + p.documents[d], 2 * longest_sequence);
  }
  if (sum != positions)
    throw InvalidInput("documents", fmt::format("of {} positions together", sum),
                       fmt::format("do not cover max(seqlen_q, seqlen_k) = {}", positions));
}

}  // namespace

Dtype dtype_from_string(std::string_view name) {
  for (const Dtype dtype : all_dtypes)
    if (to_string(dtype) == name) return dtype;
  throw InvalidInput("dtype", fmt::format("'{}'", name), "is none of fp16, bf16, fp32, fp8_e4m3, fp8_e5m2");
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

std::string_view to_string(Bias bias) {
  switch (bias) {
    case Bias::none:
      return "none";
    case Bias::bhqk:
      return "bhqk";
    case Bias::hqk:
      return "1hqk";
    case Bias::bqk:
      return "b1qk";
    case Bias::qk:
      return "11qk";
  }
  return "?";
}

Bias bias_from_string(std::string_view name) {
  for (const Bias bias : {Bias::none, Bias::bhqk, Bias::hqk, Bias::bqk, Bias::qk})
    if (to_string(bias) == name) return bias;
  throw InvalidInput("bias", fmt::format("'{}'", name), "is none of none, bhqk, 1hqk, b1qk, 11qk");
}

double effective_softmax_scale(const Problem& problem) {
  return problem.softmax_scale.value_or(1.0 / std::sqrt(static_cast<double>(problem.headdim)));
}

void validate(const Problem& p) {
  for (const auto& [field, member, low, high] : problem_limits) check_range(field, p.*member, low, high);
  if (p.nheads % p.nheads_k != 0)
    throw InvalidInput("nheads", fmt::format("{}", p.nheads),
                       fmt::format("is not a multiple of nheads_k = {}", p.nheads_k));
  if (p.softmax_scale && !(std::abs(*p.softmax_scale) <= 0x1p20))
    throw InvalidInput("softmax_scale", fmt::format("{}", *p.softmax_scale),
                       "is not a finite number of magnitude up to 2^20");
  if (p.softcap != 0 && !(p.softcap >= 0x1p-20 && p.softcap <= 0x1p20))
    throw InvalidInput("softcap", fmt::format("{}", p.softcap),
                       "is neither 0, which is none, nor within 2^-20 to 2^20");
  check_lengths("varlen_q", p.varlen_q, p.batch);
  check_lengths("varlen_k", p.varlen_k, p.batch);
  check_longest("varlen_q", p.varlen_q, "seqlen_q", p.seqlen_q);
  check_longest("varlen_k", p.varlen_k, "seqlen_k", p.seqlen_k);
  check_lengths("seqused_k", p.seqused_k, p.batch);
  for (std::size_t b = 0; b < p.seqused_k.size(); ++b)
    check_range(fmt::format("seqused_k[{}]", b), p.seqused_k[b], 0, p.varlen_k.empty() ? p.seqlen_k : p.varlen_k[b]);
  check_documents(p);
  check_elements("q", p.batch, p.seqlen_q, p.nheads, p.headdim);
  check_elements("k", p.batch, p.seqlen_k, p.nheads_k, p.headdim);
  check_elements("v", p.batch, p.seqlen_k, p.nheads_k, p.headdim_v);
  check_elements("o", p.batch, p.seqlen_q, p.nheads, p.headdim_v);
  if (p.bias != Bias::none)
    check_elements("bias", p.bias == Bias::bhqk || p.bias == Bias::bqk ? p.batch : 1, p.seqlen_q,
                   p.bias == Bias::bhqk || p.bias == Bias::hqk ? p.nheads : 1, p.seqlen_k);
}

}  // namespace attest
