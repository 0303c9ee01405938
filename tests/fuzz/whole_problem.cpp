#include "whole_problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace attest::test {
namespace {

using Random = std::mt19937_64;

std::int64_t pick(Random& random, std::initializer_list<std::int64_t> from) {
  return from.begin()[random() % from.size()];
}
bool one_in(Random& random, unsigned n) { return random() % n == 0; }

std::vector<std::int64_t> lengths(Random& random, std::int64_t batch, std::int64_t most) {
  std::vector<std::int64_t> result;
  for (std::int64_t b = 0; b < batch; ++b)
    result.push_back(one_in(random, 3) ? 0 : static_cast<std::int64_t>(random() % static_cast<unsigned>(most + 1)));
  return result;
}

std::vector<std::int64_t> cut(Random& random, std::int64_t total) {
  std::vector<std::int64_t> documents;
  while (total > 0) {
    const std::int64_t length = std::min<std::int64_t>(total, static_cast<std::int64_t>(random() % 40));
    documents.push_back(length);
    total -= length;
  }
  return documents;
}

float as_float(double x) { return static_cast<float>(x); }

std::int64_t entry(const std::vector<std::int64_t>& list, std::int64_t b, std::int64_t otherwise) {
  return list.empty() ? otherwise : list[static_cast<std::size_t>(b)];
}

}  // namespace

Case whole_case(std::uint64_t index, Dtype dtype) {
  Random random(index * 7919 + 13);
  Case c;
  c.seed = index;
  Problem& p = c.problem;
  p.dtype = dtype;
  p.batch = pick(random, {1, 2, 3, 5});
  p.nheads_k = pick(random, {1, 2});
  p.nheads = p.nheads_k * pick(random, {1, 2, 3});
  p.seqlen_q = pick(random, {1, 7, 40, 64, 90, 130});
  p.seqlen_k = pick(random, {1, 5, 64, 65, 100, 190});
  p.headdim = pick(random, {8, 24, 64});
  p.headdim_v = pick(random, {8, 17, 64});
  p.causal = static_cast<Causal>(pick(random, {0, 1, 2}));
  if (one_in(random, 3)) p.window_left = pick(random, {0, 3, 17, 64});
  if (one_in(random, 3)) p.window_right = pick(random, {0, 3, 17, 64});
  if (one_in(random, 3)) p.prefix = pick(random, {1, 15, 16, 40, 300});
  if (one_in(random, 3)) p.softcap = static_cast<double>(pick(random, {1, 2, 30}));
  p.alibi = one_in(random, 3);
  p.sink = one_in(random, 3);
  if (one_in(random, 3)) p.bias = static_cast<Bias>(pick(random, {1, 2, 3, 4}));
  if (one_in(random, 3)) {
    p.varlen_q = lengths(random, p.batch, p.seqlen_q);
    p.seqlen_q = *std::max_element(p.varlen_q.begin(), p.varlen_q.end());
  }
  const std::int64_t keys = one_in(random, 3) ? 1 : 0;
  if (keys == 1) {
    p.varlen_k = lengths(random, p.batch, p.seqlen_k);
    p.seqlen_k = *std::max_element(p.varlen_k.begin(), p.varlen_k.end());
  }
  if (one_in(random, 4))
    for (std::int64_t b = 0; b < p.batch; ++b)
      p.seqused_k.push_back(
          static_cast<std::int64_t>(random() % static_cast<unsigned>(entry(p.varlen_k, b, p.seqlen_k) + 1)));
  if (one_in(random, 3)) p.documents = cut(random, std::max(p.seqlen_q, p.seqlen_k));
  if (p.varlen_k.empty() && one_in(random, 3)) c.layout.page_size = pick(random, {1, 16, 24, 64});
  if (one_in(random, 3)) c.num_splits = pick(random, {2, 3, 9});
  if (one_in(random, 3)) c.layout.order = Layout::Order::bhsd;
  if (one_in(random, 3)) c.layout.row_gap = pick(random, {1, 8});
  if (one_in(random, 3)) c.layout.seq_gap = pick(random, {1, 3});
  validate(c);
  return c;
}

Inputs whole_inputs(const Case& c) {
  const Problem& p = c.problem;
  Inputs in = make_inputs(c);
  Random random(c.seed ^ 0xfeed);
  std::normal_distribution<double> normal;
  const auto fill = [&](Tensor& t, std::array<std::int64_t, 4> extents, auto value) {
    t = Tensor(extents);
    for (double& x : t.values) x = as_float(value());
  };
  const bool per_batch = p.bias == Bias::bhqk || p.bias == Bias::bqk,
             per_head = p.bias == Bias::bhqk || p.bias == Bias::hqk;
  if (p.bias != Bias::none)
    fill(in.bias, {per_batch ? p.batch : 1, per_head ? p.nheads : 1, p.seqlen_q, p.seqlen_k},
         [&] { return std::round(normal(random) * 64) / 64; });
  if (p.alibi) fill(in.alibi_slopes, {p.batch, p.nheads, 1, 1}, [&] { return std::abs(normal(random)) / 8; });
  if (p.sink) fill(in.sink, {1, p.nheads, 1, 1}, [&] { return 2 * normal(random); });
  if (is_fp8(p.dtype))
    for (Tensor* t : {&in.q_descale, &in.k_descale, &in.v_descale})
      fill(*t, {p.batch, p.nheads_k, 1, 1}, [&] { return std::exp2(normal(random) / 2); });
  return in;
}

Outputs whole_truth(const Case& c, const Inputs& in) {
  const Problem& p = c.problem;
  Outputs out;
  out.o = Tensor({p.batch, p.seqlen_q, p.nheads, p.headdim_v});
  out.lse = Tensor({p.batch, p.nheads, p.seqlen_q, 1});
  const auto at = [](const Tensor& t, std::int64_t a, std::int64_t b, std::int64_t d, std::int64_t e) {
    const auto& n = t.extents;
    const std::int64_t i = n[0] == 1 ? 0 : a, j = n[1] == 1 ? 0 : b;
    return t.values[static_cast<std::size_t>(((i * n[1] + j) * n[2] + d) * n[3] + e)];
  };
  const auto same_document = [&](std::int64_t i, std::int64_t j) {
    std::int64_t start = 0;
    for (const std::int64_t length : p.documents) {
      if (i >= start && i < start + length) return j >= start && j < start + length;
      start += length;
    }
    return p.documents.empty();
  };
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t sq = entry(p.varlen_q, b, p.seqlen_q);
    const std::int64_t sk = entry(p.seqused_k, b, entry(p.varlen_k, b, p.seqlen_k));
    const std::int64_t off = p.causal == Causal::top_left ? 0 : sk - sq;
    for (std::int64_t h = 0; h < p.nheads; ++h) {
      const std::int64_t hk = h / (p.nheads / p.nheads_k);
      const auto descale = [&](const Tensor& t) { return t.values.empty() ? 1.0 : at(t, b, hk, 0, 0); };
      for (std::int64_t i = 0; i < sq; ++i) {
        std::vector<std::pair<std::int64_t, double>> seen;
        double largest =
            p.sink ? in.sink.values[static_cast<std::size_t>(h)] : -std::numeric_limits<double>::infinity();
        for (std::int64_t j = 0; j < sk; ++j) {
          const std::int64_t d = j - i - off;  // keys after the diagonal
          const bool band = (p.causal == Causal::none || d <= 0) && (p.window_right < 0 || d <= p.window_right) &&
                            (p.window_left < 0 || -d <= p.window_left);
          if (!same_document(i, j) || !(band || j < p.prefix)) continue;
          double dot = 0;
          for (std::int64_t e = 0; e < p.headdim; ++e) dot += at(in.q, b, i, h, e) * at(in.k, b, j, hk, e);
          double score = effective_softmax_scale(p) * descale(in.q_descale) * descale(in.k_descale) * dot;
          if (p.softcap != 0) score = p.softcap * std::tanh(score / p.softcap);
          if (p.alibi) score -= at(in.alibi_slopes, b, h, 0, 0) * static_cast<double>(std::abs(d));
          if (p.bias != Bias::none) score += at(in.bias, b, h, i, j);
          seen.emplace_back(j, score);
          largest = std::max(largest, score);
        }
        double& lse = out.lse->values[static_cast<std::size_t>((b * p.nheads + h) * p.seqlen_q + i)];
        lse = largest;
        if (seen.empty()) continue;
        double sum = p.sink ? std::exp(in.sink.values[static_cast<std::size_t>(h)] - largest) : 0;
        for (const auto& [j, score] : seen) sum += std::exp(score - largest);
        lse = largest + std::log(sum);
        for (std::int64_t e = 0; e < p.headdim_v; ++e) {
          double o = 0;
          for (const auto& [j, score] : seen) o += std::exp(score - lse) * at(in.v, b, j, hk, e);
          out.o.values[static_cast<std::size_t>(((b * p.seqlen_q + i) * p.nheads + h) * p.headdim_v + e)] =
              o * descale(in.v_descale);
        }
      }
    }
  }
  return out;
}

}  // namespace attest::test
