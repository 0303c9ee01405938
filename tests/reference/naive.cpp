#include "naive.h"

#include <cmath>
#include <limits>

#include "attest/reference/attends.h"

namespace attest {

Forward naive_forward(const Problem& p, const Inputs& in) {
  Forward out{Tensor({p.batch, p.seqlen_q, p.nheads, p.headdim_v}), Tensor({p.batch, p.nheads, p.seqlen_q, 1})};
  const auto scale = static_cast<long double>(static_cast<float>(effective_softmax_scale(p)));
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.nheads; ++h)
      for (std::int64_t i = 0; i < p.seqlen_q; ++i) {
        const std::int64_t h_k = h / (p.nheads / p.nheads_k);
        std::vector<std::int64_t> keys;
        std::vector<long double> scores;
        long double max = -std::numeric_limits<long double>::infinity();
        for (std::int64_t j = 0; j < p.seqlen_k; ++j) {
          if (!attends(p, b, i, j)) continue;
          long double dot = 0;
          for (std::int64_t d = 0; d < p.headdim; ++d)
            dot += static_cast<long double>(in.q.at(b, i, h, d)) * in.k.at(b, j, h_k, d);
          keys.push_back(j);
          scores.push_back(scale * dot);
          if (scores.back() > max) max = scores.back();
        }
        long double sum = 0;
        std::vector<long double> o(static_cast<std::size_t>(p.headdim_v), 0);
        for (std::size_t n = 0; n < keys.size(); ++n) {
          const long double e = std::exp(scores[n] - max);
          sum += e;
          for (std::int64_t c = 0; c < p.headdim_v; ++c) o[c] += e * in.v.at(b, keys[n], h_k, c);
        }
        for (std::int64_t c = 0; c < p.headdim_v; ++c)
          out.o.at(b, i, h, c) = keys.empty() ? 0 : static_cast<double>(o[c] / sum);
        out.lse.at(b, h, i, 0) =
            keys.empty() ? -std::numeric_limits<double>::infinity() : static_cast<double>(max + std::log(sum));
      }
  return out;
}

}  // namespace attest
