#include "emulated_kernel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "attest/reference/attends.h"
#include "attest/reference/rounding.h"
#include "emulated_arithmetic.h"

namespace attest {
namespace {

// One row of one head, and the keys that one split of it has.
class Row {
 public:
  struct Result {
    std::vector<float> o;  // normalised
    float lse = -infinity;
  };

  Row(const EmulatedKernel& kernel, const Problem& p, const Inputs& in, std::int64_t b, std::int64_t h, std::int64_t i)
      : kernel_(kernel), p_(p), in_(in), b_(b), h_(h), h_k_(h / (p.nheads / p.nheads_k)), i_(i) {
    state_ = kernel.noise ^ scramble(static_cast<std::uint64_t>((b * p.nheads + h) * p.seqlen_q + i));
    for (std::int64_t j = 0; j < p.seqlen_k; ++j)
      if (attends(p, b, i, j)) {
        if (first_key_ < 0) first_key_ = j;
        last_key_ = j;
      }
    scale_ = static_cast<float>(effective_softmax_scale(p)) * (is(Fault::scale) ? 1.01f : 1.0f);
    if (is_fp8(p.dtype)) {
      const auto k_descale = static_cast<float>(in.k_descale.at(b, h_k_, 0, 0));
      scale_ *= static_cast<float>(in.q_descale.at(b, h_k_, 0, 0));
      scale_ *= k_descale;
      if (is(Fault::k_descale_twice)) scale_ *= k_descale;
      if (!is(Fault::no_v_descale)) v_scale_ = static_cast<float>(in.v_descale.at(b, h_k_, 0, 0));
    }
    if (!is(Fault::no_softcap)) cap_ = static_cast<float>(p.softcap);
    added_ = p.alibi || p.bias != Bias::none;
    unit_ = added_ ? 1 : cap_ > 0 ? cap_ : scale_;
  }

  // Tiles first to last - 1.
  Result split(std::int64_t first_tile, std::int64_t last_tile, bool with_sink);

  float exp2_of(float x) {
    // Two units in the last place of the result, rounded result included.
    const double off = (noise() - 0.5) * 2 * 1.5 * 0x1p-23;
    const auto e = static_cast<float>(std::exp2(static_cast<double>(x)) * (x == 0 ? 1 : 1 + off));
    return e < 0x1p-126f ? 0.0f : e;
  }

 private:
  static constexpr float infinity = std::numeric_limits<float>::infinity();
  bool is(Fault fault) const { return kernel_.fault == fault; }
  double noise() { return static_cast<double>(next_splitmix64(state_) >> 11) * 0x1p-53; }
  bool sees(std::int64_t j) const {
    return attends(p_, b_, i_, j) && !(is(Fault::dropped_key) && j == (first_key_ + last_key_) / 2);
  }
  float v_at(std::int64_t j, std::int64_t d) const {
    if (is(Fault::swapped_v) && (j == first_key_ || j == last_key_)) j = first_key_ + last_key_ - j;
    return static_cast<float>(in_.v.at(b_, j, h_k_, d));
  }
  float bias(std::int64_t j) const {
    if (p_.bias == Bias::none || is(Fault::no_bias)) return 0;
    const bool batch = p_.bias == Bias::bhqk || p_.bias == Bias::bqk,
               head = p_.bias == Bias::bhqk || p_.bias == Bias::hqk;
    return static_cast<float>(in_.bias.at(batch ? b_ : 0, head ? h_ : 0, i_, j));
  }
  float capped(float argument) {  // tanh, off by as much as tanh.approx may be
    const double t = std::tanh(static_cast<double>(argument)) * (1 + (noise() - 0.5) * 2 * kernel_.tanh_error);
    return static_cast<float>(std::clamp(t, -1.0, 1.0));
  }
  // In units of unit_.
  float score(std::int64_t j) {
    float s = accumulate(
        kernel_.accumulator, 0.0f, p_.headdim,
        [&](std::int64_t d) { return static_cast<float>(in_.q.at(b_, i_, h_, d)); },
        [&](std::int64_t d) { return static_cast<float>(in_.k.at(b_, j, h_k_, d)); });
    if (is(Fault::s_in_fp16)) s = static_cast<float>(round_to(Dtype::fp16, s));
    if (is(Fault::bias_before_scale)) s += bias(j);
    if (cap_ > 0) {
      const float over = scale_ / cap_;
      s = capped(is(Fault::bias_inside_cap) ? s * over + bias(j) / cap_ : s * over);
    }
    if (!added_) return s;
    volatile float x = s * (cap_ > 0 ? cap_ : scale_);  // volatile: the compiler would fuse it
    if (p_.alibi && !is(Fault::no_alibi)) {
      std::int64_t distance = std::abs(i_ + diagonal_offset(p_, b_) - j);
      if (is(Fault::alibi_off_by_one)) distance += j % 2;
      volatile float slope = static_cast<float>(in_.alibi_slopes.at(b_, h_, 0, 0)) * static_cast<float>(distance);
      x = x - slope;
    }
    if (!is(Fault::bias_before_scale) && !is(Fault::bias_inside_cap)) x = x + bias(j);
    return x;
  }

  const EmulatedKernel& kernel_;
  const Problem& p_;
  const Inputs& in_;
  std::int64_t b_, h_, h_k_, i_, first_key_ = -1, last_key_ = -1;
  std::uint64_t state_;
  float scale_ = 1, v_scale_ = 1, cap_ = 0, unit_ = 1;
  bool added_ = false;  // ALiBi or a bias: scores are then in their own units
};

Row::Result Row::split(std::int64_t first_tile, std::int64_t last_tile, bool with_sink) {
  const bool whole = kernel_.normalises_first;
  const std::int64_t tile = whole ? (last_tile - first_tile) * kernel_.tile : kernel_.tile;
  const std::int64_t steps = whole ? std::min<std::int64_t>(1, last_tile - first_tile) : last_tile - first_tile;
  const float c = unit_ * 1.4426950408889634f;
  std::vector<float> s(static_cast<std::size_t>(tile)), weights(s.size()),
      l(static_cast<std::size_t>(kernel_.denominator_sums));
  Result result{std::vector<float>(static_cast<std::size_t>(p_.headdim_v))};
  std::vector<float>& o = result.o;
  float max = 0;
  bool any = false;
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::int64_t begin = first_tile * kernel_.tile;
    const std::int64_t first = begin + (kernel_.last_tile_first ? steps - 1 - step : step) * tile;
    const std::int64_t count = std::min(tile, p_.seqlen_k - first);
    float new_max = max;
    bool any_now = any;
    for (std::int64_t n = 0; n < count; ++n) {
      const bool leaks = is(Fault::cap_after_mask) && cap_ > 0 && first + n < keys_of(p_, b_);
      s[n] = sees(first + n) ? score(first + n) : leaks ? (added_ ? -cap_ : -1.0f) : std::copysign(infinity, -c);
      if (s[n] * c == -infinity || (!sees(first + n) && !leaks)) continue;
      if (!any_now || std::isnan(new_max) || s[n] * c > new_max * c) new_max = s[n];
      any_now = true;
    }
    if (!any_now) {  // no key so far, but a V that is seen at a weight of 0 must not be passed over
      for (std::int64_t n = 0; n < count; ++n)
        for (std::int64_t d = 0; d < p_.headdim_v; ++d)
          if (sees(first + n)) o[d] += 0 * v_at(first + n, d);
      continue;
    }
    if (!any || ((!kernel_.lazy_rescale || (new_max - max) * c > 8) && max != new_max)) {
      const float rescale = any ? exp2_of((max - new_max) * c) : 0;
      for (float& x : l) x *= rescale;
      for (float& x : o) x *= rescale;
      max = new_max;
      any = true;
    }
    const float shift = max * c;
    for (std::int64_t n = 0; n < count; ++n) {
      const bool counts = sees(first + n) || (is(Fault::cap_after_mask) && cap_ > 0 && first + n < keys_of(p_, b_));
      // Scores near the lowest number would overflow on their way to base 2: the difference is taken first.
      const float exponent = std::abs(s[n]) > 1e30f ? (s[n] - max) * c : std::fma(s[n], c, -shift);
      weights[n] = counts ? exp2_of(exponent) : 0.0f;
      l[(first + n) / 2 % kernel_.denominator_sums] += weights[n];
    }
    float divisor = 0;
    for (const float x : l) divisor += x;
    for (std::int64_t n = 0; n < count; ++n) {
      if (whole) weights[n] /= divisor;
      if (kernel_.dtype != Dtype::fp32) weights[n] = static_cast<float>(round_to(kernel_.dtype, weights[n]));
      if (is(Fault::short_p)) {
        const auto bits = std::bit_cast<std::uint32_t>(weights[n]);
        const std::uint32_t last = kernel_.dtype == Dtype::fp16 ? 1u << 13 : 1u << 16;
        if (bits & last) weights[n] = std::bit_cast<float>(bits & (last << 1) ? bits + last : bits - last);
      }
    }
    for (std::int64_t d = 0; d < p_.headdim_v; ++d)
      for (std::int64_t at = 0; at < count; at += kernel_.tile) {
        o[d] = accumulate(
            kernel_.accumulator, o[d], std::min<std::int64_t>(kernel_.tile, count - at),
            [&](std::int64_t n) { return weights[at + n]; },
            // A masked key's V may be NaN: kernels zero-fill or never read it.
            [&](std::int64_t n) {
              const std::int64_t j = first + at + n;
              return weights[at + n] == 0 && !sees(j) ? 0.0f : v_at(j, d);
            });
        if (is(Fault::o_in_fp16)) o[d] = static_cast<float>(round_to(Dtype::fp16, o[d]));
      }
  }
  float sum = 0;
  for (const float x : l) sum += x;
  volatile float scaled_max = kernel_.lse_through_base_2 ? max * c : max * unit_;
  if (kernel_.lse_through_base_2) scaled_max = scaled_max * 0.6931471805599453f;
  if (with_sink) {
    float sink = static_cast<float>(in_.sink.at(0, h_, 0, 0));
    if (is(Fault::sink_is_scaled)) sink *= scale_;
    if (!any || sink > scaled_max) {
      const float rescale = any ? exp2_of((scaled_max - sink) * 1.4426950408889634f) : 0.0f;
      sum = sum * rescale + 1;
      for (float& x : o) x *= rescale;
      scaled_max = sink;
    } else {
      sum += exp2_of((sink - scaled_max) * 1.4426950408889634f);
    }
  } else if (!any) {
    return result;
  }
  const float inverse = kernel_.normalises_first ? 1.0f : 1.0f / sum;
  for (float& x : o) x = x * inverse * v_scale_;
  result.lse = scaled_max + std::log(sum);
  return result;
}

}  // namespace

Numerics EmulatedKernel::numerics() const {
  Numerics n = flash_numerics(dtype, tile);
  if (lazy_rescale) n.max_P = 256;
  if (lse_through_base_2) n.lse_max_roundings = 5;
  n.chain = denominator_sums;
  n.num_splits = num_splits;
  n.normalises_first = normalises_first;
  n.eps_tanh = tanh_error;
  return n;
}

Outputs EmulatedKernel::run(const Problem& p, const Inputs& in) const {
  Outputs out{Tensor({p.batch, p.seqlen_q, p.nheads, p.headdim_v}), Tensor({p.batch, p.nheads, p.seqlen_q, 1})};
  const std::int64_t num_tiles = (p.seqlen_k + tile - 1) / tile;
  const bool sink = p.sink && fault != Fault::no_sink;
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.nheads; ++h)
      for (std::int64_t i = 0; i < queries_of(p, b); ++i) {
        Row row(*this, p, in, b, h, i);
        Row::Result result;
        if (num_splits == 1) {
          result = row.split(0, num_tiles, sink);
        } else {
          std::vector<Row::Result> parts;
          for (int s = 0; s < num_splits; ++s)
            parts.push_back(row.split(num_tiles * s / num_splits, num_tiles * (s + 1) / num_splits, sink && s == 0));
          float max = parts[0].lse, sum = 0;
          for (const auto& part : parts) max = std::isnan(part.lse) || part.lse > max ? part.lse : max;
          result.o.resize(static_cast<std::size_t>(p.headdim_v));
          if (max != -std::numeric_limits<float>::infinity()) {
            for (const auto& part : parts) sum += row.exp2_of((part.lse - max) * 1.4426950408889634f);
            result.lse = max + std::log(sum);
          }
          for (const auto& part : parts) {
            const float weight = part.lse == -std::numeric_limits<float>::infinity()
                                     ? 0
                                     : row.exp2_of((part.lse - result.lse) * 1.4426950408889634f);
            for (std::size_t d = 0; d < part.o.size(); ++d) result.o[d] += weight * part.o[d];
          }
        }
        for (std::int64_t d = 0; d < p.headdim_v; ++d)
          out.o.at(b, i, h, d) = round_to(output_dtype(p.dtype), result.o[static_cast<std::size_t>(d)]);
        out.lse->at(b, h, i, 0) = fault == Fault::lse_base_2 ? result.lse * 1.4426950408889634f : result.lse;
      }
  return out;
}

}  // namespace attest
