#include "power_peers.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>

#include "attest/reference/attends.h"
#include "attest/reference/rounding.h"

namespace attest::power {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix head_of(const Tensor& t, std::int64_t b, std::int64_t h, Dtype dtype, double factor) {
  Matrix m(t.extents[1], t.extents[3]);
  for (std::int64_t s = 0; s < t.extents[1]; ++s)
    for (std::int64_t d = 0; d < t.extents[3]; ++d)
      m(s, d) = static_cast<float>(round_to(dtype, t.at(b, s, h, d) * factor));
  return m;
}

void round_all(Matrix& m, Dtype dtype) {
  for (float* x = m.data(); x != m.data() + m.size(); ++x) *x = static_cast<float>(round_to(dtype, *x));
}

Tensor attention(const Problem& p, const Inputs& in, double q_factor, double k_factor) {
  Tensor o({p.batch, p.seqlen_q, p.nheads, p.headdim_v});
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.nheads; ++h) {
      const std::int64_t h_k = h / (p.nheads / p.nheads_k);
      Matrix s = head_of(in.q, b, h, p.dtype, q_factor) * head_of(in.k, b, h_k, p.dtype, k_factor).transpose();
      round_all(s, p.dtype);
      for (std::int64_t i = 0; i < p.seqlen_q; ++i) {
        for (std::int64_t j = 0; j < p.seqlen_k; ++j)
          if (!attends(p, b, i, j)) s(i, j) = -std::numeric_limits<float>::infinity();
        const float max = s.row(i).maxCoeff();
        s.row(i) = (s.row(i).array() - max).exp();
        s.row(i) /= s.row(i).sum();
      }
      round_all(s, p.dtype);
      Matrix product = s * head_of(in.v, b, h_k, p.dtype, 1);
      round_all(product, p.dtype);
      for (std::int64_t i = 0; i < p.seqlen_q; ++i)
        for (std::int64_t d = 0; d < p.headdim_v; ++d) o.at(b, i, h, d) = product(i, d);
    }
  return o;
}

double max_error(const Tensor& a, const Tensor& b) {
  double largest = 0;
  for (std::size_t n = 0; n < a.values.size(); ++n) largest = std::max(largest, std::abs(a.values[n] - b.values[n]));
  return largest;
}

double mean_error(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (std::size_t n = 0; n < a.values.size(); ++n) sum += std::abs(a.values[n] - b.values[n]);
  return sum / static_cast<double>(a.values.size());
}

bool both_beyond(const Tensor& got, const Tensor& want, double limit) {
  for (std::size_t n = 0; n < got.values.size(); ++n) {
    const double error = std::abs(got.values[n] - want.values[n]);
    if (error > limit && error > limit * std::abs(want.values[n])) return true;
  }
  return false;
}

bool all_close(const Tensor& got, const Tensor& want, double limit) {
  for (std::size_t n = 0; n < got.values.size(); ++n)
    if (std::abs(got.values[n] - want.values[n]) > limit + limit * std::abs(want.values[n])) return false;
  return true;
}

}  // namespace

Baselines low_precision(const Problem& p, const Inputs& inputs) {
  const double scale = effective_softmax_scale(p), root = std::sqrt(scale);
  return {attention(p, inputs, 1, scale), attention(p, inputs, root, root)};
}

std::vector<PeerVerdict> peer_verdicts(const Problem& p, const Forward& truth, const Baselines& baselines,
                                       const Outputs& outputs) {
  Tensor rounded = truth.o;
  double noise = 0;
  for (double& x : rounded.values) {
    x = round_to(p.dtype, x);
    noise = std::max(noise, std::abs(round_to(p.dtype, round_to(p.dtype, x + 0.3) - 0.3) - x));
  }
  const Tensor& o = outputs.o;
  const Tensor& lse = *outputs.lse;
  const double flashinfer = p.dtype == Dtype::fp16 ? 1e-3 : 1e-2;
  return {
      {"FlashAttention", max_error(o, rounded) > 2 * max_error(baselines.scaled_k, rounded) + 2 * noise},
      {"PyTorch", max_error(o, truth.o) > std::max(1e-5, 4 * max_error(baselines.scaled_qk, truth.o))},
      {"cuDNN", both_beyond(o, truth.o, 2e-2) || both_beyond(lse, truth.lse, 2e-2)},
      {"FlashInfer", !all_close(o, rounded, flashinfer) || !all_close(lse, truth.lse, 1e-3)},
      {"CUTLASS", !(max_error(o, rounded) < 1e-2 && mean_error(o, rounded) < 1e-3 && max_error(lse, truth.lse) < 1e-2 &&
                    mean_error(lse, truth.lse) < 1e-3)},
  };
}

}  // namespace attest::power
