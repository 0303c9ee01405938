#include "feature_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "attest/reference/rounding.h"
#include "random_kernel.h"

namespace attest {
namespace {

using Random = std::mt19937_64;

std::int64_t below(Random& random, std::int64_t limit) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
}
bool one_in(Random& random, std::int64_t n) { return below(random, n) == 0; }

// Lengths with empty sequences first, in the middle, last or in a row.
std::vector<std::int64_t> lengths(Random& random, std::int64_t batch, std::int64_t longest) {
  std::vector<std::int64_t> result;
  for (std::int64_t b = 0; b < batch; ++b) result.push_back(1 + below(random, longest));
  switch (below(random, 6)) {
    case 0:
      result.front() = 0;
      break;
    case 1:
      result.back() = 0;
      break;
    case 2:
      result[result.size() / 2] = 0;
      break;
    case 3:
      std::fill(result.begin() + 1, result.begin() + std::min<std::int64_t>(batch, 3), 0);
      break;
    default:
      break;
  }
  return result;
}

void draw_documents(Random& random, Problem& p) {
  std::int64_t left = std::max(p.seqlen_q, p.seqlen_k);
  while (left > 0) {
    const std::int64_t length = std::min(left, below(random, 2 + left / 2));
    p.documents.push_back(length);
    left -= length;
  }
}

void fill_normal(Random& random, Tensor& tensor, double factor, Dtype dtype) {
  std::normal_distribution<double> normal(0, factor);
  for (double& x : tensor.values) x = round_to(dtype, normal(random));
}

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

// NaN or Inf at one element of a row (b, s, h), or, one time in four, at all of them; s lies below length(b). Returns
// s.
template <class Length>
std::int64_t spoil(Random& random, Tensor& tensor, bool has_inf, const Length& length) {
  const std::int64_t b = below(random, tensor.extents[0]);
  if (length(b) == 0) return 0;
  const std::int64_t s = below(random, length(b)), h = below(random, tensor.extents[2]), dim = tensor.extents[3];
  const double bad = has_inf ? pick(random, {nan, inf, -inf}) : nan;
  const std::int64_t only = one_in(random, 4) ? -1 : below(random, dim);
  for (std::int64_t d = 0; d < dim; ++d)
    if (only < 0 || d == only) tensor.at(b, s, h, d) = bad;
  return s;
}

// Rows of the bias get a NaN or an Inf, -Inf throughout, or a value at `key` that makes it weigh nothing in float64.
void spoil_bias(Random& random, Tensor& bias, std::int64_t key) {
  const auto [batch, heads, queries, keys] = bias.extents;
  if (queries == 0 || keys == 0) return;
  constexpr double far_below = -2000;
  for (std::int64_t n = 2 + below(random, 3); n > 0; --n) {
    const std::int64_t b = below(random, batch), h = below(random, heads), i = below(random, queries);
    const double bad = pick(random, {nan, inf, -inf, -inf, far_below, far_below});
    const bool whole_row = bad == -inf && one_in(random, 2);
    const std::int64_t only = bad == far_below ? key : below(random, keys);
    for (std::int64_t j = 0; j < keys; ++j)
      if (whole_row || j == only) bias.at(b, h, i, j) = bad;
  }
}

std::int64_t num_queries(const Problem& p, std::int64_t b) { return p.varlen_q.empty() ? p.seqlen_q : p.varlen_q[b]; }
std::int64_t num_keys(const Problem& p, std::int64_t b) {
  return !p.seqused_k.empty() ? p.seqused_k[b] : p.varlen_k.empty() ? p.seqlen_k : p.varlen_k[b];
}

}  // namespace

Tensor random_tensor(std::array<std::int64_t, 4> extents, std::uint64_t seed) {
  Random random(seed);
  Tensor tensor(extents);
  fill_normal(random, tensor, 1, Dtype::bf16);
  return tensor;
}

// What lies outside the logical domain is never read: NaN shows it.
void poison_outside(FeatureCase& f) {
  const Problem& p = f.problem;
  const auto poison = [](Tensor& tensor, std::int64_t b, std::int64_t from) {
    const std::int64_t row = tensor.extents[2] * tensor.extents[3];
    const auto first = tensor.values.begin() + static_cast<std::ptrdiff_t>(b * tensor.extents[1] * row);
    std::fill(first + static_cast<std::ptrdiff_t>(from * row),
              first + static_cast<std::ptrdiff_t>(tensor.extents[1] * row), nan);
  };
  for (std::int64_t b = 0; b < p.batch; ++b) {
    poison(f.inputs.q, b, num_queries(p, b));
    poison(f.inputs.dout, b, num_queries(p, b));
    poison(f.inputs.k, b, num_keys(p, b));
    poison(f.inputs.v, b, num_keys(p, b));
  }
}

FeatureCase draw_feature_case(Random& random, std::int64_t longest) {
  FeatureCase f;
  Problem& p = f.problem;
  p.batch = 1 + below(random, 4);
  p.nheads_k = pick(random, {1, 2});
  p.nheads = p.nheads_k * pick(random, {1, 2, 3});
  p.seqlen_q = 1 + below(random, longest);
  p.seqlen_k = 1 + below(random, longest);
  p.headdim = pick(random, {1, 2, 5, 8, 16});
  p.headdim_v = one_in(random, 2) ? p.headdim : pick(random, {1, 3, 8});
  p.dtype = pick(random, all_dtypes);
  if (one_in(random, 3)) {
    p.varlen_q = lengths(random, p.batch, longest);
    p.seqlen_q = *std::max_element(p.varlen_q.begin(), p.varlen_q.end());
  }
  if (one_in(random, 3)) {
    p.varlen_k = lengths(random, p.batch, longest);
    p.seqlen_k = *std::max_element(p.varlen_k.begin(), p.varlen_k.end());
  }
  if (one_in(random, 5))
    for (std::int64_t b = 0; b < p.batch; ++b)
      p.seqused_k.push_back(below(random, (p.varlen_k.empty() ? p.seqlen_k : p.varlen_k[b]) + 1));
  p.causal = pick(random, {Causal::none, Causal::bottom_right, Causal::top_left});
  if (one_in(random, 3)) p.window_left = below(random, longest);
  if (one_in(random, 3)) p.window_right = below(random, longest);
  if (one_in(random, 4)) p.prefix = below(random, longest + 2);
  if (one_in(random, 4)) draw_documents(random, p);
  if (one_in(random, 3)) p.softcap = pick(random, {0.5, 2.0, 30.0});
  p.alibi = one_in(random, 4);
  p.sink = one_in(random, 3);
  if (one_in(random, 2)) p.bias = pick(random, {Bias::bhqk, Bias::hqk, Bias::bqk, Bias::qk});
  if (one_in(random, 3)) p.softmax_scale = pick(random, {-0.7, 0.0, 1.5, 6.0});
  validate(p);

  const Dtype out = output_dtype(p.dtype);
  Inputs& in = f.inputs;
  in.q = Tensor({p.batch, p.seqlen_q, p.nheads, p.headdim});
  in.k = Tensor({p.batch, p.seqlen_k, p.nheads_k, p.headdim});
  in.v = Tensor({p.batch, p.seqlen_k, p.nheads_k, p.headdim_v});
  in.dout = Tensor({p.batch, p.seqlen_q, p.nheads, p.headdim_v});
  const double size = pick(random, {1.0, 1.0, 0.1, 5.0});  // 5: scores of +-100
  fill_normal(random, in.q, size, p.dtype);
  fill_normal(random, in.k, size, p.dtype);
  fill_normal(random, in.v, 1, p.dtype);
  fill_normal(random, in.dout, 1, out);
  if (p.bias != Bias::none) {
    const bool each_batch = p.bias == Bias::bhqk || p.bias == Bias::bqk;
    const bool each_head = p.bias == Bias::bhqk || p.bias == Bias::hqk;
    in.bias = Tensor({each_batch ? p.batch : 1, each_head ? p.nheads : 1, p.seqlen_q, p.seqlen_k});
    fill_normal(random, in.bias, 1, out);
  }
  if (p.alibi) {
    in.alibi_slopes = Tensor({p.batch, p.nheads, 1, 1});
    for (double& slope : in.alibi_slopes.values) slope = std::exp2(-static_cast<double>(1 + below(random, 8)));
  }
  if (p.sink) {
    in.sink = Tensor({1, p.nheads, 1, 1});
    fill_normal(random, in.sink, 2, Dtype::fp32);
  }
  if (is_fp8(p.dtype))
    for (Tensor* descale : {&in.q_descale, &in.k_descale, &in.v_descale}) {
      *descale = Tensor({p.batch, p.nheads_k, 1, 1});
      for (double& x : descale->values) x = pick(random, {0.25, 0.5, 0.8125, 1.75});
    }
  if (one_in(random, 2)) poison_outside(f);
  Case c;
  c.problem = p;
  f.description = command_line(c);
  return f;
}

FeatureCase draw_non_finite_case(Random& random, std::int64_t longest) {
  FeatureCase f = draw_feature_case(random, longest);
  const Problem& p = f.problem;
  const auto queries = [&p](std::int64_t b) { return num_queries(p, b); };
  const auto keys = [&p](std::int64_t b) { return num_keys(p, b); };
  const bool has_inf = !is_fp8(p.dtype);
  // One tensor alone, mostly: two sources hide each other.
  const std::int64_t which = below(random, 5);
  if (which == 0 || which == 4) spoil(random, f.inputs.q, has_inf, queries);
  if (which == 1 || which == 4) spoil(random, f.inputs.k, has_inf, keys);
  const std::int64_t key = which == 2 || which == 4 ? spoil(random, f.inputs.v, has_inf, keys) : 0;
  if (p.bias != Bias::none && which >= 2) spoil_bias(random, f.inputs.bias, key);
  return f;
}

}  // namespace attest
