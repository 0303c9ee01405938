#include "emulated_backward.h"

#include <vector>

#include "attest/reference/attends.h"
#include "attest/reference/rounding.h"
#include "emulated_arithmetic.h"

namespace attest {
namespace {

using Floats = std::vector<float>;
constexpr float log2_e = 1.4426950408889634f;

float factor(const Tensor& t, std::int64_t b, std::int64_t h) {
  return t.values.empty() ? 1.0f : static_cast<float>(t.at(b, h, 0, 0));
}

// One head's share of dK and dV, before it is rounded.
struct Share {
  Floats dk, dv;  // [keys, dim]
};

class Run {
 public:
  Run(const EmulatedBackward& kernel, const Problem& problem, const Inputs& inputs, const Forward& handed)
      : k_(kernel), p_(problem), in_(inputs), handed_(handed), noise_(kernel.noise) {
    out_ = {Tensor(in_.q.extents), Tensor(in_.k.extents), Tensor(in_.v.extents)};
    if (p_.sink) out_.dsink = Tensor({1, p_.nheads, 1, 1});
    if (p_.bias != Bias::none) out_.dbias = Tensor(in_.bias.extents);
  }

  Gradients run() {
    const std::int64_t group = p_.nheads / p_.nheads_k;
    for (std::int64_t b = 0; b < p_.batch; ++b)
      for (std::int64_t h_k = 0; h_k < p_.nheads_k; ++h_k) {
        Share total{Floats(static_cast<std::size_t>(keys_of(p_, b) * p_.headdim)),
                    Floats(static_cast<std::size_t>(keys_of(p_, b) * p_.headdim_v))};
        for (std::int64_t h = h_k * group; h < (h_k + 1) * group; ++h) {
          const Share share = head(b, h, h_k);
          if (k_.fault == BackwardFault::one_head_of_group) total = {Floats(total.dk.size()), Floats(total.dv.size())};
          for (std::size_t n = 0; n < share.dk.size(); ++n) total.dk[n] += rounded_share(share.dk[n], group);
          for (std::size_t n = 0; n < share.dv.size(); ++n) total.dv[n] += rounded_share(share.dv[n], group);
        }
        for (std::int64_t j = 0; j < keys_of(p_, b); ++j) {
          for (std::int64_t d = 0; d < p_.headdim; ++d)
            out_.dk.at(b, j, h_k, d) = round_to(output_dtype(p_.dtype), total.dk[j * p_.headdim + d]);
          for (std::int64_t c = 0; c < p_.headdim_v; ++c)
            out_.dv.at(b, j, h_k, c) = round_to(output_dtype(p_.dtype), total.dv[j * p_.headdim_v + c]);
        }
      }
    return out_;
  }

 private:
  float rounded_share(float x, std::int64_t group) const {
    return k_.rounds_shares && group > 1 ? static_cast<float>(round_to(output_dtype(p_.dtype), x)) : x;
  }

  float exponential(float x, bool base_2) {
    const double off = noise_.next() * 1.5 * 0x1p-23;
    const double e = base_2 ? std::exp2(static_cast<double>(x)) : std::exp(static_cast<double>(x));
    const auto rounded = static_cast<float>(e * (x == 0 ? 1 : 1 + off));
    return rounded < 0x1p-126f ? 0.0f : rounded;
  }

  float rounded16(float x) const {
    if (p_.dtype == Dtype::fp32) return x;
    return static_cast<float>(round_to(output_dtype(p_.dtype), x));
  }

  float rounded_ds(float x) const {
    if (k_.fault != BackwardFault::short_ds) return rounded16(x);
    int exponent = 0;
    const float mantissa = std::frexp(x, &exponent);
    const float steps = p_.dtype == Dtype::fp16 ? 128.0f : 16.0f;
    return std::ldexp(std::round(mantissa * steps) / steps, exponent);
  }

  bool sees(std::int64_t b, std::int64_t i, std::int64_t j) const {
    if (k_.fault == BackwardFault::causal_offset) return attends(p_, b, i, j - 1);
    if (k_.fault == BackwardFault::no_tail_mask && j >= keys_of(p_, b)) return true;
    if (k_.fault == BackwardFault::dropped_key) {
      std::int64_t first = -1, last = -1;
      for (std::int64_t key = 0; key < keys_of(p_, b); ++key)
        if (attends(p_, b, i, key)) first = first < 0 ? key : first, last = key;
      if (j == (first + last) / 2) return false;
    }
    return attends(p_, b, i, j);
  }

  float score(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j, float dot, float scale, float& t) {
    float s = dot * scale;
    t = 0;
    if (p_.softcap != 0) {
      const auto c = static_cast<float>(p_.softcap);
      t = static_cast<float>(std::tanh(static_cast<double>(s * (1.0f / c))) * (1 + noise_.next() * 0x1p-11));
      s = t * c;
    }
    if (p_.alibi)
      s -= static_cast<float>(in_.alibi_slopes.at(b, h, 0, 0)) *
           static_cast<float>(std::abs(i + diagonal_offset(p_, b) - j));
    if (p_.bias != Bias::none && j < keys_of(p_, b)) s += static_cast<float>(in_.bias.at(bias_b(b), bias_h(h), i, j));
    return s;
  }

  std::int64_t bias_b(std::int64_t b) const { return in_.bias.extents[0] == 1 ? 0 : b; }
  std::int64_t bias_h(std::int64_t h) const { return in_.bias.extents[1] == 1 ? 0 : h; }

  Share head(std::int64_t b, std::int64_t h, std::int64_t h_k) {
    const std::int64_t sq = queries_of(p_, b), sk = keys_of(p_, b), d = p_.headdim, dv = p_.headdim_v;
    const float fq = factor(in_.q_descale, b, h_k), fk = factor(in_.k_descale, b, h_k),
                fv = factor(in_.v_descale, b, h_k);
    const auto softmax_scale = static_cast<float>(effective_softmax_scale(p_));
    const float scale = softmax_scale * fq * fk;
    const auto k_at = [&](std::int64_t j, std::int64_t c) {
      return j < sk ? static_cast<float>(in_.k.at(b, j, h_k, c)) : 0.0f;
    };
    const auto v_at = [&](std::int64_t j, std::int64_t c) {
      return j < sk ? static_cast<float>(in_.v.at(b, j, h_k, c)) : 0.0f;
    };
    const auto q_at = [&](std::int64_t i, std::int64_t c) { return static_cast<float>(in_.q.at(b, i, h, c)); };
    const auto do_at = [&](std::int64_t i, std::int64_t c) { return static_cast<float>(in_.dout.at(b, i, h, c)); };

    Floats D(static_cast<std::size_t>(sq)), lse(D.size());
    for (std::int64_t i = 0; i < sq; ++i) {
      const std::int64_t columns = k_.fault == BackwardFault::D_without_a_column ? dv - 1 : dv;
      D[i] = accumulate(
          Accumulator::rounded, 0.0f, columns, [&](std::int64_t c) { return do_at(i, c); },
          [&](std::int64_t c) { return static_cast<float>(handed_.o.at(b, i, h, c)); });
      if (k_.fault == BackwardFault::no_D) D[i] = 0;
      const std::int64_t row = k_.fault == BackwardFault::lse_of_next_row ? std::min(i + 1, sq - 1) : i;
      lse[i] = static_cast<float>(handed_.lse.at(b, h, row, 0));
      if (k_.fault == BackwardFault::lse_in_base_2) lse[i] *= 0.6931471805599453f;
      if (p_.sink && key_visible(b, i) && !(k_.fault == BackwardFault::first_batch_sink && b > 0)) {
        const float weight = exponential(static_cast<float>(in_.sink.at(0, h, 0, 0)) - lse[i], false);
        double& dsink = out_.dsink.at(0, h, 0, 0);
        dsink = static_cast<float>(dsink) - weight * D[i];
      }
    }

    Share share{Floats(static_cast<std::size_t>(sk * d)), Floats(static_cast<std::size_t>(sk * dv))};
    Floats dq(static_cast<std::size_t>(sq * d));
    const std::int64_t tiles = (sk + k_.tile_n - 1) / k_.tile_n;
    const auto tile_size = static_cast<std::size_t>(k_.tile_m * k_.tile_n);
    Floats P(tile_size), dX(tile_size);
    for (std::int64_t step = 0; step < tiles; ++step) {
      const std::int64_t first_key = (k_.last_tile_first ? tiles - 1 - step : step) * k_.tile_n;
      const std::int64_t keys = std::min<std::int64_t>(k_.tile_n, sk - first_key);
      for (std::int64_t first_row = 0; first_row < sq; first_row += k_.tile_m) {
        const std::int64_t rows = std::min<std::int64_t>(k_.tile_m, sq - first_row);
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t n = 0; n < k_.tile_n; ++n) {
            const std::int64_t i = first_row + r, j = first_key + n, at = r * k_.tile_n + n;
            P[at] = dX[at] = 0;
            if (!sees(b, i, j)) continue;
            const float dot = accumulate(
                k_.accumulator, 0.0f, d, [&](std::int64_t c) { return q_at(i, c); },
                [&](std::int64_t c) { return k_at(j, c); });
            float t = 0;
            float weight = 0;
            if (p_.softcap == 0 && !p_.alibi && p_.bias == Bias::none && k_.exp2_of_fma) {
              weight = exponential(std::fma(dot, scale * log2_e, -(lse[i] * log2_e)), true);
            } else {
              const float s = score(b, h, i, j, dot, scale, t);
              weight = k_.exp2_of_fma ? exponential(std::fma(s, log2_e, -(lse[i] * log2_e)), true)
                                      : exponential(s - lse[i], false);
            }
            const float dP = fv * accumulate(
                                      k_.accumulator, 0.0f, dv, [&](std::int64_t c) { return do_at(i, c); },
                                      [&](std::int64_t c) { return v_at(j, c); });
            float ds = weight * (dP - D[i]);
            if (p_.bias != Bias::none && j < sk && !(k_.fault == BackwardFault::bias_of_first_head && h > 0)) {
              double& dbias = out_.dbias.at(bias_b(b), bias_h(h), i, j);
              dbias = static_cast<float>(dbias) + ds;
            }
            if (p_.softcap != 0 && k_.fault != BackwardFault::no_cap_derivative) ds *= 1.0f - t * t;
            P[at] = rounded16(weight);
            dX[at] = rounded_ds(ds);
          }
        for (std::int64_t n = 0; n < keys; ++n) {
          for (std::int64_t c = 0; c < dv; ++c) {
            float& to = share.dv[(first_key + n) * dv + c];
            to = accumulate(
                k_.accumulator, to, rows, [&](std::int64_t r) { return P[r * k_.tile_n + n]; },
                [&](std::int64_t r) { return do_at(first_row + r, c); });
          }
          for (std::int64_t c = 0; c < d; ++c) {
            float& to = share.dk[(first_key + n) * d + c];
            to = accumulate(
                k_.accumulator, to, rows, [&](std::int64_t r) { return dX[r * k_.tile_n + n]; },
                [&](std::int64_t r) { return q_at(first_row + r, c); });
          }
        }
        if (k_.fault == BackwardFault::last_tile_lost && first_key + k_.tile_n >= sk) continue;
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t c = 0; c < d; ++c)
            dq[(first_row + r) * d + c] += accumulate(
                k_.accumulator, 0.0f, k_.tile_n, [&](std::int64_t n) { return dX[r * k_.tile_n + n]; },
                [&](std::int64_t n) { return k_at(first_key + n, c); });
      }
    }
    const float post = k_.fault == BackwardFault::no_scale ? 1.0f : softmax_scale;
    const float k_factor = k_.fault == BackwardFault::descale_dropped ? 1.0f : fk;
    for (std::int64_t i = 0; i < sq; ++i)
      for (std::int64_t c = 0; c < d; ++c)
        out_.dq.at(b, i, h, c) = round_to(output_dtype(p_.dtype), dq[i * d + c] * (post * k_factor));
    for (float& x : share.dk) x *= post * fq;
    return share;
  }

  bool key_visible(std::int64_t b, std::int64_t i) const {
    for (std::int64_t j = 0; j < keys_of(p_, b); ++j)
      if (attends(p_, b, i, j)) return true;
    return false;
  }

  const EmulatedBackward& k_;
  const Problem& p_;
  const Inputs& in_;
  const Forward& handed_;
  Noise noise_;
  Gradients out_;
};

}  // namespace

Numerics EmulatedBackward::numerics() const {
  Numerics n = flash_numerics(dtype, std::min(tile_m, tile_n));
  if (rounds_shares) n.u_share = n.u_out, n.floor_share = n.floor_out;
  return n;
}

Gradients EmulatedBackward::run(const Problem& problem, const Inputs& inputs, const Forward& handed) const {
  return Run(*this, problem, inputs, handed).run();
}

}  // namespace attest
