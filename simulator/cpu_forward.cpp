#include "attest/simulator/cpu_forward.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "attest/simulator/executor.h"
#include "head_views.h"

namespace attest {
namespace {

/// The tensors of a forward as its CTAs see them.
class Views {
 public:
  Views(const Behaviour& behaviour, const Problem& p, const ForwardArgs& given, const GridExtents& grid)
      : behaviour_(behaviour),
        p_(p),
        given_(given),
        args_(behaviour.arguments(given, grid)),
        last_page_(last_page_of(p, given)) {
    const std::int64_t total_q = given.cu_seqlens_q != nullptr ? given.cu_seqlens_q[p.batch] : p.seqlen_q;
    const std::int64_t total_k = given.cu_seqlens_k != nullptr ? given.cu_seqlens_k[p.batch] : p.seqlen_k;
    q_ = {p.batch, total_q, p.nheads, p.headdim};
    k_ = {p.batch, total_k, p.nheads_k, p.headdim};
    v_ = {p.batch, total_k, p.nheads_k, p.headdim_v};
    o_ = {p.batch, total_q, p.nheads, p.headdim_v};
  }
  const ForwardArgs& args() const { return args_; }

  Cta cta(std::int64_t b, std::int64_t h, float softmax_scale, Workspace* workspace) const {
    const std::int64_t h_k =
        behaviour_.kv_head(static_cast<int>(h), static_cast<int>(p_.nheads), static_cast<int>(p_.nheads_k));
    const auto descale = [&](const float* x) { return x == nullptr ? 1.0f : x[b * p_.nheads_k + h_k]; };
    Cta cta;
    cta.q = view(args_.q, given_.q, args_.cu_seqlens_q, b, h, q_);
    cta.k = key_view(args_.k, given_.k, b, h_k, k_);
    cta.v = key_view(args_.v, given_.v, b, h_k, v_);
    cta.o = view(args_.o, given_.o, args_.cu_seqlens_q, b, h, o_);
    cta.score.scale = behaviour_.score_scale(softmax_scale, descale(args_.q_descale), descale(args_.k_descale));
    cta.score.softcap = static_cast<float>(p_.softcap);
    if (args_.alibi_slopes != nullptr) cta.score.slope = args_.alibi_slopes[b * p_.nheads + h];
    if (args_.sink != nullptr) cta.score.sink = args_.sink[h];
    if (args_.bias != nullptr) {
      const std::int64_t offset =
          behaviour_.offset(b, args_.bias_batch_stride) + behaviour_.offset(h, args_.bias_head_stride);
      cta.score.bias = args_.bias + offset;
      cta.score.bias_row_stride = args_.bias_row_stride;
      cta.bias_span = (p_.batch - 1) * given_.bias_batch_stride + (p_.nheads - 1) * given_.bias_head_stride +
                      (p_.seqlen_q - 1) * given_.bias_row_stride + p_.seqlen_k - offset;
    }
    cta.output_scale = descale(args_.v_descale);
    cta.lse = args_.lse;
    cta.lse_span = p_.nheads * (given_.cu_seqlens_q != nullptr ? q_.rows : p_.batch * p_.seqlen_q);
    cta.place = {b, h, p_.batch, p_.nheads, p_.seqlen_q, args_.cu_seqlens_q != nullptr, 0, q_.rows};
    if (args_.cu_seqlens_q != nullptr) cta.place.first_row = behaviour_.first_row(args_.cu_seqlens_q, b);
    cta.workspace = workspace;
    return cta;
  }

 private:
  auto offset() const {
    return [this](std::int64_t index, std::int64_t stride) { return behaviour_.offset(index, stride); };
  }
  HeadView view(const TensorRef& t, const TensorRef& given, const std::int32_t* cu_seqlens, std::int64_t b,
                std::int64_t h, const TensorExtents& e) const {
    const auto first_row = [this](const std::int32_t* lengths, std::int64_t entry) {
      return behaviour_.first_row(lengths, entry);
    };
    return head_view(t, given, cu_seqlens, first_row, b, h, e, offset());
  }
  HeadView key_view(const TensorRef& t, const TensorRef& given, std::int64_t b, std::int64_t h,
                    const TensorExtents& e) const {
    if (args_.page_table == nullptr) return view(t, given, args_.cu_seqlens_k, b, h, e);
    return paged_view(t, given, args_, given_.page_size, last_page_, b, h, e, offset());
  }

  const Behaviour& behaviour_;
  const Problem& p_;
  const ForwardArgs& given_;
  const ForwardArgs args_;
  const std::int64_t last_page_;
  TensorExtents q_{}, k_{}, v_{}, o_{};
};

/// Batch entries of the same lengths run the same program: it is recorded, and inspected, once.
class Programs {
 public:
  using Make = std::function<Program(const Work&)>;
  Programs(const Behaviour& behaviour, const Launch& launch, const ForwardArgs& args, Make make,
           const std::function<void(const Program&)>& inspect)
      : behaviour_(behaviour), launch_(launch), args_(args), make_(std::move(make)), inspect_(inspect) {}

  const Program& at(std::int64_t batch, int q_tile, int split) {
    const Work work = make_work(launch_, args_, batch, q_tile, split);
    const auto [found, is_new] = programs_.try_emplace({work.seqlen_q, work.seqlen_k});
    if (is_new) {
      found->second = make_(behaviour_.work(work));
      inspect_(found->second);
    }
    return found->second;
  }
  void forget() { programs_.clear(); }

 private:
  const Behaviour& behaviour_;
  const Launch& launch_;
  const ForwardArgs& args_;
  Make make_;
  const std::function<void(const Program&)>& inspect_;
  std::map<std::pair<int, int>, Program> programs_;
};

}  // namespace

std::vector<std::string> forward_on_cpu(const Behaviour& behaviour, const Case& c, const ForwardArgs& args,
                                        const std::function<void(const Program&)>& inspect) {
  const Problem& p = c.problem;
  const KernelPlan& plan = behaviour.plan();
  const LengthArrays lengths(p);  // of which the kernel is handed the documents
  const Launch launch = make_launch(p, lengths.document_ends, plan.packed_heads);
  const GridExtents grid{num_q_tiles(plan, p),         plan.num_splits, p.batch,
                         p.nheads / plan.packed_heads, p.nheads_k,      p.seqlen_k};
  const Views views(behaviour, p, args, grid);
  const auto scale = static_cast<float>(effective_softmax_scale(p));
  Executor executor(behaviour, p.dtype);
  std::optional<Workspace> workspace;
  if (plan.num_splits > 1)
    workspace.emplace(plan.num_splits * p.batch * p.nheads * p.seqlen_q, static_cast<int>(p.headdim_v));

  const auto run_grid = [&](const GridExtents& of, const Programs::Make& make) {
    Programs programs(behaviour, launch, views.args(), make, inspect);
    CtaIndex before;
    for (std::int64_t i = 0; i < behaviour.num_ctas(of); ++i) {
      const CtaIndex at = behaviour.cta(of, i);
      if (at.q_tile != before.q_tile || at.split != before.split) programs.forget();
      before = at;
      executor.run(programs.at(at.batch, static_cast<int>(at.q_tile), static_cast<int>(at.split)),
                   views.cta(at.batch, at.head * plan.packed_heads, scale, workspace ? &*workspace : nullptr));
    }
  };
  const auto run_splits = [&] { run_grid(grid, [&](const Work& work) { return behaviour.program(work); }); };
  const auto run_combine = [&] {
    if (!behaviour.keeps_workspace()) workspace->forget();
    GridExtents rows = grid;
    rows.splits = 1;
    run_grid(rows, [&](const Work& work) { return behaviour.combine_program(work); });
  };
  if (plan.num_splits > 1 && !behaviour.combines_after_splits()) run_combine();
  run_splits();
  if (plan.num_splits > 1 && behaviour.combines_after_splits()) run_combine();
  return {executor.faults().begin(), executor.faults().end()};
}

}  // namespace attest
