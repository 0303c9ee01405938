// Variations of a case that must give the case's own answer.
#include <algorithm>
#include <map>

#include "attest/fuzz/properties.h"
#include "attest/reference/attends.h"
#include "property_parts.h"

namespace attest {
namespace {

// [first, first + count) of the outermost extent.
Tensor members(const Tensor& tensor, std::int64_t first, std::int64_t count) {
  auto extents = tensor.extents;
  extents[0] = count;
  Tensor slice(extents);
  const auto begin = tensor.values.begin() + tensor.index(first, 0, 0, 0);
  std::copy_n(begin, slice.values.size(), slice.values.begin());
  return slice;
}

Tensor repeat_heads(const Tensor& tensor, std::int64_t group) {
  const auto [batch, seqlen, heads, dim] = tensor.extents;
  Tensor repeated({batch, seqlen, heads * group, dim});
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t s = 0; s < seqlen; ++s)
      for (std::int64_t h = 0; h < heads * group; ++h)
        std::copy_n(tensor.values.begin() + tensor.index(b, s, h / group, 0), dim,
                    repeated.values.begin() + repeated.index(b, s, h, 0));
  return repeated;
}

void see_all(Worst& worst, const char* channel, std::int64_t first_member, const Tensor& value, const Tensor& expected,
             const Tensor* bound, const Tensor* other_bound) {
  const auto& e = value.extents;
  std::size_t at = 0;
  for (std::int64_t a = 0; a < e[0]; ++a)
    for (std::int64_t b = 0; b < e[1]; ++b)
      for (std::int64_t c = 0; c < e[2]; ++c)
        for (std::int64_t d = 0; d < e[3]; ++d, ++at)
          worst.see(channel, {first_member + a, b, c, d}, value.values[at], expected.values[at],
                    bound ? bound->values[at] + other_bound->values[at] : 0);
}

// Holds the kernel's answer to the variation against its answer to members [first, first + batch of the variation) of
// the case. Budgets of equal inputs under equal numerics are equal and computed once.
Verdict same_answer(Trial& trial, const char* rule, const Case& variation, const Inputs& inputs, bool bitwise,
                    std::int64_t first = 0) {
  if (trial.kernel().unsupported(variation)) return {};
  const ForwardRun run = trial.run(variation, inputs);
  for (const Outputs* outputs : {&run.outputs, &trial.run().outputs})
    if (auto flaw = memory_flaw(*outputs)) return *flaw;
  const Numerics numerics = trial.kernel().numerics(variation);
  Worst worst(bitwise ? std::string(rule) + ", bit for bit" : rule, numerics);
  const std::int64_t count = variation.problem.batch;
  const Outputs& own = trial.run().outputs;
  if (bitwise) {
    see_all(worst, "o", first, run.outputs.o, members(own.o, first, count), nullptr, nullptr);
    if (own.lse) see_all(worst, "lse", first, *run.outputs.lse, members(*own.lse, first, count), nullptr, nullptr);
    return worst.verdict();
  }
  const Truth& truth = trial.truth();
  const Tensor o_bound = members(truth.o_bound, first, count), lse_bound = members(truth.lse_bound, first, count);
  const bool same_budget = numerics == truth.numerics;
  const Truth other = same_budget ? Truth{} : trial.truth_of(variation, inputs);
  see_all(worst, "o", first, run.outputs.o, members(own.o, first, count), &o_bound,
          same_budget ? &o_bound : &other.o_bound);
  if (own.lse)
    see_all(worst, "lse", first, *run.outputs.lse, members(*own.lse, first, count), &lse_bound,
            same_budget ? &lse_bound : &other.lse_bound);
  return worst.verdict();
}

// Keys are exchanged only if exactly the same rows see them: within a class, the first goes where the last was, and so
// on. Returns where key j of batch entry b comes from.
std::vector<std::int64_t> reverse_within_classes(const Problem& p, std::int64_t b) {
  std::map<std::vector<bool>, std::vector<std::int64_t>> classes;
  for (std::int64_t j = 0; j < p.seqlen_k; ++j) {
    std::vector<bool> rows(static_cast<std::size_t>(p.seqlen_q));
    for (std::int64_t i = 0; i < p.seqlen_q; ++i) rows[static_cast<std::size_t>(i)] = attends(p, b, i, j);
    classes[rows].push_back(j);
  }
  std::vector<std::int64_t> from(static_cast<std::size_t>(p.seqlen_k));
  for (const auto& [rows, keys] : classes)
    for (std::size_t n = 0; n < keys.size(); ++n) from[static_cast<std::size_t>(keys[n])] = keys[keys.size() - 1 - n];
  return from;
}

Tensor permuted(const Tensor& tensor, std::int64_t b, const std::vector<std::int64_t>& from, Tensor into) {
  const std::int64_t row = tensor.extents[2] * tensor.extents[3];
  for (std::int64_t j = 0; j < tensor.extents[1]; ++j)
    std::copy_n(tensor.values.begin() + tensor.index(b, from[static_cast<std::size_t>(j)], 0, 0), row,
                into.values.begin() + into.index(b, j, 0, 0));
  return into;
}

}  // namespace

Verdict gqa(Trial& trial) {
  Case variation = trial.the_case();
  const std::int64_t group = variation.problem.nheads / variation.problem.nheads_k;
  variation.problem.nheads_k = variation.problem.nheads;
  const Inputs& own = trial.inputs();
  return same_answer(trial, "GQA = MHA with repeated heads", variation,
                     {own.q, repeat_heads(own.k, group), repeat_heads(own.v, group)},
                     trial.kernel().capability().bitwise_gqa);
}

// The last member, whose offset is the largest, and the first one.
Verdict batch(Trial& trial) {
  Case variation = trial.the_case();
  const std::int64_t last = variation.problem.batch - 1;
  variation.problem.batch = 1;
  const Inputs& own = trial.inputs();
  Verdict verdict;
  for (const std::int64_t b : {last, std::int64_t{0}}) {
    Verdict one = same_answer(trial, "a batch = its members", variation,
                              {members(own.q, b, 1), members(own.k, b, 1), members(own.v, b, 1)},
                              trial.kernel().capability().bitwise_batch, b);
    if (one.status != Status::passed) return one;
    if (verdict.rule.empty() || one.error_over_budget > verdict.error_over_budget) verdict = one;
  }
  return verdict;
}

Verdict key_permutation(Trial& trial) {
  const Problem& p = trial.problem();
  Inputs inputs = trial.inputs();
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::vector<std::int64_t> from = reverse_within_classes(p, b);
    inputs.k = permuted(trial.inputs().k, b, from, std::move(inputs.k));
    inputs.v = permuted(trial.inputs().v, b, from, std::move(inputs.v));
  }
  return same_answer(trial, "keys and values permuted together", trial.the_case(), inputs, false);
}

Verdict layout(Trial& trial) {
  Case variation = trial.the_case();
  if (variation.layout == Layout{}) {
    variation.layout.order = Layout::Order::bhsd;
    variation.layout.row_gap = 8;
    variation.layout.seq_gap = 3;
  } else {
    variation.layout = Layout{};
  }
  return same_answer(trial, "the same values in another layout", variation, trial.inputs(),
                     trial.kernel().capability().bitwise_layout);
}

}  // namespace attest
