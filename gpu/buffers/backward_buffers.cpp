// The backward's half of ForwardBuffers.
#include <algorithm>
#include <limits>
#include <utility>

#include "attest/gpu/forward_buffers.h"
#include "run_kernel.h"

namespace attest {
namespace {

// A caller's dO need not lie as O does: heads and rows change places, and there are other gaps.
Case elsewhere(Case c) {
  c.layout.order = c.layout.order == Layout::Order::bshd ? Layout::Order::bhsd : Layout::Order::bshd;
  c.layout.row_gap += 8;
  return c;
}

Case without_pages(Case c) {
  c.layout.page_size = c.layout.num_pages = 0;
  c.layout.page_table.clear();
  return c;
}

}  // namespace

BackwardArgs ForwardBuffers::lay_out_backward(const Case& c, const Inputs& inputs, const Tensor& o) {
  const Problem& p = c.problem;
  const std::int64_t offset = c.layout.base_offset;
  const Dtype dtype = output_dtype(p.dtype);
  o_.lay_out(o);
  if (lse_as_written_.extents == lse_.placement().extents)
    lse_.lay_out(lse_as_written_);
  else  // the kernel offers none, and gets none
    lse_.lay_out(Tensor(lse_.placement().extents, std::numeric_limits<double>::quiet_NaN()));
  dout_.place(place_queries(elsewhere(c), p.headdim_v), dtype, offset);
  dout_.lay_out(inputs.dout);

  BackwardArgs args;
  args.dout = dout_.ref();
  auto& [dq, dk, dv, dsink, dbias] = gradients_;
  asked_ = {0, 1, 2};
  dq.place(place_queries(c, p.headdim), dtype, offset);
  dk.place(place_keys(without_pages(c), p.headdim), dtype, offset);
  dv.place(place_keys(without_pages(c), p.headdim_v), dtype, offset);
  args.dq = dq.ref();
  args.dk = dk.ref();
  args.dv = dv.ref();
  if (p.sink) {
    asked_.push_back(3);
    dsink.place(place({1, p.nheads, 1, 1}, Layout{}), Dtype::fp32, 0);
    args.dsink = reinterpret_cast<float*>(dsink.data());
  }
  if (has_bias_) {
    asked_.push_back(4);
    dbias.place(bias_.placement(), Dtype::fp32, offset);
    args.dbias = reinterpret_cast<float*>(dbias.data());
  }
  tell_memory(args_);
  memory_.push_back(dout_.range());
  for (const std::size_t g : asked_) memory_.push_back(gradients_[g].range());
  args_.memory = memory_.data();
  args_.num_memory_ranges = std::ssize(memory_);
  args.forward = args_;
  return args;
}

std::int64_t ForwardBuffers::take_out_of_bounds_of_backward() {
  std::int64_t bytes = inputs_changed() + o_.changed() + lse_.changed() + dout_.changed();
  for (const std::size_t g : asked_) bytes += gradients_[g].changed_outside();
  return bytes;
}

ForwardRun ForwardBuffers::run_backward(Kernel& kernel, const Case& c, const Inputs& inputs) {
  lse_as_written_ = {};
  ForwardRun run = this->run(kernel, c, inputs);
  restore_inputs();  // whatever the forward did to them is told already
  const BackwardArgs args = lay_out_backward(c, inputs, run.outputs.o);
  const auto pass = [&](bool flipped) {
    for (const std::size_t g : asked_) gradients_[g].fill_pattern(flipped);
    append(run.report, run_kernel([&] { return kernel.run_backward(c, args); }));
  };

  pass(false);
  Gradients& out = run.outputs.gradients.emplace();
  Tensor* const channels[] = {&out.dq, &out.dk, &out.dv, &out.dsink, &out.dbias};
  std::array<std::vector<std::int64_t>, 5> left;
  bool all_written = true;
  for (const std::size_t g : asked_) {
    *channels[g] = gradients_[g].gather();
    left[g] = gradients_[g].pattern_left();
    all_written = all_written && left[g].empty();
  }
  run.outputs.out_of_bounds += take_out_of_bounds_of_backward();
  if (all_written) return run;

  restore_inputs();
  for (TensorMemory* input : {&o_, &lse_, &dout_}) input->restore();
  pass(true);
  for (const std::size_t g : asked_)
    run.outputs.unwritten_gradients[g] = count_both(left[g], gradients_[g].pattern_left());
  run.outputs.out_of_bounds = std::max(run.outputs.out_of_bounds, take_out_of_bounds_of_backward());
  return run;
}

}  // namespace attest
