// A right kernel in the fewest lines, fp32 loops without tiles, and the same with one fault planted. The suite must
// accuse the first of nothing and each of the others of something. It shares no mask and no address with gpu/plan.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "attest/gpu/kernel.h"
#include "attest/reference/rounding.h"
#include "naive_faults.h"

namespace attest {

class NaiveKernel : public Kernel {
 public:
  explicit NaiveKernel(Fault fault = Fault::none, bool bitwise = true) : fault_(fault) {
    capability_.name = "naive";
    capability_.description = "fp32 loops";
    capability_.dtypes.assign(std::begin(all_dtypes), std::end(all_dtypes));
    capability_.isolates_values = true;
    capability_.bitwise_batch = capability_.bitwise_gqa = capability_.bitwise_layout = bitwise;
  }

  const Capability& capability() const override { return capability_; }
  std::optional<std::string> unsupported(const Case& c) const override {
    if (c.backward) return "the naive kernel has no gradients";
    return std::nullopt;
  }

  /// One tile of all keys of a split and one serial sum; P is rounded to the dtype.
  Numerics numerics(const Case& c) const override {
    Numerics n = flash_numerics(c.problem.dtype);
    n.name = "naive";
    n.chain = 1;
    n.num_splits = static_cast<int>(c.num_splits);
    return n;
  }

  RunReport run(const Case& c, const ForwardArgs& args) override {
    if (fault_ == Fault::throws && c.problem.seqlen_k > 100) throw std::runtime_error("no room for so many keys");
    p_ = c.problem;
    a_ = args;
    splits_ = c.num_splits;
    ++calls_;
    scale_before_ = calls_ == 1 ? own_scale() : last_scale_;
    last_scale_ = own_scale();
    if (fault_ == Fault::hard_coded_strides) {
      a_.k.head_stride = p_.headdim;
      a_.k.row_stride = p_.nheads_k * p_.headdim;
      a_.k.batch_stride = p_.seqlen_k * a_.k.row_stride;
    }
    if (fault_ == Fault::batch_stride_of_one) a_.k.batch_stride = 0;
    for (std::int64_t b = 0; b < p_.batch; ++b)
      for (std::int64_t h = 0; h < p_.nheads; ++h)
        for (std::int64_t i = 0; i < queries(b); ++i) row(b, h, i);
    damage();
    if (fault_ == Fault::hazard && p_.seqlen_k > 64) return {{"K read before its copy arrived (1)"}};
    return {};
  }

 private:
  static constexpr float infinity = std::numeric_limits<float>::infinity();

  // Lengths as kernels are told them.
  std::int64_t queries(std::int64_t b) const {
    return a_.cu_seqlens_q ? a_.cu_seqlens_q[b + 1] - a_.cu_seqlens_q[b] : p_.seqlen_q;
  }
  std::int64_t keys(std::int64_t b) const {
    if (a_.seqused_k && fault_ != Fault::seqused_ignored) return a_.seqused_k[b];
    return a_.cu_seqlens_k ? a_.cu_seqlens_k[b + 1] - a_.cu_seqlens_k[b] : p_.seqlen_k;
  }
  std::int64_t offset(std::int64_t b) const {
    if (p_.causal == Causal::top_left || fault_ == Fault::causal_ignores_off) return 0;
    return fault_ == Fault::varlen_off_of_longest ? p_.seqlen_k - p_.seqlen_q : keys(b) - queries(b);
  }

  std::int64_t begin_of(const std::int32_t* sums, std::int64_t b) const {
    return sums[fault_ == Fault::varlen_starts_shifted && b > 0 ? b - 1 : b];
  }
  std::int64_t query_row(const TensorRef& t, std::int64_t b, std::int64_t i) const {
    return a_.cu_seqlens_q ? (begin_of(a_.cu_seqlens_q, b) + i) * t.row_stride : b * t.batch_stride + i * t.row_stride;
  }
  std::int64_t key_row(const TensorRef& t, std::int64_t b, std::int64_t j) const {
    if (a_.page_table) {
      const std::int64_t n = b * a_.pages_per_sequence + j / a_.page_size;
      const std::int64_t page = fault_ == Fault::pages_in_order ? n : a_.page_table[n];
      return page * t.batch_stride + j % a_.page_size * t.row_stride;
    }
    return a_.cu_seqlens_k ? (begin_of(a_.cu_seqlens_k, b) + j) * t.row_stride : b * t.batch_stride + j * t.row_stride;
  }

  static float load(const TensorRef& t, Dtype dtype, std::int64_t at) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, static_cast<std::byte*>(t.data) + at * bytes_of(dtype),
                static_cast<std::size_t>(bytes_of(dtype)));
    return static_cast<float>(decode(dtype, bits));
  }
  static void store(const TensorRef& t, Dtype dtype, std::int64_t at, float value) {
    const std::uint32_t bits = encode(dtype, value);
    std::memcpy(static_cast<std::byte*>(t.data) + at * bytes_of(dtype), &bits,
                static_cast<std::size_t>(bytes_of(dtype)));
  }

  std::int64_t document_of(std::int64_t x, bool is_key) const {
    std::int64_t end = 0, document = 0;
    for (const std::int64_t length : p_.documents) {
      if (length == 0 && fault_ == Fault::empty_documents_merge) {
        document = 0;
        continue;
      }
      end += length;
      if (x < end + (is_key && fault_ == Fault::document_end_inclusive ? 1 : 0)) return document;
      ++document;
    }
    return -1;
  }

  bool sees(std::int64_t b, std::int64_t i, std::int64_t j) const {
    const std::int64_t num_keys = keys(b), off = offset(b);
    if (fault_ == Fault::drops_last_key && j == num_keys - 1) return false;
    if (fault_ == Fault::drops_one_key_of_many && j == 70) return false;
    if (fault_ == Fault::last_page_partly_read && a_.page_table && j >= num_keys - num_keys % a_.page_size)
      return false;
    const std::int64_t prefix = fault_ == Fault::prefix_ignored     ? 0
                                : fault_ == Fault::prefix_one_short ? p_.prefix - 1
                                                                    : p_.prefix;
    if (j < prefix && fault_ == Fault::prefix_crosses_documents) return true;
    if (!p_.documents.empty() && fault_ != Fault::documents_ignored && document_of(i, false) != document_of(j, true))
      return false;
    if (j < prefix) return true;
    const std::int64_t more = fault_ == Fault::causal_one_more ? 1 : 0;
    if (p_.causal != Causal::none && j > i + off + more) return false;
    if (p_.window_right >= 0 && j > i + off + p_.window_right - (fault_ == Fault::window_right_short ? 1 : 0))
      return false;
    return p_.window_left < 0 || j >= i + off - p_.window_left + (fault_ == Fault::window_left_short ? 1 : 0);
  }

  float scale() const { return fault_ == Fault::stale_scale ? scale_before_ : own_scale(); }
  float own_scale() const {
    if (fault_ == Fault::scale_of_value_dim && !p_.softmax_scale)
      return 1 / std::sqrt(static_cast<float>(p_.headdim_v));
    const auto scale = static_cast<float>(effective_softmax_scale(p_));
    if (fault_ == Fault::scale_absolute) return std::abs(scale);
    return fault_ == Fault::scale_one_percent ? scale * 1.01f : scale;
  }

  float descale(const float* factors, std::int64_t b, std::int64_t h_k) const {
    if (!factors) return 1;
    return factors[b * p_.nheads_k + (fault_ == Fault::descale_of_first_head ? 0 : h_k)];
  }

  float round_p(float p) const {
    if (fault_ == Fault::p_in_bf16) return static_cast<float>(round_to(Dtype::bf16, p));
    const auto rounded = static_cast<float>(round_to(p_.dtype, p));
    if (fault_ != Fault::p_truncated || rounded <= p || p_.dtype == Dtype::fp32) return rounded;
    return static_cast<float>(decode(p_.dtype, encode(p_.dtype, rounded) - 1));
  }

  float score(std::int64_t b, std::int64_t h, std::int64_t h_k, std::int64_t i, std::int64_t j) const {
    float dot = 0;
    const std::int64_t q = query_row(a_.q, b, i) + h * a_.q.head_stride,
                       k = key_row(a_.k, b, j) + h_k * a_.k.head_stride;
    for (std::int64_t d = 0; d < p_.headdim; ++d) dot += load(a_.q, p_.dtype, q + d) * load(a_.k, p_.dtype, k + d);
    float factor = scale() * descale(a_.q_descale, b, h_k) * descale(a_.k_descale, b, h_k);
    if (fault_ == Fault::k_descale_twice) factor *= descale(a_.k_descale, b, h_k);
    const float bias = a_.bias ? a_.bias[(fault_ == Fault::bias_of_first_member ? 0 : b * a_.bias_batch_stride) +
                                         (fault_ == Fault::bias_transposed_heads ? 0 : h * a_.bias_head_stride) +
                                         i * a_.bias_row_stride + j]
                               : 0;
    const auto cap = static_cast<float>(p_.softcap);
    const bool capped = cap > 0 && fault_ != Fault::softcap_ignored;
    if (fault_ == Fault::bias_before_scale) dot += bias;
    float s = dot * factor;
    if (fault_ == Fault::softcap_after_bias) s += bias;
    if (capped)
      s = fault_ == Fault::softcap_before_scale ? cap * std::tanh(dot / cap) * factor : cap * std::tanh(s / cap);
    if (a_.alibi_slopes) {
      const float slope = a_.alibi_slopes[(fault_ == Fault::alibi_of_first_member ? 0 : b * p_.nheads) + h];
      const auto distance = static_cast<float>(i + (fault_ == Fault::alibi_ignores_off ? 0 : offset(b)) - j);
      s -= slope * (fault_ == Fault::alibi_one_sided ? distance : std::abs(distance));
    }
    return fault_ == Fault::bias_before_scale || fault_ == Fault::softcap_after_bias ? s : s + bias;
  }

  struct Partial {
    float max = -infinity, sum = 0;
    std::vector<float> o;
    bool any = false;
  };

  // Keys [begin, end) of a row.
  Partial attend(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t begin, std::int64_t end) const {
    const std::int64_t h_k = fault_ == Fault::head_modulo ? h % p_.nheads_k : h / (p_.nheads / p_.nheads_k);
    const std::int64_t b_v = fault_ == Fault::swapped_batch_v ? p_.batch - 1 - b : b;
    Partial partial;
    partial.o.resize(static_cast<std::size_t>(p_.headdim_v));
    partial.max = fault_ == Fault::sentinel ? -100 : -infinity;
    std::vector<std::pair<std::int64_t, float>> scores;
    for (std::int64_t j = begin; j < end; ++j) {
      if (!sees(b, i, j)) continue;
      scores.emplace_back(j, score(b, h, h_k, i, j));
      if (!(scores.back().second <= partial.max)) partial.max = scores.back().second;
      partial.any = true;
    }
    if (fault_ == Fault::no_max) partial.max = 0;
    const float base = partial.max == -infinity ? 0 : partial.max;
    const std::int64_t columns =
        fault_ == Fault::value_columns_of_headdim ? std::min(p_.headdim, p_.headdim_v) : p_.headdim_v;
    for (const auto& [j, s] : scores) {
      const float p = std::exp(s - base), rounded = round_p(p);
      partial.sum += p;
      const std::int64_t v = key_row(a_.v, b_v, j) + h_k * a_.v.head_stride;
      for (std::int64_t d = 0; d < columns; ++d)
        partial.o[static_cast<std::size_t>(d)] += rounded * load(a_.v, p_.dtype, v + d);
    }
    return partial;
  }

  // Splits begin at multiples of 16 keys, as tiles do; what has no key adds nothing.
  Partial attend_in_splits(std::int64_t b, std::int64_t h, std::int64_t i, float& first_lse) const {
    const std::int64_t num_keys = keys(b) + (fault_ == Fault::reads_past_tail ? 1 : 0);
    const std::int64_t share = ((num_keys + 15) / 16 + splits_ - 1) / splits_ * 16;
    std::vector<Partial> partials;
    for (std::int64_t n = 0; n < splits_; ++n) {
      if (n > 0 && n == splits_ - 1 && fault_ == Fault::split_forgets_last) break;
      partials.push_back(attend(b, h, i, std::min(num_keys, n * share), std::min(num_keys, (n + 1) * share)));
    }
    first_lse = partials.front().max + std::log(partials.front().sum);
    if (partials.size() == 1) return partials.front();
    Partial all;
    all.o.resize(static_cast<std::size_t>(p_.headdim_v));
    for (const Partial& one : partials) {
      all.any |= one.any;
      if (!(one.max <= all.max)) all.max = one.max;
    }
    for (const Partial& one : partials) {
      if (one.max == -infinity && fault_ != Fault::empty_split_not_guarded) continue;
      const float weight = std::exp(one.max - all.max);
      all.sum += weight * one.sum;
      for (std::size_t d = 0; d < all.o.size(); ++d) all.o[d] += weight * one.o[d];
    }
    return all;
  }

  void row(std::int64_t b, std::int64_t h, std::int64_t i) {
    float first_lse = 0;
    Partial row = attend_in_splits(b, h, i, first_lse);
    if (!row.any && fault_ == Fault::empty_row_unwritten) return;
    const bool last = i == queries(b) - 1;
    const bool has_sink = a_.sink && fault_ != Fault::sink_ignored;
    float sum = row.sum, max = row.max;
    if (has_sink) {
      const float sink = a_.sink[h];
      const float larger = std::max(max, sink), rescale = max == -infinity ? 0 : std::exp(max - larger);
      const auto times = static_cast<float>(fault_ == Fault::sink_in_every_tile ? (p_.seqlen_k + 63) / 64 : 1);
      for (float& o : row.o) o *= rescale;
      sum = sum * rescale + times * std::exp(sink - larger);
      max = std::isnan(max) ? max : larger;
    }
    const bool nothing = sum == 0;
    const std::int64_t h_k = h / (p_.nheads / p_.nheads_k);
    float factor = fault_ == Fault::v_descale_dropped ? 1 : descale(a_.v_descale, b, h_k);
    if (fault_ == Fault::alternates && calls_ % 3 == 0) factor *= 1.015625f;
    if (!(last && fault_ == Fault::last_row_unwritten))
      for (std::int64_t d = 0; d < p_.headdim_v; ++d)
        store(a_.o, output_dtype(p_.dtype), query_row(a_.o, b, i) + h * a_.o.head_stride + d,
              row.o[static_cast<std::size_t>(d)] / (nothing ? 1 : sum) * factor);
    if (last && fault_ == Fault::last_lse_unwritten) return;
    float lse = nothing ? -infinity : max + std::log(sum);
    if (fault_ == Fault::sink_not_in_lse && has_sink && row.sum > 0) lse = row.max + std::log(row.sum);
    if (fault_ == Fault::split_lse_of_first && splits_ > 1) lse = first_lse;
    if (fault_ == Fault::lse_base_2) lse *= 1.4426950408889634f;
    if (fault_ == Fault::lse_without_max && !nothing) lse = std::log(sum);
    if (fault_ == Fault::empty_row_lse_zero && nothing) lse = 0;
    std::int64_t at = (b * p_.nheads + h) * p_.seqlen_q + i;
    if (a_.cu_seqlens_q) {
      const std::int64_t total = a_.cu_seqlens_q[p_.batch];
      at = h * total + a_.cu_seqlens_q[b] + i;
      if (fault_ == Fault::varlen_packed_lse_as_padded) at = h * total + std::min(total - 1, b * p_.seqlen_q + i);
    }
    a_.lse[at] = lse;
  }

  void damage() const {
    if (p_.seqlen_q == 0 || p_.seqlen_k == 0) return;
    const std::int64_t b = p_.batch - 1;
    const Dtype out = output_dtype(p_.dtype);
    if (fault_ == Fault::one_row_too_many)
      store(a_.o, out, query_row(a_.o, b, queries(b)) + (p_.nheads - 1) * a_.o.head_stride, 1);
    if (fault_ == Fault::writes_row_gap && a_.o.head_stride > p_.headdim_v && a_.o.row_stride > p_.headdim_v)
      store(a_.o, out, p_.headdim_v, 0);
    if (fault_ == Fault::flushes_neighbour) store(a_.o, out, -1, 0);
    if (fault_ == Fault::clears_k_tail && !a_.page_table)
      store(a_.k, p_.dtype, key_row(a_.k, b, keys(b)) + (p_.nheads_k - 1) * a_.k.head_stride, 0);
    if (fault_ == Fault::scales_q_in_place) store(a_.q, p_.dtype, 0, 3 + load(a_.q, p_.dtype, 0));
  }

  Fault fault_;
  Capability capability_;
  Problem p_;
  ForwardArgs a_;
  std::int64_t splits_ = 1, calls_ = 0;
  float scale_before_ = 0, last_scale_ = 0;
};

}  // namespace attest
