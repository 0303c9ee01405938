#include "attest/simulator/cpu_backward.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "attest/problem/splitmix64.h"
#include "attest/simulator/backward_executor.h"
#include "head_views.h"

namespace attest {
namespace {

class Views {
 public:
  Views(const BackwardBehaviour& behaviour, const Problem& p, const BackwardArgs& given)
      : behaviour_(behaviour), p_(p), given_(given), args_(behaviour.arguments(given)) {
    const ForwardArgs& f = given.forward;
    total_q_ = f.cu_seqlens_q != nullptr ? f.cu_seqlens_q[p.batch] : p.seqlen_q;
    total_k_ = f.cu_seqlens_k != nullptr ? f.cu_seqlens_k[p.batch] : p.seqlen_k;
  }
  const BackwardArgs& args() const { return args_; }
  std::int64_t statistics_rows() const {
    return p_.nheads * (given_.forward.cu_seqlens_q != nullptr ? total_q_ : p_.batch * p_.seqlen_q);
  }

  auto offset(BackwardTile x) const {
    return [this, x](std::int64_t index, std::int64_t stride) { return behaviour_.offset(x, index, stride); };
  }

  /// Of one head, as preprocess and postprocess have it.
  BackwardCta rows_cta(std::int64_t b, std::int64_t h, float softmax_scale, BackwardWorkspace& workspace) const {
    BackwardCta cta = empty(workspace);
    cta.heads.push_back(head(b, h, softmax_scale));
    return cta;
  }

  BackwardCta keys_cta(std::int64_t b, std::int64_t h_k, const std::vector<int>& heads, float softmax_scale,
                       BackwardWorkspace& workspace) const {
    const auto view = [&](BackwardTile x, const TensorRef& t, const TensorRef& given, std::int64_t dim) {
      return head_view(t, given, args_.forward.cu_seqlens_k, first_row, b, h_k, {p_.batch, total_k_, p_.nheads_k, dim},
                       offset(x));
    };
    const auto key_view = [&](BackwardTile x, const TensorRef& t, const TensorRef& given, std::int64_t dim) {
      if (args_.forward.page_table == nullptr) return view(x, t, given, dim);
      return paged_view(t, given, args_.forward, given_.forward.page_size, last_page_of(p_, given_.forward), b, h_k,
                        {p_.batch, total_k_, p_.nheads_k, dim}, offset(x));
    };
    BackwardCta cta = empty(workspace);
    cta.k = key_view(BackwardTile::k, args_.forward.k, given_.forward.k, p_.headdim);
    cta.v = key_view(BackwardTile::v, args_.forward.v, given_.forward.v, p_.headdim_v);
    cta.dk = view(BackwardTile::dk, args_.dk, given_.dk, p_.headdim);
    cta.dv = view(BackwardTile::dv, args_.dv, given_.dv, p_.headdim_v);
    for (const int h : heads) cta.heads.push_back(head(b, h, softmax_scale));
    return cta;
  }

 private:
  static std::int64_t first_row(const std::int32_t* cu_seqlens, std::int64_t b) { return cu_seqlens[b]; }

  BackwardCta empty(BackwardWorkspace& workspace) const {
    BackwardCta cta;
    cta.lse = args_.forward.lse;
    cta.lse_span = statistics_rows();
    cta.dsink = args_.dsink;
    cta.workspace = &workspace;
    return cta;
  }
  BackwardHead head(std::int64_t b, std::int64_t h, float softmax_scale) const {
    const ForwardArgs &f = args_.forward, &given = given_.forward;
    const auto view = [&](BackwardTile x, const TensorRef& t, const TensorRef& as_given, std::int64_t dim) {
      return head_view(t, as_given, f.cu_seqlens_q, first_row, b, h, {p_.batch, total_q_, p_.nheads, dim}, offset(x));
    };
    BackwardHead head;
    head.q = view(BackwardTile::q, f.q, given.q, p_.headdim);
    head.o = view(BackwardTile::o, f.o, given.o, p_.headdim_v);
    head.dout = view(BackwardTile::dout, args_.dout, given_.dout, p_.headdim_v);
    head.dq = view(BackwardTile::dq, args_.dq, given_.dq, p_.headdim);
    head.place = {b, h, p_.batch, p_.nheads, p_.seqlen_q, f.cu_seqlens_q != nullptr, 0, total_q_};
    if (f.cu_seqlens_q != nullptr) head.place.first_row = f.cu_seqlens_q[b];
    head.head = static_cast<int>(h);
    head.score.scale = behaviour_.score_scale(softmax_scale);
    head.score.softcap = static_cast<float>(p_.softcap);
    if (f.alibi_slopes != nullptr) head.score.slope = f.alibi_slopes[b * p_.nheads + h];
    if (f.sink != nullptr) head.score.sink = f.sink[h];
    if (f.bias != nullptr) {
      const std::int64_t first = b * f.bias_batch_stride + h * f.bias_head_stride;
      head.score.bias = f.bias + first;
      head.score.bias_row_stride = f.bias_row_stride;
      head.dbias = args_.dbias + first;
      head.bias_span = (p_.batch - 1) * given.bias_batch_stride + (p_.nheads - 1) * given.bias_head_stride +
                       (p_.seqlen_q - 1) * given.bias_row_stride + p_.seqlen_k - first;
    }
    return head;
  }

  const BackwardBehaviour& behaviour_;
  const Problem& p_;
  const BackwardArgs& given_;
  const BackwardArgs args_;
  std::int64_t total_q_, total_k_;
};

/// In which order the CTAs of a grid run.
class Order {
 public:
  Order(std::uint64_t seed, bool ascending, bool reversed) : state_(seed), ascending_(ascending), reversed_(reversed) {}

  std::vector<std::int64_t> of(std::int64_t count) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    if (ascending_) return order;
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[next_splitmix64(state_) % i]);
    if (reversed_) std::reverse(order.begin(), order.end());
    return order;
  }

 private:
  std::uint64_t state_;
  bool ascending_, reversed_;
};

/// The query heads that the kernel takes for those of each key head.
std::vector<std::vector<int>> groups_of(const BackwardBehaviour& behaviour, const Problem& p) {
  std::vector<std::vector<int>> groups(static_cast<std::size_t>(p.nheads_k));
  for (int h = 0; h < p.nheads; ++h)
    groups[static_cast<std::size_t>(behaviour.kv_head(h, static_cast<int>(p.nheads), static_cast<int>(p.nheads_k)))]
        .push_back(h);
  return groups;
}

/// What the launcher sets to 0: sums over CTAs.
void clear_sums(const Problem& p, const BackwardArgs& args) {
  if (args.dsink != nullptr) std::fill_n(args.dsink, p.nheads, 0.0f);
  if (args.dbias == nullptr) return;
  const ForwardArgs& f = args.forward;
  for (std::int64_t b = 0; b < (f.bias_batch_stride == 0 ? 1 : p.batch); ++b)
    for (std::int64_t h = 0; h < (f.bias_head_stride == 0 ? 1 : p.nheads); ++h)
      for (std::int64_t i = 0; i < p.seqlen_q; ++i)
        std::fill_n(args.dbias + b * f.bias_batch_stride + h * f.bias_head_stride + i * f.bias_row_stride, p.seqlen_k,
                    0.0f);
}

class Grids {
 public:
  Grids(const BackwardBehaviour& behaviour, const Case& c, const BackwardArgs& args, bool reversed,
        const std::function<void(const BackwardProgram&)>& inspect)
      : behaviour_(behaviour),
        p_(c.problem),
        lengths_(p_),
        launch_(make_launch(p_, lengths_.document_ends)),
        views_(behaviour, p_, args),
        scale_(static_cast<float>(effective_softmax_scale(p_))),
        workspace_(views_.statistics_rows(), p_.batch * p_.nheads * p_.seqlen_q, static_cast<int>(p_.headdim)),
        executor_(behaviour, p_.dtype),
        order_(c.seed, behaviour.adds_in_order(), reversed),
        inspect_(inspect) {}

  std::vector<std::string> run() {
    clear_sums(p_, views_.args());
    const int q_tiles = num_q_tiles(behaviour_.plan(), p_), left_over = behaviour_.waits_for_preprocess() ? 0 : 1;
    const auto preprocess = [&](const BackwardWork& w) { return behaviour_.preprocess_program(w); };
    for (const std::int64_t tile : order_.of(q_tiles))
      if (tile < q_tiles - left_over) run_rows(static_cast<int>(tile), preprocess);
    run_keys();
    for (int tile = std::max(0, q_tiles - left_over); tile < q_tiles; ++tile) run_rows(tile, preprocess);
    for (int tile = 0; tile < q_tiles; ++tile)
      run_rows(tile, [&](const BackwardWork& w) { return behaviour_.postprocess_program(w); });
    return {executor_.faults().begin(), executor_.faults().end()};
  }

 private:
  BackwardWork work(std::int64_t b, int q_tile, int k_tile, int num_heads) const {
    BackwardWork work;
    static_cast<Work&>(work) = make_work(launch_, views_.args().forward, b, q_tile, 0);
    work.k_tile = k_tile;
    work.num_heads = num_heads;
    return work;
  }

  /// Batch entries of the same lengths run the same program: it is recorded, and inspected, once.
  template <class Make>
  const BackwardProgram& program(const BackwardWork& work, Make make) {
    const auto [found, is_new] = programs_.try_emplace({work.seqlen_q, work.seqlen_k, work.num_heads});
    if (is_new) {
      found->second = make(behaviour_.work(work));
      inspect_(found->second);
    }
    return found->second;
  }

  template <class Make>
  void run_rows(int tile, Make make) {
    programs_.clear();
    for (const std::int64_t i : order_.of(p_.batch * p_.nheads)) {
      const std::int64_t b = i / p_.nheads, h = i % p_.nheads;
      executor_.run(program(work(b, tile, 0, 1), make), views_.rows_cta(b, h, scale_, workspace_));
    }
  }

  void run_keys() {
    const std::vector<std::vector<int>> groups = groups_of(behaviour_, p_);
    const int tile_n = behaviour_.plan().tile_n;
    for (const std::int64_t tile : order_.of((p_.seqlen_k + tile_n - 1) / tile_n)) {
      programs_.clear();
      for (const std::int64_t i : order_.of(p_.batch * p_.nheads_k)) {
        const std::int64_t b = i / p_.nheads_k, h_k = i % p_.nheads_k;
        const std::vector<int>& heads = groups[static_cast<std::size_t>(h_k)];
        if (heads.empty()) continue;
        const BackwardWork w = work(b, 0, static_cast<int>(tile), static_cast<int>(heads.size()));
        executor_.run(program(w, [&](const BackwardWork& x) { return behaviour_.program(x); }),
                      views_.keys_cta(b, h_k, heads, scale_, workspace_));
      }
    }
  }

  const BackwardBehaviour& behaviour_;
  const Problem& p_;
  const LengthArrays lengths_;
  const Launch launch_;
  const Views views_;
  float scale_;
  BackwardWorkspace workspace_;
  BackwardExecutor executor_;
  Order order_;
  const std::function<void(const BackwardProgram&)>& inspect_;
  std::map<std::array<int, 3>, BackwardProgram> programs_;
};

}  // namespace

std::vector<std::string> backward_on_cpu(const BackwardBehaviour& behaviour, const Case& c, const BackwardArgs& args,
                                         bool reversed, const std::function<void(const BackwardProgram&)>& inspect) {
  return Grids(behaviour, c, args, reversed, inspect).run();
}

}  // namespace attest
