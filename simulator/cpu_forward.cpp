#include "attest/simulator/cpu_forward.h"

#include "attest/simulator/executor.h"

namespace attest {

void forward_on_cpu(const Behaviour& behaviour, const Problem& p, const ForwardArgs& args,
                    const std::function<void(const Program&)>& inspect) {
  Executor executor(behaviour, p.dtype, static_cast<float>(effective_softmax_scale(p)));
  const ForwardArgs a = behaviour.arguments(args);
  struct Extents {
    std::int64_t seqlen, heads, dim;
  };
  // A wrong plan may stride past the tensor: what it may touch is what the caller gave, not what the plan believes.
  const auto view = [&](const TensorRef& t, const TensorRef& given, std::int64_t b, std::int64_t h, Extents e) {
    HeadView head;
    head.base = static_cast<std::uint8_t*>(t.data);
    head.offset = b * t.batch_stride + h * t.head_stride;
    head.row_stride = t.row_stride;
    head.span = (p.batch - 1) * given.batch_stride + (e.heads - 1) * given.head_stride +
                (e.seqlen - 1) * given.row_stride + e.dim;
    head.rows = static_cast<int>(e.seqlen);
    head.columns = static_cast<int>(e.dim);
    return head;
  };
  const Extents q{p.seqlen_q, p.nheads, p.headdim}, k{p.seqlen_k, p.nheads_k, p.headdim},
      v{p.seqlen_k, p.nheads_k, p.headdim_v};
  const Extents o{p.seqlen_q, p.nheads, p.headdim_v};
  for (int tile = 0; tile < num_q_tiles(behaviour.plan(), p); ++tile) {
    const Program program = behaviour.program(make_work(p, tile));
    for (std::int64_t b = 0; b < p.batch; ++b)
      for (std::int64_t h = 0; h < p.nheads; ++h) {
        const std::int64_t h_k =
            behaviour.kv_head(static_cast<int>(h), static_cast<int>(p.nheads), static_cast<int>(p.nheads_k));
        executor.run(program, view(a.q, args.q, b, h, q), view(a.k, args.k, b, h_k, k), view(a.v, args.v, b, h_k, v),
                     view(a.o, args.o, b, h, o), a.lse + (b * p.nheads + h) * p.seqlen_q);
      }
    inspect(program);
  }
}

}  // namespace attest
