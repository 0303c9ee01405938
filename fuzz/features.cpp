// What a case may have, by name: the rows of the coverage summary.
#include <algorithm>

#include "attest/fuzz/census.h"
#include "attest/reference/attends.h"

namespace attest {
namespace {

using List = std::vector<std::int64_t>;

template <Dtype dtype>
bool has_dtype(const Case& c) {
  return c.problem.dtype == dtype;
}
template <Distribution inputs>
bool has_inputs(const Case& c) {
  return c.inputs == inputs;
}
template <Bias bias>
bool has_bias(const Case& c) {
  return c.problem.bias == bias;
}
template <std::int64_t Problem::*extent, std::int64_t value>
bool equals(const Case& c) {
  return c.problem.*extent == value;
}

bool masked(const Problem& p) { return p.causal != Causal::none || p.window_left >= 0 || p.window_right >= 0; }

bool has_an_empty_sequence(const Case& c) {
  const Problem& p = c.problem;
  if (p.varlen_q.empty() && p.varlen_k.empty() && p.seqused_k.empty()) return false;
  for (std::int64_t b = 0; b < p.batch; ++b)
    if (queries_of(p, b) == 0 || keys_of(p, b) == 0) return true;
  return false;
}

bool has_empty_sequences_in_a_row(const Case& c) {
  const auto twice = [](const List& lengths) {
    return std::adjacent_find(lengths.begin(), lengths.end(), [](auto a, auto b) { return a + b == 0; }) !=
           lengths.end();
  };
  return twice(c.problem.varlen_q) || twice(c.problem.varlen_k);
}

// All but one of at least three are no longer than an eighth of it.
bool has_one_long_sequence(const Case& c) {
  const auto one_long = [](List lengths) {
    if (lengths.size() < 3) return false;
    std::sort(lengths.begin(), lengths.end());
    return lengths.back() >= 16 && 8 * lengths[lengths.size() - 2] <= lengths.back();
  };
  return one_long(c.problem.varlen_q) || one_long(c.problem.varlen_k);
}

bool has_a_query_sequence_far_above_its_keys(const Case& c) {
  const Problem& p = c.problem;
  if (p.varlen_q.empty() && p.varlen_k.empty() && p.seqused_k.empty()) return false;
  for (std::int64_t b = 0; b < p.batch; ++b)
    if (keys_of(p, b) > 0 && queries_of(p, b) > keys_of(p, b) + 64) return true;
  return false;
}

bool has_a_boundary_beside_a_tile(const Case& c) {
  std::int64_t end = 0;
  for (const std::int64_t length : c.problem.documents) {
    end += length;
    if (end > 1 && (end % 16 == 1 || end % 16 == 15)) return true;
  }
  return false;
}

bool has_a_partial_page(const Case& c) {
  const Problem& p = c.problem;
  for (std::int64_t b = 0; b < p.batch && c.layout.page_size > 0; ++b)
    if (keys_of(p, b) % c.layout.page_size != 0) return true;
  return false;
}

// Whatever the tile: kernels' tiles have 16 keys or more.
bool has_more_splits_than_tiles(const Case& c) {
  return c.num_splits > 1 && c.problem.seqlen_k > 0 && (c.problem.seqlen_k + 15) / 16 < c.num_splits;
}

int modifiers(const Case& c) {
  const Problem& p = c.problem;
  return (p.prefix > 0) + !p.documents.empty() + (p.softcap != 0) + p.alibi + p.sink + (p.bias != Bias::none) +
         (!p.varlen_q.empty() || !p.varlen_k.empty()) + !p.seqused_k.empty() + (c.layout.page_size > 0) +
         (c.num_splits > 1);
}

const std::vector<Feature>& table() {
  static const std::vector<Feature> features = {
      {"fp16", has_dtype<Dtype::fp16>},
      {"bf16", has_dtype<Dtype::bf16>},
      {"fp32", has_dtype<Dtype::fp32>},
      {"fp8_e4m3", has_dtype<Dtype::fp8_e4m3>},
      {"fp8_e5m2", has_dtype<Dtype::fp8_e5m2>},
      {"causal bottom-right", [](const Case& c) { return c.problem.causal == Causal::bottom_right; }},
      {"causal top-left", [](const Case& c) { return c.problem.causal == Causal::top_left; }},
      {"window", [](const Case& c) { return c.problem.window_left >= 0 || c.problem.window_right >= 0; }},
      {"window on both sides", [](const Case& c) { return c.problem.window_left >= 0 && c.problem.window_right >= 0; }},
      {"prefix", [](const Case& c) { return c.problem.prefix > 0; }},
      {"prefix under a mask", [](const Case& c) { return c.problem.prefix > 0 && masked(c.problem); }},
      {"prefix of all keys",
       [](const Case& c) { return c.problem.prefix > 0 && c.problem.prefix >= c.problem.seqlen_k; }},
      {"documents", [](const Case& c) { return !c.problem.documents.empty(); }},
      {"documents, more than 8", [](const Case& c) { return c.problem.documents.size() > 8; }},
      {"an empty document",
       [](const Case& c) {
         const List& lengths = c.problem.documents;
         return std::find(lengths.begin(), lengths.end(), 0) != lengths.end();
       }},
      {"a document ends beside a tile", has_a_boundary_beside_a_tile},
      {"softcap", [](const Case& c) { return c.problem.softcap != 0; }},
      {"softcap <= 1", [](const Case& c) { return c.problem.softcap != 0 && c.problem.softcap <= 1; }},
      {"ALiBi", [](const Case& c) { return c.problem.alibi; }},
      {"sink", [](const Case& c) { return c.problem.sink; }},
      {"bias bhqk", has_bias<Bias::bhqk>},
      {"bias 1hqk", has_bias<Bias::hqk>},
      {"bias b1qk", has_bias<Bias::bqk>},
      {"bias 11qk", has_bias<Bias::qk>},
      {"softmax_scale given", [](const Case& c) { return c.problem.softmax_scale.has_value(); }},
      {"softmax_scale <= 0", [](const Case& c) { return c.problem.softmax_scale.value_or(1) <= 0; }},
      {"batch > 1", [](const Case& c) { return c.problem.batch > 1; }},
      {"GQA or MQA", [](const Case& c) { return c.problem.nheads_k < c.problem.nheads; }},
      {"group other than nheads_k",
       [](const Case& c) {
         const Problem& p = c.problem;
         return p.nheads_k > 1 && p.nheads_k < p.nheads && p.nheads / p.nheads_k != p.nheads_k;
       }},
      {"headdim_v other than headdim", [](const Case& c) { return c.problem.headdim_v != c.problem.headdim; }},
      {"headdim no multiple of 8", [](const Case& c) { return c.problem.headdim % 8 != 0; }},
      {"seqlen_q = 0", equals<&Problem::seqlen_q, 0>},
      {"seqlen_k = 0", equals<&Problem::seqlen_k, 0>},
      {"seqlen_q = 1", equals<&Problem::seqlen_q, 1>},
      {"seqlen_k > 128", [](const Case& c) { return c.problem.seqlen_k > 128; }},
      {"seqlen_k no multiple of 16", [](const Case& c) { return c.problem.seqlen_k % 16 != 0; }},
      {"seqlen_q > seqlen_k + 128", [](const Case& c) { return c.problem.seqlen_q > c.problem.seqlen_k + 128; }},
      {"varlen_q", [](const Case& c) { return !c.problem.varlen_q.empty(); }},
      {"varlen_k", [](const Case& c) { return !c.problem.varlen_k.empty(); }},
      {"varlen_q and varlen_k",
       [](const Case& c) { return !c.problem.varlen_q.empty() && !c.problem.varlen_k.empty(); }},
      {"an empty sequence", has_an_empty_sequence},
      {"empty sequences in a row", has_empty_sequences_in_a_row},
      {"one long sequence", has_one_long_sequence},
      {"a sequence of 64 more queries than keys", has_a_query_sequence_far_above_its_keys},
      {"seqused_k", [](const Case& c) { return !c.problem.seqused_k.empty(); }},
      {"pages", [](const Case& c) { return c.layout.page_size > 0; }},
      {"pages of 1", [](const Case& c) { return c.layout.page_size == 1; }},
      {"pages no multiple of 16", [](const Case& c) { return c.layout.page_size % 16 != 0; }},
      {"a page partly filled", has_a_partial_page},
      {"page_table given", [](const Case& c) { return !c.layout.page_table.empty(); }},
      {"splits", [](const Case& c) { return c.num_splits > 1; }},
      {"more splits than tiles", has_more_splits_than_tiles},
      {"two features or more", [](const Case& c) { return modifiers(c) >= 2; }},
      {"backward", [](const Case& c) { return c.backward; }},
      {"deterministic", [](const Case& c) { return c.deterministic; }},
      {"another order", [](const Case& c) { return c.layout.order != Layout::Order::bshd; }},
      {"gaps", [](const Case& c) { return c.layout.row_gap > 0 || c.layout.seq_gap > 0; }},
      {"base offset", [](const Case& c) { return c.layout.base_offset > 0; }},
      {"inputs normal", has_inputs<Distribution::normal>},
      {"inputs large", has_inputs<Distribution::large>},
      {"inputs shift", has_inputs<Distribution::shift>},
      {"inputs zero_q", has_inputs<Distribution::zero_q>},
      {"inputs one_v", has_inputs<Distribution::one_v>},
      {"inputs one_hot_v", has_inputs<Distribution::one_hot_v>},
      {"inputs non_finite", has_inputs<Distribution::non_finite>},
      {"inputs orthogonal_dout", has_inputs<Distribution::orthogonal_dout>},
  };
  return features;
}

}  // namespace

std::span<const Feature> features() { return table(); }

}  // namespace attest
