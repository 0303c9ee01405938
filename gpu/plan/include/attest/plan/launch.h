// From a problem to the numbers that a CTA is launched with: the kernels' own reading of a mask. The host hands over a
// Launch and the arrays of ForwardArgs; a CTA makes its Work of both.
#pragma once
#include <vector>

#include "attest/plan/kernel_plan.h"
#include "attest/problem/case.h"

namespace attest {

/// What is the same for all CTAs.
struct Launch {
  int seqlen_q = 0, seqlen_k = 0;  // the longest of all batch entries
  int left = -1, right = -1;
  bool causal = false, top_left = false;
  int prefix = 0;
  const std::int32_t* document_ends = nullptr;
  int num_documents = 0;
  int packed_heads = 1;  // of the plan
};

/// The lengths of a problem as the arrays that a kernel reads, for as long as this lives.
struct LengthArrays {
  explicit LengthArrays(const Problem& p) {
    const auto sums = [](const std::vector<std::int64_t>& lengths, bool from_zero) {
      std::vector<std::int32_t> ends;
      std::int32_t sum = 0;
      if (from_zero && !lengths.empty()) ends.push_back(0);
      for (const std::int64_t length : lengths) ends.push_back(sum += static_cast<std::int32_t>(length));
      return ends;
    };
    document_ends = sums(p.documents, false);
    cu_seqlens_q = sums(p.varlen_q, true);
    cu_seqlens_k = sums(p.varlen_k, true);
    for (const std::int64_t used : p.seqused_k) seqused_k.push_back(static_cast<std::int32_t>(used));
  }
  /// Those of ForwardArgs; the documents go with the Launch.
  ForwardArgs args() const {
    ForwardArgs a;
    const auto data = [](const std::vector<std::int32_t>& x) { return x.empty() ? nullptr : x.data(); };
    a.cu_seqlens_q = data(cu_seqlens_q);
    a.cu_seqlens_k = data(cu_seqlens_k);
    a.seqused_k = data(seqused_k);
    return a;
  }
  std::vector<std::int32_t> document_ends, cu_seqlens_q, cu_seqlens_k, seqused_k;
};

/// Windows that reach past both sequences become unlimited, so that no sum overflows.
inline Launch make_launch(const Problem& p, const std::vector<std::int32_t>& document_ends, int packed_heads = 1) {
  const auto window = [&](std::int64_t w) { return w < 0 || w >= p.seqlen_q + p.seqlen_k ? -1 : static_cast<int>(w); };
  Launch launch;
  launch.seqlen_q = static_cast<int>(p.seqlen_q);
  launch.seqlen_k = static_cast<int>(p.seqlen_k);
  launch.left = window(p.window_left);
  launch.right = p.causal != Causal::none ? 0 : window(p.window_right);
  launch.causal = p.causal != Causal::none;
  launch.top_left = p.causal == Causal::top_left;
  launch.prefix = static_cast<int>(p.prefix);
  launch.document_ends = document_ends.data();
  launch.num_documents = static_cast<int>(document_ends.size());
  launch.packed_heads = packed_heads;
  return launch;
}

/// Query tiles of the longest batch entry; CTAs past the end of theirs have nothing to do.
constexpr int num_q_tiles(const KernelPlan& plan, const Problem& p) {
  return static_cast<int>((p.seqlen_q * plan.packed_heads + plan.tile_m - 1) / plan.tile_m);
}

/// A CTA's numbers, from its place in the grid.
constexpr Work make_work(const Launch& launch, const ForwardArgs& args, std::int64_t batch, int q_tile, int split) {
  const auto length = [batch](const std::int32_t* cu_seqlens, int all) {
    return cu_seqlens != nullptr ? cu_seqlens[batch + 1] - cu_seqlens[batch] : all;
  };
  Work work;
  work.q_tile = q_tile;
  const int queries = length(args.cu_seqlens_q, launch.seqlen_q);
  work.seqlen_q = queries * launch.packed_heads;
  work.seqlen_k = args.seqused_k != nullptr ? args.seqused_k[batch] : length(args.cu_seqlens_k, launch.seqlen_k);
  work.diagonal = launch.top_left ? 0 : work.seqlen_k - queries;
  work.left = launch.left;
  work.right = launch.right;
  work.causal = launch.causal;
  work.prefix = launch.prefix;
  work.document_ends = launch.document_ends;
  work.num_documents = launch.num_documents;
  work.split = split;
  work.page_size = static_cast<int>(args.page_size);
  return work;
}

/// The work of query tile `q_tile` where all batch entries are alike and there are no documents.
inline Work make_work(const Problem& p, int q_tile, int packed_heads = 1) {
  return make_work(make_launch(p, {}, packed_heads), {}, 0, q_tile, 0);
}

/// `plan` with what a case asks of it besides its tiles.
constexpr KernelPlan with_features(KernelPlan plan, const Case& c) {
  plan.softcap = c.problem.softcap != 0;
  plan.alibi = c.problem.alibi;
  plan.bias = c.problem.bias != Bias::none;
  plan.sink = c.problem.sink;
  plan.num_splits = static_cast<int>(c.num_splits);
  return plan;
}

}  // namespace attest
