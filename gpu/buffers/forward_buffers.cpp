#include "attest/gpu/forward_buffers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "attest/gpu/case_lists.h"
#include "run_kernel.h"

namespace attest {
namespace {

// NaN where none of the batch entries that share a score has both its query and its key.
Tensor inside_the_domain(const Case& c, const Tensor& bias) {
  const Placement queries = place_queries(c, 1), keys = place_keys(c, 1);
  Tensor poisoned(bias.extents, std::numeric_limits<double>::quiet_NaN());
  for (std::int64_t b = 0; b < c.problem.batch; ++b) {
    const std::int64_t mine = bias.extents[0] == 1 ? 0 : b;
    for (std::int64_t h = 0; h < bias.extents[1]; ++h)
      for (std::int64_t i = 0; i < queries.rows(b); ++i)
        std::copy_n(bias.values.data() + bias.index(mine, h, i, 0), keys.rows(b),
                    poisoned.values.data() + poisoned.index(mine, h, i, 0));
  }
  return poisoned;
}

}  // namespace

ForwardArgs ForwardBuffers::lay_out(const Case& c, const Inputs& inputs) {
  const Problem& p = c.problem;
  const std::int64_t offset = c.layout.base_offset;
  q_.place(place_queries(c, p.headdim), p.dtype, offset);
  k_.place(place_keys(c, p.headdim), p.dtype, offset);
  v_.place(place_keys(c, p.headdim_v), p.dtype, offset);
  o_.place(place_queries(c, p.headdim_v), output_dtype(p.dtype), offset);
  lse_.place(place_lse(c), Dtype::fp32, 0);
  q_.lay_out(inputs.q);
  k_.lay_out(inputs.k);
  v_.lay_out(inputs.v);

  ForwardArgs args{q_.ref(), k_.ref(), v_.ref(), o_.ref(), reinterpret_cast<float*>(lse_.data())};
  const CaseLists lists = case_lists(c);
  args.cu_seqlens_q = lists_[cu_seqlens_q].hold_integers(lists.cu_seqlens_q);
  args.cu_seqlens_k = lists_[cu_seqlens_k].hold_integers(lists.cu_seqlens_k);
  args.seqused_k = lists_[seqused_k].hold_integers(lists.seqused_k);
  args.alibi_slopes = lists_[alibi_slopes].hold_floats(inputs.alibi_slopes.values);
  args.sink = lists_[sink].hold_floats(inputs.sink.values);
  args.q_descale = lists_[q_descale].hold_floats(inputs.q_descale.values);
  args.k_descale = lists_[k_descale].hold_floats(inputs.k_descale.values);
  args.v_descale = lists_[v_descale].hold_floats(inputs.v_descale.values);
  args.page_table = lists_[page_table].hold_integers(lists.page_table);
  args.pages_per_sequence = lists.pages_per_sequence;
  args.page_size = c.layout.page_size;
  args.document_ends = lists_[document_ends].hold_integers(lists.document_ends);
  args.num_documents = std::ssize(p.documents);
  lay_out_bias(c, inputs.bias, args);
  tell_memory(args);
  return args;
}

void ForwardBuffers::tell_memory(ForwardArgs& args) {
  memory_.clear();
  for (const TensorMemory* tensor : {&q_, &k_, &v_, &o_, &lse_}) memory_.push_back(tensor->range());
  if (has_bias_) memory_.push_back(bias_.range());
  for (const ListMemory& list : lists_)
    if (list.held()) memory_.push_back(list.range());
  args.memory = memory_.data();
  args.num_memory_ranges = std::ssize(memory_);
}

// Scores are to a bias what heads are to Q: [batch or 1, nheads or 1, seqlen_q] rows of seqlen_k, row_gap after each.
void ForwardBuffers::lay_out_bias(const Case& c, const Tensor& bias, ForwardArgs& args) {
  has_bias_ = c.problem.bias != Bias::none;
  if (!has_bias_) return;
  Layout layout;
  layout.order = Layout::Order::bhsd;
  layout.row_gap = c.layout.row_gap;
  layout.seq_gap = c.layout.seq_gap;
  Placement placement = place({bias.extents[0], bias.extents[2], bias.extents[1], bias.extents[3]}, layout);
  placement.extents = bias.extents;
  placement.heads_before_rows = true;
  bias_.place(placement, Dtype::fp32, c.layout.base_offset);
  bias_.lay_out(inside_the_domain(c, bias));
  args.bias = reinterpret_cast<const float*>(bias_.data());
  args.bias_row_stride = placement.row_stride;
  args.bias_batch_stride = bias.extents[0] == 1 ? 0 : placement.batch_stride;
  args.bias_head_stride = bias.extents[1] == 1 ? 0 : placement.head_stride;
}

void ForwardBuffers::fill_outputs(bool flipped) {
  o_.fill_pattern(flipped);
  lse_.fill_pattern(flipped);
}

void ForwardBuffers::restore_inputs() {
  for (TensorMemory* input : {&q_, &k_, &v_}) input->restore();
  if (has_bias_) bias_.restore();
  for (ListMemory& list : lists_) list.restore();
}

std::int64_t ForwardBuffers::take_out_of_bounds() {
  return inputs_changed() + o_.changed_outside() + lse_.changed_outside();
}

std::int64_t ForwardBuffers::inputs_changed() const {
  std::int64_t bytes = q_.changed() + k_.changed() + v_.changed();
  if (has_bias_) bytes += bias_.changed();
  for (const ListMemory& list : lists_) bytes += list.changed();
  return bytes;
}

ForwardRun ForwardBuffers::run(Kernel& kernel, const Case& c, const Inputs& inputs) {
  args_ = lay_out(c, inputs);
  const auto call = [&] { return kernel.run(c, args_); };
  const bool offers_lse = kernel.capability().offers_lse;
  fill_outputs(false);

  ForwardRun run;
  run.report = run_kernel(call);
  run.outputs.o = o_.gather();
  const std::vector<std::int64_t> o_left = o_.pattern_left();
  std::vector<std::int64_t> lse_left;
  if (offers_lse) {
    lse_as_written_ = lse_.gather();
    run.outputs.lse = lse_as_written_;
    const double to_base_e = std::log(kernel.capability().lse_base);
    if (to_base_e != 1)
      for (double& value : run.outputs.lse->values) value *= to_base_e;
    lse_left = lse_.pattern_left();
  }
  run.outputs.out_of_bounds = take_out_of_bounds();
  if (o_left.empty() && lse_left.empty()) return run;

  restore_inputs();
  fill_outputs(true);
  append(run.report, run_kernel(call));
  run.outputs.unwritten_o = count_both(o_left, o_.pattern_left());
  if (offers_lse) run.outputs.unwritten_lse = count_both(lse_left, lse_.pattern_left());
  run.outputs.out_of_bounds = std::max(run.outputs.out_of_bounds, take_out_of_bounds());
  return run;
}

}  // namespace attest
