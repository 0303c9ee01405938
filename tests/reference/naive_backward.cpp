#include <cmath>
#include <limits>

#include "attest/reference/attends.h"
#include "naive.h"

namespace attest {
namespace {

using Real = long double;

Real factor(const Tensor& t, std::int64_t b, std::int64_t h) {
  return t.values.empty() ? 1 : static_cast<Real>(t.at(b, h, 0, 0));
}

struct Weight {
  std::int64_t j;  // -1: the sink
  Real x = 0, slope = 1, score = 0, p = 0, dp = 0;
};

}  // namespace

Gradients naive_backward(const Problem& p, const Inputs& in) {
  Gradients out{Tensor(in.q.extents), Tensor(in.k.extents), Tensor(in.v.extents)};
  if (p.sink) out.dsink = Tensor({1, p.nheads, 1, 1});
  if (p.bias != Bias::none) out.dbias = Tensor(in.bias.extents);
  const auto scale = static_cast<Real>(static_cast<float>(effective_softmax_scale(p)));
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.nheads; ++h) {
      const std::int64_t h_k = h / (p.nheads / p.nheads_k);
      const Real fq = factor(in.q_descale, b, h_k), fk = factor(in.k_descale, b, h_k),
                 fv = factor(in.v_descale, b, h_k);
      for (std::int64_t i = 0; i < queries_of(p, b); ++i) {
        std::vector<Weight> row;
        const std::int64_t bias_b = in.bias.extents[0] == 1 ? 0 : b, bias_h = in.bias.extents[1] == 1 ? 0 : h;
        for (std::int64_t j = 0; j < p.seqlen_k; ++j) {
          if (!attends(p, b, i, j)) continue;
          Weight w{j};
          for (std::int64_t d = 0; d < p.headdim; ++d)
            w.x += fq * static_cast<Real>(in.q.at(b, i, h, d)) * fk * in.k.at(b, j, h_k, d);
          w.score = scale * w.x;
          if (p.softcap != 0) {
            const Real t = std::tanh(w.score / p.softcap);
            w.score = p.softcap * t;
            w.slope = (1 - t) * (1 + t);
          }
          if (p.alibi)
            w.score -= static_cast<Real>(in.alibi_slopes.at(b, h, 0, 0)) * std::abs(i + diagonal_offset(p, b) - j);
          if (p.bias != Bias::none) w.score += in.bias.at(bias_b, bias_h, i, j);
          for (std::int64_t c = 0; c < p.headdim_v; ++c)
            w.dp += static_cast<Real>(in.dout.at(b, i, h, c)) * fv * in.v.at(b, j, h_k, c);
          row.push_back(w);
        }
        if (row.empty()) continue;
        if (p.sink) {
          Weight w{-1};
          w.score = in.sink.at(0, h, 0, 0);
          row.push_back(w);
        }
        Real max = -std::numeric_limits<Real>::infinity(), sum = 0;
        for (const Weight& w : row) max = w.score > max ? w.score : max;
        for (Weight& w : row) sum += w.p = std::exp(w.score - max);
        for (Weight& w : row) w.p /= sum;
        for (const Weight& w : row) {
          Real ds = 0;  // p_j sum_l p_l (dp_j - dp_l)
          for (const Weight& other : row) ds += other.p * (w.dp - other.dp);
          ds *= w.p;
          if (w.j < 0) {
            out.dsink.at(0, h, 0, 0) += static_cast<double>(ds);
            continue;
          }
          if (p.bias != Bias::none) out.dbias.at(bias_b, bias_h, i, w.j) += static_cast<double>(ds);
          const Real dx = scale * ds * w.slope;
          for (std::int64_t d = 0; d < p.headdim; ++d) {
            out.dq.at(b, i, h, d) += static_cast<double>(dx * fk * in.k.at(b, w.j, h_k, d));
            out.dk.at(b, w.j, h_k, d) += static_cast<double>(dx * fq * in.q.at(b, i, h, d));
          }
          for (std::int64_t c = 0; c < p.headdim_v; ++c)
            out.dv.at(b, w.j, h_k, c) += static_cast<double>(w.p * in.dout.at(b, i, h, c));
        }
      }
    }
  return out;
}

}  // namespace attest
