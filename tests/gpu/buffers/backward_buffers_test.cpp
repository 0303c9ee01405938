// Buffers of a backward: what it is handed and what it leaves.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>

#include "attest/gpu/forward_buffers.h"
#include "writer.h"

namespace attest {
namespace {

// Checks what a backward is handed and writes a value of its own to every element of the gradients.
class BackwardWriter : public Writer {
 public:
  using ThenBackward = std::function<void(const BackwardArgs&)>;
  explicit BackwardWriter(ThenBackward then) : then_(std::move(then)) {
    capability_.offers_gradients = true;
    capability_.lse_base = 2;
  }
  RunReport run_backward(const Case& c, const BackwardArgs& args) override {
    ++backward_runs;
    const Problem& p = c.problem;
    const Dtype dtype = p.dtype;
    EXPECT_EQ(load(dtype, args.forward.o, 1, 3, 1, 4), value(1, 3, 1, 4));
    EXPECT_TRUE(std::isnan(load(dtype, args.forward.o, p.batch - 1, p.seqlen_q - 1, p.nheads - 1, p.headdim_v)));
    EXPECT_EQ(args.forward.lse[(1 * p.nheads + 1) * p.seqlen_q + 3], 311) << "in the kernel's own base";
    EXPECT_EQ(load(dtype, args.dout, 1, 2, 0, 1), 0.5);
    const auto fill = [&](const TensorRef& t, std::int64_t rows, std::int64_t heads, std::int64_t dim) {
      for (std::int64_t b = 0; b < p.batch; ++b)
        for (std::int64_t s = 0; s < rows; ++s)
          for (std::int64_t h = 0; h < heads; ++h)
            for (std::int64_t d = 0; d < dim; ++d)
              if (&t != &args.dk || !(skip_dk && b == 0 && s == 1 && d == 2))
                store(dtype, t, b, s, h, d, 2 + d + 16 * s);
    };
    fill(args.dq, p.seqlen_q, p.nheads, p.headdim);
    fill(args.dk, p.seqlen_k, p.nheads_k, p.headdim);
    fill(args.dv, p.seqlen_k, p.nheads_k, p.headdim_v);
    for (std::int64_t h = 0; h < p.nheads; ++h) args.dsink[h] = static_cast<float>(h) + 0.25f;
    for (std::int64_t i = 0; i < p.seqlen_q; ++i)
      for (std::int64_t j = 0; j < p.seqlen_k; ++j)
        args.dbias[i * args.forward.bias_row_stride + j] = static_cast<float>(10 * i + j);
    then_(args);
    return {{"a hazard of the backward"}};
  }
  int backward_runs = 0;
  bool skip_dk = false;

 private:
  ThenBackward then_;
};

TEST(BackwardBuffers, GradientsAreGatheredAndWhatIsAmissIsTold) {
  Case c = small_case(Dtype::fp16, {Layout::Order::bhsd, 8, 2, 8});
  c.problem.sink = true, c.problem.bias = Bias::qk, c.backward = true;
  Inputs inputs = numbered_inputs(c.problem);
  inputs.dout = Tensor({2, 4, 2, 5}, 0.5);
  inputs.sink = Tensor({1, 2, 1, 1}, 1.0);
  inputs.bias = Tensor({1, 1, 4, 3}, 1.0);
  ForwardBuffers buffers;
  BackwardWriter right([](const BackwardArgs&) {});
  const ForwardRun run = buffers.run_backward(right, c, inputs);
  EXPECT_EQ(right.backward_runs, 1);
  EXPECT_EQ(run.outputs.out_of_bounds, 0);
  ASSERT_TRUE(run.outputs.gradients);
  EXPECT_EQ(run.outputs.gradients->dk.at(1, 2, 0, 7), 2 + 7 + 32);
  EXPECT_EQ(run.outputs.gradients->dsink.at(0, 1, 0, 0), 1.25);
  EXPECT_EQ(run.outputs.gradients->dbias.at(0, 0, 3, 2), 32);
  EXPECT_EQ(run.report.hazards, (std::vector<std::string>{"a hazard", "a hazard of the backward"}));

  right.skip_dk = true;
  EXPECT_EQ(buffers.run_backward(right, c, inputs).outputs.unwritten_gradients,
            (std::array<std::int64_t, 5>{0, 1, 0, 0, 0}));
  EXPECT_EQ(right.backward_runs, 3);

  BackwardWriter tramples([](const BackwardArgs& args) { static_cast<std::uint16_t*>(args.forward.o.data)[0] ^= 1; });
  EXPECT_EQ(buffers.run_backward(tramples, c, inputs).outputs.out_of_bounds, 1) << "O is an input now";
  BackwardWriter beyond([](const BackwardArgs& args) { static_cast<std::uint16_t*>(args.dq.data)[8] = 0xffff; });
  EXPECT_EQ(buffers.run_backward(beyond, c, inputs).outputs.out_of_bounds, 2) << "the gap after a row of dQ";
}

}  // namespace
}  // namespace attest
