// A right kernel in the fewest lines, fp32 loops without tiles, and the same with one fault planted. The suite must
// accuse the first of nothing and each of the others of something.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "attest/gpu/kernel.h"
#include "attest/reference/rounding.h"

namespace attest {

enum class Fault {
  none,
  causal_one_more,     // j <= i + off + 1
  causal_ignores_off,  // bottom-right treated as top-left
  window_left_short,   // < for <= at the window's left edge
  window_right_short,
  drops_last_key,
  drops_one_key_of_many,  // key 70, where there is one
  reads_past_tail,        // key seqlen_k is seen too
  head_modulo,            // h % nheads_k
  scale_of_value_dim,     // 1/sqrt(headdim_v)
  scale_one_percent,
  scale_absolute,  // |softmax_scale|
  no_max,          // exp without the maximum subtracted
  sentinel,        // -100 for -inf as the first maximum
  lse_base_2,
  lse_without_max,
  empty_row_lse_zero,
  empty_row_unwritten,
  last_row_unwritten,
  last_lse_unwritten,
  one_row_too_many,          // O's row seqlen_q
  writes_row_gap,            // O's columns past headdim_v
  flushes_neighbour,         // adds 0.0 before O, subnormals flushed
  clears_k_tail,             // an input written past its end
  scales_q_in_place,         // an input's element changed
  value_columns_of_headdim,  // only the first headdim columns of V
  hard_coded_strides,        // bshd without gaps
  batch_stride_of_one,       // every member reads the first member's K
  swapped_batch_v,           // V of the other batch entry
  p_in_bf16,                 // P in eight bits whatever the dtype
  p_truncated,               // P cut to the dtype, not rounded
  throws,
  hazard,
};

struct FaultName {
  Fault fault;
  std::string_view name;
};

inline constexpr FaultName all_faults[] = {
    {Fault::causal_one_more, "causal_one_more"},
    {Fault::causal_ignores_off, "causal_ignores_off"},
    {Fault::window_left_short, "window_left_short"},
    {Fault::window_right_short, "window_right_short"},
    {Fault::drops_last_key, "drops_last_key"},
    {Fault::drops_one_key_of_many, "drops_one_key_of_many"},
    {Fault::reads_past_tail, "reads_past_tail"},
    {Fault::head_modulo, "head_modulo"},
    {Fault::scale_of_value_dim, "scale_of_value_dim"},
    {Fault::scale_one_percent, "scale_one_percent"},
    {Fault::scale_absolute, "scale_absolute"},
    {Fault::no_max, "no_max"},
    {Fault::sentinel, "sentinel"},
    {Fault::lse_base_2, "lse_base_2"},
    {Fault::lse_without_max, "lse_without_max"},
    {Fault::empty_row_lse_zero, "empty_row_lse_zero"},
    {Fault::empty_row_unwritten, "empty_row_unwritten"},
    {Fault::last_row_unwritten, "last_row_unwritten"},
    {Fault::last_lse_unwritten, "last_lse_unwritten"},
    {Fault::one_row_too_many, "one_row_too_many"},
    {Fault::writes_row_gap, "writes_row_gap"},
    {Fault::flushes_neighbour, "flushes_neighbour"},
    {Fault::clears_k_tail, "clears_k_tail"},
    {Fault::scales_q_in_place, "scales_q_in_place"},
    {Fault::value_columns_of_headdim, "value_columns_of_headdim"},
    {Fault::hard_coded_strides, "hard_coded_strides"},
    {Fault::batch_stride_of_one, "batch_stride_of_one"},
    {Fault::swapped_batch_v, "swapped_batch_v"},
    {Fault::p_in_bf16, "p_in_bf16"},
    {Fault::p_truncated, "p_truncated"},
    {Fault::throws, "throws"},
    {Fault::hazard, "hazard"},
};

class NaiveKernel : public Kernel {
 public:
  explicit NaiveKernel(Fault fault = Fault::none, bool bitwise = true) : fault_(fault) {
    capability_.name = "naive";
    capability_.description = "fp32 loops";
    capability_.dtypes = {Dtype::fp16, Dtype::bf16, Dtype::fp32};
    capability_.bitwise_batch = capability_.bitwise_gqa = capability_.bitwise_layout = bitwise;
  }

  const Capability& capability() const override { return capability_; }
  std::optional<std::string> unsupported(const Case&) const override { return std::nullopt; }

  /// One tile of all keys and one serial sum; P is rounded to the dtype.
  Numerics numerics(const Case& c) const override {
    Numerics n = flash_numerics(c.problem.dtype);
    n.name = "naive";
    n.chain = 1;
    return n;
  }

  RunReport run(const Case& c, const ForwardArgs& args) override {
    if (fault_ == Fault::throws && c.problem.seqlen_k > 100) throw std::runtime_error("no room for so many keys");
    p_ = c.problem;
    a_ = args;
    if (fault_ == Fault::hard_coded_strides) {
      a_.k.head_stride = p_.headdim;
      a_.k.row_stride = p_.nheads_k * p_.headdim;
      a_.k.batch_stride = p_.seqlen_k * a_.k.row_stride;
    }
    if (fault_ == Fault::batch_stride_of_one) a_.k.batch_stride = 0;
    for (std::int64_t b = 0; b < p_.batch; ++b)
      for (std::int64_t h = 0; h < p_.nheads; ++h)
        for (std::int64_t i = 0; i < p_.seqlen_q; ++i) row(b, h, i);
    damage();
    if (fault_ == Fault::hazard && p_.seqlen_k > 64) return {{"K read before its copy arrived (1)"}};
    return {};
  }

 private:
  std::byte* at(const TensorRef& t, std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t d) const {
    return static_cast<std::byte*>(t.data) +
           (b * t.batch_stride + s * t.row_stride + h * t.head_stride + d) * bytes_of(p_.dtype);
  }
  float load(const TensorRef& t, std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t d) const {
    std::uint32_t bits = 0;
    std::memcpy(&bits, at(t, b, s, h, d), static_cast<std::size_t>(bytes_of(p_.dtype)));
    return static_cast<float>(decode(p_.dtype, bits));
  }
  void store(const TensorRef& t, std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t d, float value) const {
    const std::uint32_t bits = encode(p_.dtype, value);
    std::memcpy(at(t, b, s, h, d), &bits, static_cast<std::size_t>(bytes_of(p_.dtype)));
  }

  bool sees(std::int64_t i, std::int64_t j) const {
    std::int64_t off = p_.causal == Causal::top_left ? 0 : p_.seqlen_k - p_.seqlen_q;
    if (fault_ == Fault::causal_ignores_off) off = 0;
    if (fault_ == Fault::drops_last_key && j == p_.seqlen_k - 1) return false;
    if (fault_ == Fault::drops_one_key_of_many && j == 70) return false;
    const std::int64_t more = fault_ == Fault::causal_one_more ? 1 : 0;
    if (p_.causal != Causal::none && j > i + off + more) return false;
    if (p_.window_right >= 0 && j > i + off + p_.window_right - (fault_ == Fault::window_right_short ? 1 : 0))
      return false;
    return p_.window_left < 0 || j >= i + off - p_.window_left + (fault_ == Fault::window_left_short ? 1 : 0);
  }

  float scale() const {
    if (fault_ == Fault::scale_of_value_dim && !p_.softmax_scale)
      return 1 / std::sqrt(static_cast<float>(p_.headdim_v));
    const auto scale = static_cast<float>(effective_softmax_scale(p_));
    if (fault_ == Fault::scale_absolute) return std::abs(scale);
    return fault_ == Fault::scale_one_percent ? scale * 1.01f : scale;
  }

  float round_p(float p) const {
    if (fault_ == Fault::p_in_bf16) return static_cast<float>(round_to(Dtype::bf16, p));
    const auto rounded = static_cast<float>(round_to(p_.dtype, p));
    if (fault_ != Fault::p_truncated || rounded <= p || p_.dtype == Dtype::fp32) return rounded;
    return static_cast<float>(decode(p_.dtype, encode(p_.dtype, rounded) - 1));
  }

  void row(std::int64_t b, std::int64_t h, std::int64_t i) {
    const std::int64_t h_k = fault_ == Fault::head_modulo ? h % p_.nheads_k : h / (p_.nheads / p_.nheads_k);
    const std::int64_t b_v = fault_ == Fault::swapped_batch_v ? p_.batch - 1 - b : b;
    const std::int64_t keys = p_.seqlen_k + (fault_ == Fault::reads_past_tail ? 1 : 0);
    std::vector<std::pair<std::int64_t, float>> scores;
    const float infinity = std::numeric_limits<float>::infinity();
    float max = fault_ == Fault::sentinel ? -100 : -infinity;
    for (std::int64_t j = 0; j < keys; ++j) {
      if (!sees(i, j)) continue;
      float s = 0;
      for (std::int64_t d = 0; d < p_.headdim; ++d) s += load(a_.q, b, i, h, d) * load(a_.k, b, j, h_k, d);
      scores.emplace_back(j, s * scale());
      max = std::max(max, scores.back().second);
    }
    if (scores.empty() && fault_ == Fault::empty_row_unwritten) return;
    if (fault_ == Fault::no_max) max = 0;
    float sum = 0;
    std::vector<float> o(static_cast<std::size_t>(p_.headdim_v));
    const std::int64_t columns =
        fault_ == Fault::value_columns_of_headdim ? std::min(p_.headdim, p_.headdim_v) : p_.headdim_v;
    for (const auto& [j, s] : scores) {
      const float p = std::exp(s - max);
      sum += p;
      const float rounded = round_p(p);
      for (std::int64_t d = 0; d < columns; ++d) o[static_cast<std::size_t>(d)] += rounded * load(a_.v, b_v, j, h_k, d);
    }
    const bool last = i == p_.seqlen_q - 1;
    if (!(last && fault_ == Fault::last_row_unwritten))
      for (std::int64_t d = 0; d < p_.headdim_v; ++d)
        store(a_.o, b, i, h, d, scores.empty() ? 0 : o[static_cast<std::size_t>(d)] / sum);
    if (last && fault_ == Fault::last_lse_unwritten) return;
    float lse = scores.empty() ? -infinity : max + std::log(sum);
    if (fault_ == Fault::lse_base_2) lse *= 1.4426950408889634f;
    if (fault_ == Fault::lse_without_max && !scores.empty()) lse = std::log(sum);
    if (fault_ == Fault::empty_row_lse_zero && scores.empty()) lse = 0;
    a_.lse[(b * p_.nheads + h) * p_.seqlen_q + i] = lse;
  }

  void damage() const {
    if (p_.seqlen_q == 0 || p_.seqlen_k == 0) return;
    const std::int64_t b = p_.batch - 1;
    if (fault_ == Fault::one_row_too_many) store(a_.o, b, p_.seqlen_q, p_.nheads - 1, 0, 1);
    if (fault_ == Fault::writes_row_gap && a_.o.head_stride > p_.headdim_v && a_.o.row_stride > p_.headdim_v)
      store(a_.o, 0, 0, 0, p_.headdim_v, 0);
    if (fault_ == Fault::flushes_neighbour) store(a_.o, 0, 0, 0, -1, 0);
    if (fault_ == Fault::clears_k_tail) store(a_.k, b, p_.seqlen_k, p_.nheads_k - 1, 0, 0);
    if (fault_ == Fault::scales_q_in_place) store(a_.q, 0, 0, 0, 0, 3 + load(a_.q, 0, 0, 0, 0));
  }

  Fault fault_;
  Capability capability_;
  Problem p_;
  ForwardArgs a_;
};

}  // namespace attest
