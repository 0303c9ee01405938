// What a naive kernel may be made to do wrong.
#pragma once
#include <string_view>

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
  prefix_ignored,            // prefix has no effect
  prefix_one_short,          // keys 0 to prefix - 2
  prefix_crosses_documents,  // a prefix is seen from other documents too
  documents_ignored,
  document_end_inclusive,  // the first key of the next document is seen
  empty_documents_merge,   // documents are counted anew after an empty one
  softcap_ignored,
  softcap_after_bias,     // cap over everything that is added
  softcap_before_scale,   // c tanh(q.k / c) scale
  alibi_ignores_off,      // -slope |i - j|
  alibi_one_sided,        // -slope (i + off - j), positive beyond the diagonal
  alibi_of_first_member,  // slopes[0, h]
  sink_ignored,
  sink_in_every_tile,  // exp(sink) once for each 64 keys
  sink_not_in_lse,
  bias_before_scale,            // scale (q.k + bias)
  bias_of_first_member,         // batch stride of the bias ignored
  bias_transposed_heads,        // head stride of the bias ignored
  varlen_starts_shifted,        // batch entry b begins where b - 1 does
  varlen_off_of_longest,        // off from seqlen_k - seqlen_q
  varlen_packed_lse_as_padded,  // LSE of entry b at row b seqlen_q, clipped to its end
  seqused_ignored,
  pages_in_order,           // the table ignored: page n of entry b at b pages_per_sequence + n
  last_page_partly_read,    // the last page only if it is full
  split_forgets_last,       // the last split never joins
  empty_split_not_guarded,  // exp(-inf - -inf)
  split_lse_of_first,
  v_descale_dropped,
  k_descale_twice,
  descale_of_first_head,
  stale_scale,  // the scale of the call before
  alternates,   // every third call multiplies O by 1 + 2^-6
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
    {Fault::prefix_ignored, "prefix_ignored"},
    {Fault::prefix_one_short, "prefix_one_short"},
    {Fault::prefix_crosses_documents, "prefix_crosses_documents"},
    {Fault::documents_ignored, "documents_ignored"},
    {Fault::document_end_inclusive, "document_end_inclusive"},
    {Fault::empty_documents_merge, "empty_documents_merge"},
    {Fault::softcap_ignored, "softcap_ignored"},
    {Fault::softcap_after_bias, "softcap_after_bias"},
    {Fault::softcap_before_scale, "softcap_before_scale"},
    {Fault::alibi_ignores_off, "alibi_ignores_off"},
    {Fault::alibi_one_sided, "alibi_one_sided"},
    {Fault::alibi_of_first_member, "alibi_of_first_member"},
    {Fault::sink_ignored, "sink_ignored"},
    {Fault::sink_in_every_tile, "sink_in_every_tile"},
    {Fault::sink_not_in_lse, "sink_not_in_lse"},
    {Fault::bias_before_scale, "bias_before_scale"},
    {Fault::bias_of_first_member, "bias_of_first_member"},
    {Fault::bias_transposed_heads, "bias_transposed_heads"},
    {Fault::varlen_starts_shifted, "varlen_starts_shifted"},
    {Fault::varlen_off_of_longest, "varlen_off_of_longest"},
    {Fault::varlen_packed_lse_as_padded, "varlen_packed_lse_as_padded"},
    {Fault::seqused_ignored, "seqused_ignored"},
    {Fault::pages_in_order, "pages_in_order"},
    {Fault::last_page_partly_read, "last_page_partly_read"},
    {Fault::split_forgets_last, "split_forgets_last"},
    {Fault::empty_split_not_guarded, "empty_split_not_guarded"},
    {Fault::split_lse_of_first, "split_lse_of_first"},
    {Fault::v_descale_dropped, "v_descale_dropped"},
    {Fault::k_descale_twice, "k_descale_twice"},
    {Fault::descale_of_first_head, "descale_of_first_head"},
    {Fault::stale_scale, "stale_scale"},
    {Fault::alternates, "alternates"},
};

}  // namespace attest
