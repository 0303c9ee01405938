#include <numeric>

#include "attest/gpu/api_problem.h"
#include "attest/gpu/placement.h"

namespace attest {
namespace {

std::int64_t total(const std::vector<std::int64_t>& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
}

attest_tensor tensor(const TensorRef& t, std::int64_t outer, std::int64_t rows, std::int64_t heads, std::int64_t dim) {
  return {t.data, {outer, rows, heads, dim}, {t.batch_stride, t.row_stride, t.head_stride, 1}};
}

attest_tensor queries(const Case& c, const TensorRef& t, std::int64_t dim) {
  const Problem& p = c.problem;
  if (!p.varlen_q.empty()) return tensor(t, 1, total(p.varlen_q), p.nheads, dim);
  return tensor(t, p.batch, p.seqlen_q, p.nheads, dim);
}

attest_tensor keys(const Case& c, const TensorRef& t, std::int64_t dim, bool paged) {
  const Problem& p = c.problem;
  if (paged) return tensor(t, page_table_of(c).num_pages, c.layout.page_size, p.nheads_k, dim);
  if (!p.varlen_k.empty()) return tensor(t, 1, total(p.varlen_k), p.nheads_k, dim);
  return tensor(t, p.batch, p.seqlen_k, p.nheads_k, dim);
}

attest_tensor lse(const Case& c, float* data) {
  const Problem& p = c.problem;
  const std::int64_t outer = p.varlen_q.empty() ? p.batch : 1,
                     rows = p.varlen_q.empty() ? p.seqlen_q : total(p.varlen_q);
  return {data, {outer, p.nheads, rows, 1}, {p.nheads * rows, rows, 1, 1}};
}

attest_tensor bias(const Case& c, const ForwardArgs& args, const float* data) {
  const Problem& p = c.problem;
  if (data == nullptr) return {};
  return {const_cast<float*>(data),
          {p.batch, p.nheads, p.seqlen_q, p.seqlen_k},
          {args.bias_batch_stride, args.bias_head_stride, args.bias_row_stride, 1}};
}

TensorRef ref_of(const attest_tensor& t) { return {t.data, t.strides[0], t.strides[1], t.strides[2]}; }

template <class T>
void relocate(T*& pointer, const Relocate& to) {
  pointer = static_cast<T*>(to(pointer));
}

}  // namespace

attest_forward to_api(const Case& c, const ForwardArgs& args) {
  const Problem& p = c.problem;
  const bool paged = args.page_table != nullptr;
  attest_forward api{};
  api.struct_size = sizeof api;
  api.q = queries(c, args.q, p.headdim);
  api.k = keys(c, args.k, p.headdim, paged);
  api.v = keys(c, args.v, p.headdim_v, paged);
  api.o = queries(c, args.o, p.headdim_v);
  api.lse = lse(c, args.lse);
  api.cu_seqlens_q = args.cu_seqlens_q;
  api.cu_seqlens_k = args.cu_seqlens_k;
  api.seqused_k = args.seqused_k;
  api.page_table = args.page_table;
  api.pages_per_sequence = args.pages_per_sequence;
  api.document_ends = args.document_ends;
  api.alibi_slopes = args.alibi_slopes;
  api.sink = args.sink;
  api.q_descale = args.q_descale;
  api.k_descale = args.k_descale;
  api.v_descale = args.v_descale;
  api.bias = bias(c, args, args.bias);
  return api;
}

attest_backward to_api(const Case& c, const BackwardArgs& args, const attest_forward& forward) {
  const Problem& p = c.problem;
  attest_backward api{};
  api.struct_size = sizeof api;
  api.forward = &forward;
  api.dout = queries(c, args.dout, p.headdim_v);
  api.dq = queries(c, args.dq, p.headdim);
  api.dk = keys(c, args.dk, p.headdim, false);
  api.dv = keys(c, args.dv, p.headdim_v, false);
  api.dbias = bias(c, args.forward, args.dbias);
  api.dsink = args.dsink;
  return api;
}

ForwardArgs args_of(const attest_problem& problem, const attest_forward& api) {
  ForwardArgs args;
  args.q = ref_of(api.q);
  args.k = ref_of(api.k);
  args.v = ref_of(api.v);
  args.o = ref_of(api.o);
  args.lse = static_cast<float*>(api.lse.data);
  args.cu_seqlens_q = api.cu_seqlens_q;
  args.cu_seqlens_k = api.cu_seqlens_k;
  args.seqused_k = api.seqused_k;
  args.page_table = api.page_table;
  args.pages_per_sequence = api.pages_per_sequence;
  args.page_size = problem.page_size;
  args.alibi_slopes = api.alibi_slopes;
  args.sink = api.sink;
  args.bias = static_cast<const float*>(api.bias.data);
  args.bias_batch_stride = api.bias.strides[0];
  args.bias_head_stride = api.bias.strides[1];
  args.bias_row_stride = api.bias.strides[2];
  args.q_descale = api.q_descale;
  args.k_descale = api.k_descale;
  args.v_descale = api.v_descale;
  args.document_ends = api.document_ends;
  args.num_documents = problem.num_documents;
  return args;
}

BackwardArgs args_of(const attest_problem& problem, const attest_backward& api) {
  BackwardArgs args;
  args.forward = args_of(problem, *api.forward);
  args.dout = ref_of(api.dout);
  args.dq = ref_of(api.dq);
  args.dk = ref_of(api.dk);
  args.dv = ref_of(api.dv);
  args.dsink = api.dsink;
  args.dbias = static_cast<float*>(api.dbias.data);
  return args;
}

ForwardArgs relocated(ForwardArgs args, const Relocate& to) {
  for (TensorRef* tensor : {&args.q, &args.k, &args.v, &args.o}) relocate(tensor->data, to);
  relocate(args.lse, to);
  for (const std::int32_t** list :
       {&args.cu_seqlens_q, &args.cu_seqlens_k, &args.seqused_k, &args.page_table, &args.document_ends})
    relocate(*list, to);
  for (const float** list :
       {&args.alibi_slopes, &args.sink, &args.bias, &args.q_descale, &args.k_descale, &args.v_descale})
    relocate(*list, to);
  args.memory = nullptr;
  args.num_memory_ranges = 0;
  return args;
}

BackwardArgs relocated(BackwardArgs args, const Relocate& to) {
  args.forward = relocated(args.forward, to);
  for (TensorRef* tensor : {&args.dout, &args.dq, &args.dk, &args.dv}) relocate(tensor->data, to);
  relocate(args.dsink, to);
  relocate(args.dbias, to);
  return args;
}

}  // namespace attest
