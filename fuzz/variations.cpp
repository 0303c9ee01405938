#include "variations.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "attest/reference/attends.h"
#include "property_parts.h"

namespace attest {
namespace {

using Extents = std::array<std::int64_t, 4>;

// The box of `extents` from `begin`; nothing of a tensor that the case lacks, all of an extent that is shared.
Tensor box(const Tensor& tensor, Extents begin, Extents extents) {
  if (tensor.extents == Extents{}) return tensor;
  for (std::size_t n = 0; n < 4; ++n)
    if (tensor.extents[n] == 1 && extents[n] > 0) begin[n] = 0, extents[n] = 1;
  Tensor part(extents);
  if (part.values.empty()) return part;
  double* to = part.values.data();
  for (std::int64_t a = 0; a < extents[0]; ++a)
    for (std::int64_t b = 0; b < extents[1]; ++b)
      for (std::int64_t c = 0; c < extents[2]; ++c, to += extents[3])
        std::copy_n(tensor.values.begin() + tensor.index(begin[0] + a, begin[1] + b, begin[2] + c, begin[3]),
                    extents[3], to);
  return part;
}

// Inputs of one batch entry, of the extents of `p`, from a query and a key on.
Inputs inputs_of(const Inputs& in, const Problem& p, std::int64_t b, std::int64_t query, std::int64_t key) {
  Inputs part;
  part.q = box(in.q, {b, query, 0, 0}, {1, p.seqlen_q, p.nheads, p.headdim});
  part.k = box(in.k, {b, key, 0, 0}, {1, p.seqlen_k, p.nheads_k, p.headdim});
  part.v = box(in.v, {b, key, 0, 0}, {1, p.seqlen_k, p.nheads_k, p.headdim_v});
  part.dout = box(in.dout, {b, query, 0, 0}, {1, p.seqlen_q, p.nheads, p.headdim_v});
  part.bias = box(in.bias, {b, 0, query, key}, {1, p.nheads, p.seqlen_q, p.seqlen_k});
  part.alibi_slopes = box(in.alibi_slopes, {b, 0, 0, 0}, {1, p.nheads, 1, 1});
  part.sink = in.sink;
  for (Tensor Inputs::*descale : {&Inputs::q_descale, &Inputs::k_descale, &Inputs::v_descale})
    part.*descale = box(in.*descale, {b, 0, 0, 0}, {1, p.nheads_k, 1, 1});
  return part;
}

struct Answer {
  const Case& c;
  const Inputs& inputs;
  const Outputs& outputs;
};

class Comparison {
 public:
  Comparison(Trial& trial, const Relation& relation, const Answer& base, const Answer& other)
      : relation_(relation),
        base_(base),
        other_(other),
        worst_(relation.bitwise ? relation.rule + ", bit for bit" : relation.rule, trial.kernel().numerics(other.c)) {
    if (relation.skip_empty) visible_ = visible_keys(base.c.problem);
  }

  /// Bounds of both sides; `own` is the base's.
  void set_bounds(const Truth& own, const Truth* other) {
    own_truth_ = &own;
    other_truth_ = other;
  }

  void see_forward() {
    const Problem& p = other_.c.problem;
    for (std::int64_t b = 0; b < p.batch; ++b)
      for (std::int64_t i = 0; i < queries_of(p, b); ++i) see_row(b, i);
  }

  void see_gradients() {
    const Problem& p = other_.c.problem;
    const Problem& own = base_.c.problem;
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t i = 0; i < queries_of(p, b); ++i) see_gradient_row("dq", &Gradients::dq, b, i, p.nheads, 1);
      for (std::int64_t j = 0; j < keys_of(p, b); ++j) {
        see_gradient_row("dk", &Gradients::dk, b, j, own.nheads_k, relation_.group);
        see_gradient_row("dv", &Gradients::dv, b, j, own.nheads_k, relation_.group);
      }
    }
    if (relation_.gradients != Relation::Gradients::all) return;
    see_gradient_row("dsink", &Gradients::dsink, 0, 0, 1, 1, own.sink ? own.nheads : 0);
    for (std::int64_t b = 0; own.bias != Bias::none && b < base_.outputs.gradients->dbias.extents[0]; ++b)
      for (std::int64_t h = 0; h < base_.outputs.gradients->dbias.extents[1]; ++h)
        see_gradient_row("dbias", &Gradients::dbias, b, h, own.seqlen_q, 1);
  }

  Verdict verdict() { return worst_.verdict(); }

 private:
  // Row (b, s) of a gradient, all its heads: the sum of `group` of the variation's heads for each of the case's.
  void see_gradient_row(const char* channel, Tensor Gradients::*of, std::int64_t b, std::int64_t s, std::int64_t heads,
                        std::int64_t group, std::int64_t rows = 1) {
    const Tensor& own = (*base_.outputs.gradients).*of;
    const Tensor& other = (*other_.outputs.gradients).*of;
    const std::int64_t own_b = relation_.place.first_member + b;
    for (std::int64_t r = s; r < s + rows; ++r)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t d = 0; d < own.extents[3]; ++d) {
          double value = 0, bound = own_truth_ ? (own_truth_->gradient_bounds.*of).at(own_b, r, h, d) : 0;
          for (std::int64_t g = 0; g < group; ++g) {
            value += other.at(b, r, h * group + g, d);
            if (other_truth_) bound += (other_truth_->gradient_bounds.*of).at(b, r, h * group + g, d);
          }
          if (own_truth_ && !std::isfinite((own_truth_->gradients.*of).at(own_b, r, h, d))) continue;
          worst_.see(channel, {own_b, r, h, d}, value, own.at(own_b, r, h, d), bound);
        }
  }

  void see_row(std::int64_t b, std::int64_t i) {
    const Problem& p = other_.c.problem;
    const std::int64_t own_b = relation_.place.first_member + b, own_i = relation_.place.first_query + i;
    if (!visible_.empty() && visible_[static_cast<std::size_t>(own_b * base_.c.problem.seqlen_q + own_i)] == 0) return;
    for (std::int64_t h = 0; h < p.nheads; ++h) {
      const std::int64_t first = other_.outputs.o.index(b, i, h, 0), own = base_.outputs.o.index(own_b, own_i, h, 0);
      for (std::int64_t d = 0; d < p.headdim_v; ++d)
        see("o", {own_b, own_i, h, d}, other_.outputs.o, base_.outputs.o, first + d, own + d, relation_.place.o_factor,
            own_truth_ ? &own_truth_->forward.o : nullptr, own_truth_ ? &own_truth_->o_bound : nullptr,
            other_truth_ ? &other_truth_->o_bound : nullptr);
      if (!base_.outputs.lse) continue;
      see("lse", {own_b, h, own_i, 0}, *other_.outputs.lse, *base_.outputs.lse, other_.outputs.lse->index(b, h, i, 0),
          base_.outputs.lse->index(own_b, h, own_i, 0), 1, own_truth_ ? &own_truth_->forward.lse : nullptr,
          own_truth_ ? &own_truth_->lse_bound : nullptr, other_truth_ ? &other_truth_->lse_bound : nullptr);
    }
  }

  void see(const char* channel, const std::array<std::int64_t, 4>& element, const Tensor& other, const Tensor& base,
           std::int64_t at, std::int64_t own, double factor, const Tensor* truth, const Tensor* own_bound,
           const Tensor* other_bound) {
    const double value = other.values[static_cast<std::size_t>(at)];
    const double expected = factor * base.values[static_cast<std::size_t>(own)];
    if (!truth) return worst_.see(channel, element, value, expected, 0);
    // What is not finite is for `reference` to judge: which of NaN and Inf a kernel gives may hang on its order of
    // sums.
    if (!std::isfinite(truth->values[static_cast<std::size_t>(own)])) return;
    const double mine = std::abs(factor) * own_bound->values[static_cast<std::size_t>(own)];
    worst_.see(channel, element, value, expected,
               mine + (other_bound ? other_bound->values[static_cast<std::size_t>(at)] : mine));
  }

  const Relation& relation_;
  Answer base_, other_;
  Worst worst_;
  std::vector<std::int64_t> visible_;
  const Truth* own_truth_ = nullptr;
  const Truth* other_truth_ = nullptr;
};

}  // namespace

Variation positions_alone(const Case& c, const Inputs& inputs, std::int64_t b, std::int64_t begin, std::int64_t end) {
  Variation alone{c, {}};
  Problem& p = alone.c.problem;
  p.batch = 1;
  p.seqlen_q = std::max<std::int64_t>(0, std::min(end, queries_of(c.problem, b)) - begin);
  p.seqlen_k = std::max<std::int64_t>(0, std::min(end, keys_of(c.problem, b)) - begin);
  p.varlen_q.clear();
  p.varlen_k.clear();
  p.seqused_k.clear();
  p.documents.clear();
  p.prefix = std::max<std::int64_t>(0, p.prefix - begin);
  alone.c.layout.page_table.clear();
  alone.c.layout.num_pages = 0;
  alone.inputs = inputs_of(inputs, p, b, begin, begin);
  return alone;
}

Variation member_alone(const Case& c, const Inputs& inputs, std::int64_t b) {
  Variation alone{c, {}};
  Problem& p = alone.c.problem;
  const auto entry = static_cast<std::size_t>(b);
  p.batch = 1;
  p.seqlen_q = queries_of(c.problem, b);
  if (!p.varlen_k.empty()) p.seqlen_k = p.varlen_k[entry];
  p.varlen_q.clear();
  p.varlen_k.clear();
  if (!p.seqused_k.empty()) p.seqused_k = {c.problem.seqused_k[entry]};
  if (!c.layout.page_table.empty()) alone.c.layout.page_table = {c.layout.page_table[entry]};
  std::int64_t left = std::max(p.seqlen_q, p.seqlen_k);
  for (std::int64_t& length : p.documents) {
    length = std::min(length, left);
    left -= length;
  }
  alone.inputs = inputs_of(inputs, p, b, 0, 0);
  return alone;
}

Verdict same_answer(Trial& trial, const Relation& relation, const Variation& variation) {
  if (trial.kernel().unsupported(variation.c)) return {};
  const bool gradients = trial.has_gradients() && relation.gradients != Relation::Gradients::none;
  const ForwardRun run = trial.run(variation.c, variation.inputs, gradients);
  for (const Outputs* outputs : {&run.outputs, &trial.run().outputs})
    if (auto flaw = memory_flaw(*outputs)) return *flaw;
  Comparison comparison(trial, relation, {trial.the_case(), trial.inputs(), trial.run().outputs},
                        {variation.c, variation.inputs, run.outputs});
  const bool bitwise_gradients = relation.bitwise && trial.the_case().deterministic && relation.group == 1;
  if (gradients && bitwise_gradients) comparison.see_gradients();
  if (relation.bitwise) {
    comparison.see_forward();
  } else {
    const Truth& own = trial.truth();
    const bool same_budget = !relation.other_budget && trial.kernel().numerics(variation.c) == own.numerics;
    const Truth other = same_budget ? Truth{} : trial.truth_of(variation.c, variation.inputs);
    comparison.set_bounds(own, same_budget ? nullptr : &other);
    comparison.see_forward();
  }
  if (gradients && !bitwise_gradients) {
    const Truth own = trial.truth_of(trial.the_case(), trial.inputs(), true);
    const Truth other = trial.truth_of(variation.c, variation.inputs, true);
    comparison.set_bounds(own, &other);
    comparison.see_gradients();
  }
  return comparison.verdict();
}

Verdict same_answer(Trial& trial, const Relation& relation, const Variation& base, const Variation& variation) {
  if (trial.kernel().unsupported(variation.c) || trial.kernel().unsupported(base.c)) return {};
  const ForwardRun own = trial.run(base.c, base.inputs), other = trial.run(variation.c, variation.inputs);
  for (const ForwardRun* run : {&own, &other})
    if (auto flaw = memory_flaw(run->outputs)) return *flaw;
  Comparison comparison(trial, relation, {base.c, base.inputs, own.outputs},
                        {variation.c, variation.inputs, other.outputs});
  const Truth own_truth = relation.bitwise ? Truth{} : trial.truth_of(base.c, base.inputs);
  const Truth other_truth = relation.bitwise ? Truth{} : trial.truth_of(variation.c, variation.inputs);
  if (!relation.bitwise) comparison.set_bounds(own_truth, &other_truth);
  comparison.see_forward();
  return comparison.verdict();
}

}  // namespace attest
