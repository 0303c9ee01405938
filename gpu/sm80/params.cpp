#include "attest/sm80/params.h"

#include "attest/plan/catalog.h"
#include "attest/plan/combine.h"
#include "attest/sm80/sm80_forward.h"

namespace attest::sm80 {
namespace {

std::int64_t address_of(const TensorRef& t) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(t.data) % 16);
}

}  // namespace

std::size_t workspace_bytes(const Case& c) {
  const Problem& p = c.problem;
  const std::int64_t rows = c.num_splits > 1 ? c.num_splits * p.batch * p.nheads * p.seqlen_q : 0;
  return static_cast<std::size_t>(rows * (partial_columns(p.headdim_v) + 1)) * sizeof(float);
}

ForwardParams make_params(const Case& c, const ForwardArgs& args, void* workspace) {
  const Problem& p = c.problem;
  ForwardParams params;
  params.args = args;
  params.launch = make_launch(p, {}, sm80_packed_heads(p));
  params.launch.document_ends = args.document_ends;
  params.launch.num_documents = static_cast<int>(args.num_documents);
  params.num_batches = static_cast<int>(p.batch);
  params.nheads = static_cast<int>(p.nheads);
  params.nheads_k = static_cast<int>(p.nheads_k);
  params.softmax_scale = static_cast<float>(effective_softmax_scale(p));
  params.softcap_value = static_cast<float>(p.softcap);
  params.headdim = static_cast<int>(p.headdim);
  params.headdim_v = static_cast<int>(p.headdim_v);
  params.longest_first = p.causal != Causal::none;
  params.softcap = p.softcap != 0;
  params.alibi = p.alibi;
  params.bias = p.bias != Bias::none;
  params.sink = p.sink;
  params.modified = sm80_modifies_scores(p);
  params.num_splits = static_cast<int>(c.num_splits);

  const ForwardArgs& a = params.args;
  const bool paged = args.page_table != nullptr;
  const auto choose = [&](Sm80Tile tile) {  // how copies to that tile run
    const LaunchPlan<Sm80Kind::general> launched(sm80_plan(tile), params);
    const KernelPlan& shape = launched;
    const KernelPlan plan =
        with_granules(shape, a.q, a.k, a.v, a.o, {address_of(a.q), address_of(a.k), address_of(a.v), address_of(a.o)});
    params.tile = tile;
    params.copy_bytes_q = plan.copy_bytes_q;
    params.copy_bytes_k = plan.copy_bytes_k;
    params.copy_bytes_v = plan.copy_bytes_v;
    params.copy_bytes_o = plan.copy_bytes_o;
    params.wide_q = plan.packed_heads == 1 && wide_copies(plan, Operand::q, a.q);
    params.wide_k = !paged && wide_copies(plan, Operand::k, a.k);
    params.wide_v = !paged && wide_copies(plan, Operand::v, a.v);
    params.q_tiles = num_q_tiles(plan, p);
  };
  choose(sm80_tile(p, Sm80Kind::fast));
  if (params.kind() == Sm80Kind::general) choose(sm80_tile(p, Sm80Kind::general));

  const std::int64_t rows = c.num_splits * p.batch * p.nheads * p.seqlen_q;
  params.partial_o = static_cast<float*>(workspace);
  if (workspace != nullptr) params.partial_lse = params.partial_o + rows * partial_columns(p.headdim_v);
  return params;
}

}  // namespace attest::sm80
