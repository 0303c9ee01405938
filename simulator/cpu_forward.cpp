#include "attest/simulator/cpu_forward.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "attest/simulator/executor.h"

namespace attest {
namespace {

/// The tensors of a forward as its CTAs see them. What a CTA may touch is what the caller gave, not what a wrong plan
/// believes.
class Views {
 public:
  Views(const Behaviour& behaviour, const Problem& p, const ForwardArgs& given, const GridExtents& grid)
      : behaviour_(behaviour), p_(p), given_(given), args_(behaviour.arguments(given, grid)) {
    const std::int64_t total_q = given.cu_seqlens_q != nullptr ? given.cu_seqlens_q[p.batch] : p.seqlen_q;
    const std::int64_t total_k = given.cu_seqlens_k != nullptr ? given.cu_seqlens_k[p.batch] : p.seqlen_k;
    const std::int64_t last_page = given.page_table != nullptr ? find_last_page() : 0;
    q_ = {total_q, p.nheads, p.headdim, 0};
    k_ = {total_k, p.nheads_k, p.headdim, last_page};
    v_ = {total_k, p.nheads_k, p.headdim_v, last_page};
    o_ = {total_q, p.nheads, p.headdim_v, 0};
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
  struct Extents {
    std::int64_t rows, heads, dim, last_page;
  };

  std::int64_t find_last_page() const {  // of those that hold keys
    std::int64_t last = 0;
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      const std::int64_t keys = given_.seqused_k != nullptr ? given_.seqused_k[b] : p_.seqlen_k;
      const std::int64_t used = (keys + given_.page_size - 1) / given_.page_size;
      for (std::int64_t i = 0; i < used; ++i)
        last = std::max<std::int64_t>(last, given_.page_table[b * given_.pages_per_sequence + i]);
    }
    return last;
  }

  HeadView view(const TensorRef& t, const TensorRef& given, const std::int32_t* cu_seqlens, std::int64_t b,
                std::int64_t h, const Extents& e) const {
    const bool packed = cu_seqlens != nullptr;
    HeadView head;
    head.base = static_cast<std::uint8_t*>(t.data);
    const std::int64_t first = packed ? behaviour_.first_row(cu_seqlens, b) : 0;
    head.offset = behaviour_.offset(packed ? first : b, packed ? t.row_stride : t.batch_stride) +
                  behaviour_.offset(h, t.head_stride);
    head.row_stride = t.row_stride;
    head.span = (packed ? 0 : (p_.batch - 1) * given.batch_stride) + (e.heads - 1) * given.head_stride +
                (e.rows - 1) * given.row_stride + e.dim;
    head.rows = e.rows - first;
    head.columns = static_cast<int>(e.dim);
    return head;
  }

  HeadView key_view(const TensorRef& t, const TensorRef& given, std::int64_t b, std::int64_t h,
                    const Extents& e) const {
    if (args_.page_table == nullptr) return view(t, given, args_.cu_seqlens_k, b, h, e);
    HeadView head;
    head.base = static_cast<std::uint8_t*>(t.data);
    head.offset = behaviour_.offset(h, t.head_stride);
    head.row_stride = t.row_stride;
    head.span = e.last_page * given.batch_stride + (e.heads - 1) * given.head_stride +
                (given_.page_size - 1) * given.row_stride + e.dim;
    head.columns = static_cast<int>(e.dim);
    head.pages = args_.page_table + b * args_.pages_per_sequence;
    head.num_pages = args_.pages_per_sequence;
    head.page_size = args_.page_size;
    head.page_stride = t.batch_stride;
    return head;
  }

  const Behaviour& behaviour_;
  const Problem& p_;
  const ForwardArgs& given_;
  const ForwardArgs args_;
  Extents q_{}, k_{}, v_{}, o_{};
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
  const Launch launch = make_launch(p, lengths.document_ends);
  const GridExtents grid{num_q_tiles(plan, p), plan.num_splits, p.batch, p.nheads, p.nheads_k, p.seqlen_k};
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
                   views.cta(at.batch, at.head, scale, workspace ? &*workspace : nullptr));
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
