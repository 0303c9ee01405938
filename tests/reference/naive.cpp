#include "naive.h"

#include <cmath>
#include <limits>

#include "attest/reference/attends.h"

namespace attest {

namespace {

// What the key's bias is for query i, whatever the bias is shared over.
long double bias_of(const Problem& p, const Inputs& in, std::int64_t b, std::int64_t h, std::int64_t i,
                    std::int64_t j) {
  switch (p.bias) {
    case Bias::none:
      return 0;
    case Bias::bhqk:
      return in.bias.at(b, h, i, j);
    case Bias::hqk:
      return in.bias.at(0, h, i, j);
    case Bias::bqk:
      return in.bias.at(b, 0, i, j);
    case Bias::qk:
      return in.bias.at(0, 0, i, j);
  }
  return 0;
}

}  // namespace

Forward naive_forward(const Problem& p, const Inputs& in) {
  constexpr auto infinity = std::numeric_limits<long double>::infinity();
  Forward out{Tensor({p.batch, p.seqlen_q, p.nheads, p.headdim_v}), Tensor({p.batch, p.nheads, p.seqlen_q, 1})};
  const auto cap = static_cast<long double>(static_cast<float>(p.softcap));
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.nheads; ++h)
      for (std::int64_t i = 0; i < (p.varlen_q.empty() ? p.seqlen_q : p.varlen_q[b]); ++i) {
        const std::int64_t h_k = h / (p.nheads / p.nheads_k);
        const std::int64_t sq = p.varlen_q.empty() ? p.seqlen_q : p.varlen_q[b];
        const std::int64_t sk = !p.seqused_k.empty()  ? p.seqused_k[b]
                                : !p.varlen_k.empty() ? p.varlen_k[b]
                                                      : p.seqlen_k;
        const std::int64_t off = p.causal == Causal::top_left ? 0 : sk - sq;
        auto scale = static_cast<long double>(static_cast<float>(effective_softmax_scale(p)));
        if (is_fp8(p.dtype)) {
          scale *= in.q_descale.at(b, h_k, 0, 0);
          scale *= in.k_descale.at(b, h_k, 0, 0);
        }
        std::vector<std::int64_t> keys;
        std::vector<long double> scores;
        long double max = -infinity;
        for (std::int64_t j = 0; j < p.seqlen_k; ++j) {
          if (!attends(p, b, i, j)) continue;
          long double dot = 0;
          for (std::int64_t d = 0; d < p.headdim; ++d)
            dot += static_cast<long double>(in.q.at(b, i, h, d)) * in.k.at(b, j, h_k, d);
          long double score = scale * dot;
          if (cap > 0) score = cap * std::tanh(score / cap);
          if (p.alibi) score -= in.alibi_slopes.at(b, h, 0, 0) * static_cast<long double>(std::abs(i + off - j));
          score += bias_of(p, in, b, h, i, j);
          keys.push_back(j);
          scores.push_back(score);
          if (score > max) max = score;
        }
        const long double sink = p.sink ? in.sink.at(0, h, 0, 0) : -infinity;
        if (sink > max) max = sink;
        // Nothing weighs anything, but NaN is still NaN.
        const long double shift = max == -infinity ? 0 : max;
        long double sum = std::exp(sink - shift);
        std::vector<long double> o(static_cast<std::size_t>(p.headdim_v), 0);
        for (std::size_t n = 0; n < keys.size(); ++n) {
          const long double e = std::exp(scores[n] - shift);
          sum += e;
          for (std::int64_t c = 0; c < p.headdim_v; ++c) {
            long double v = in.v.at(b, keys[n], h_k, c);
            if (is_fp8(p.dtype)) v *= in.v_descale.at(b, h_k, 0, 0);
            o[c] += e * v;
          }
        }
        for (std::int64_t c = 0; c < p.headdim_v; ++c)
          out.o.at(b, i, h, c) = static_cast<double>(sum == 0 ? o[c] : o[c] / sum);
        out.lse.at(b, h, i, 0) = static_cast<double>(shift + std::log(sum));
      }
  return out;
}

}  // namespace attest
