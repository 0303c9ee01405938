#include <algorithm>
#include <bit>
#include <iterator>

#include "attest/gpu/api_problem.h"

namespace attest {
namespace {

constexpr const char* feature_words[] = {"gqa",  "headdim_v", "window", "prefix",    "documents", "softcap",   "alibi",
                                         "sink", "bias",      "varlen", "seqused_k", "pages",     "num_splits"};

// The enumerations of both sides name the same things in the same order.
static_assert(static_cast<int>(Dtype::fp16) == ATTEST_FP16 && static_cast<int>(Dtype::bf16) == ATTEST_BF16 &&
              static_cast<int>(Dtype::fp32) == ATTEST_FP32 && static_cast<int>(Dtype::fp8_e4m3) == ATTEST_FP8_E4M3 &&
              static_cast<int>(Dtype::fp8_e5m2) == ATTEST_FP8_E5M2);
static_assert(static_cast<int>(Causal::none) == ATTEST_CAUSAL_NONE &&
              static_cast<int>(Causal::bottom_right) == ATTEST_CAUSAL_BOTTOM_RIGHT &&
              static_cast<int>(Causal::top_left) == ATTEST_CAUSAL_TOP_LEFT);
static_assert(static_cast<int>(Bias::none) == ATTEST_BIAS_NONE && static_cast<int>(Bias::bhqk) == ATTEST_BIAS_BHQK &&
              static_cast<int>(Bias::hqk) == ATTEST_BIAS_HQK && static_cast<int>(Bias::bqk) == ATTEST_BIAS_BQK &&
              static_cast<int>(Bias::qk) == ATTEST_BIAS_QK);

const std::int64_t* data_of(const std::vector<std::int64_t>& list) { return list.empty() ? nullptr : list.data(); }

std::vector<std::int64_t> list_of(const std::int64_t* data, std::int64_t count) {
  return data == nullptr ? std::vector<std::int64_t>{} : std::vector<std::int64_t>(data, data + count);
}

}  // namespace

const char* feature_word(std::uint64_t bit) {
  const auto at = static_cast<std::size_t>(std::countr_zero(bit));
  return at < std::size(feature_words) ? feature_words[at] : "?";
}

std::uint64_t features_of(const Case& c) {
  const Problem& p = c.problem;
  const std::pair<bool, std::uint64_t> asked[] = {{p.nheads != p.nheads_k, ATTEST_FEATURE_GQA},
                                                  {p.headdim != p.headdim_v, ATTEST_FEATURE_VALUE_DIM},
                                                  {p.window_left >= 0 || p.window_right >= 0, ATTEST_FEATURE_WINDOW},
                                                  {p.prefix > 0, ATTEST_FEATURE_PREFIX},
                                                  {!p.documents.empty(), ATTEST_FEATURE_DOCUMENTS},
                                                  {p.softcap != 0, ATTEST_FEATURE_SOFTCAP},
                                                  {p.alibi, ATTEST_FEATURE_ALIBI},
                                                  {p.sink, ATTEST_FEATURE_SINK},
                                                  {p.bias != Bias::none, ATTEST_FEATURE_BIAS},
                                                  {!p.varlen_q.empty() || !p.varlen_k.empty(), ATTEST_FEATURE_VARLEN},
                                                  {!p.seqused_k.empty(), ATTEST_FEATURE_SEQUSED_K},
                                                  {c.layout.page_size > 0, ATTEST_FEATURE_PAGED},
                                                  {c.num_splits > 1, ATTEST_FEATURE_SPLITS}};
  std::uint64_t features = 0;
  for (const auto& [has, bit] : asked) features |= has ? bit : 0;
  return features;
}

attest_problem to_api(const Case& c) {
  const Problem& p = c.problem;
  attest_problem api{};
  api.struct_size = sizeof api;
  api.dtype = static_cast<std::int32_t>(p.dtype);
  api.features = features_of(c);
  api.batch = p.batch;
  api.nheads = p.nheads;
  api.nheads_k = p.nheads_k;
  api.seqlen_q = p.seqlen_q;
  api.seqlen_k = p.seqlen_k;
  api.headdim = p.headdim;
  api.headdim_v = p.headdim_v;
  api.softmax_scale = effective_softmax_scale(p);
  api.softcap = p.softcap;
  api.window_left = p.window_left;
  api.window_right = p.window_right;
  api.prefix = p.prefix;
  api.causal = static_cast<std::int32_t>(p.causal);
  api.bias = static_cast<std::int32_t>(p.bias);
  api.alibi = p.alibi;
  api.sink = p.sink;
  api.backward = c.backward;
  api.deterministic = c.deterministic;
  api.num_splits = c.num_splits;
  api.varlen_q = data_of(p.varlen_q);
  api.varlen_k = data_of(p.varlen_k);
  api.seqused_k = data_of(p.seqused_k);
  api.documents = data_of(p.documents);
  api.num_documents = std::ssize(p.documents);
  api.heads_first = c.layout.order == Layout::Order::bhsd;
  api.row_gap = c.layout.row_gap;
  api.seq_gap = c.layout.seq_gap;
  api.base_offset = c.layout.base_offset;
  api.page_size = c.layout.page_size;
  api.seed = c.seed;
  return api;
}

Case case_of(const attest_problem& api) {
  Case c;
  Problem& p = c.problem;
  p.dtype = static_cast<Dtype>(api.dtype);
  p.batch = api.batch;
  p.nheads = api.nheads;
  p.nheads_k = api.nheads_k;
  p.seqlen_q = api.seqlen_q;
  p.seqlen_k = api.seqlen_k;
  p.headdim = api.headdim;
  p.headdim_v = api.headdim_v;
  p.softmax_scale = api.softmax_scale;
  p.softcap = api.softcap;
  p.window_left = api.window_left;
  p.window_right = api.window_right;
  p.prefix = api.prefix;
  p.causal = static_cast<Causal>(api.causal);
  p.bias = static_cast<Bias>(api.bias);
  p.alibi = api.alibi != 0;
  p.sink = api.sink != 0;
  p.varlen_q = list_of(api.varlen_q, api.batch);
  p.varlen_k = list_of(api.varlen_k, api.batch);
  p.seqused_k = list_of(api.seqused_k, api.batch);
  p.documents = list_of(api.documents, api.num_documents);
  c.layout.order = api.heads_first != 0 ? Layout::Order::bhsd : Layout::Order::bshd;
  c.layout.row_gap = api.row_gap;
  c.layout.seq_gap = api.seq_gap;
  c.layout.base_offset = api.base_offset;
  c.layout.page_size = api.page_size;
  c.seed = api.seed;
  c.num_splits = api.num_splits;
  c.backward = api.backward != 0;
  c.deterministic = api.deterministic != 0;
  return c;
}

}  // namespace attest
