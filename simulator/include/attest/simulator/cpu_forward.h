// A whole forward on the CPU: every CTA of the grid, from the recorded programs.
#pragma once
#include "attest/problem/problem.h"
#include "attest/simulator/executor.h"
#include "attest/simulator/hazards.h"

namespace attest {

/// Computes O and LSE of `problem` with `plan`. Single-threaded; allocates one CTA's tiles. The buffers behind `args`
/// have a margin of at least two rows past their last element (a wrong plan may write one row too many).
template <class Plan>
void forward_on_cpu(const Plan& plan, const Problem& p, const ForwardArgs& args) {
  Executor<Plan> executor(plan, p.dtype, static_cast<float>(effective_softmax_scale(p)));
  const auto view = [&](const TensorRef& t, std::int64_t b, std::int64_t h, std::int64_t seqlen, std::int64_t heads,
                        std::int64_t dim) {
    HeadView head;
    head.base = static_cast<std::uint8_t*>(t.data);
    head.offset = b * t.batch_stride + h * t.head_stride;
    head.row_stride = t.row_stride;
    head.span = (p.batch - 1) * t.batch_stride + (heads - 1) * t.head_stride + (seqlen - 1) * t.row_stride + dim;
    head.rows = static_cast<int>(seqlen);
    head.columns = static_cast<int>(dim);
    return head;
  };
  const ForwardArgs a = plan.arguments(args);
  for (int tile = 0; tile < num_q_tiles(plan, p); ++tile) {
    const Program program = record(plan, make_work(p, tile));
    for (std::int64_t b = 0; b < p.batch; ++b)
      for (std::int64_t h = 0; h < p.nheads; ++h) {
        const std::int64_t h_k =
            plan.kv_head(static_cast<int>(h), static_cast<int>(p.nheads), static_cast<int>(p.nheads_k));
        executor.run(program, view(a.q, b, h, p.seqlen_q, p.nheads, p.headdim),
                     view(a.k, b, h_k, p.seqlen_k, p.nheads_k, p.headdim),
                     view(a.v, b, h_k, p.seqlen_k, p.nheads_k, p.headdim_v),
                     view(a.o, b, h, p.seqlen_q, p.nheads, p.headdim_v), a.lse + (b * p.nheads + h) * p.seqlen_q);
      }
  }
}

}  // namespace attest
