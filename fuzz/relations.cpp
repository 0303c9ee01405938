// Variations of a case that must give the case's own answer.
#include <algorithm>
#include <array>
#include <map>

#include "attest/fuzz/properties.h"
#include "attest/reference/attends.h"
#include "property_parts.h"
#include "variations.h"

namespace attest {
namespace {

// Every head of [.., heads, ..] `group` times; heads are the second extent of factors, the third of K and V.
Tensor repeat_heads(const Tensor& tensor, std::int64_t group, std::size_t axis) {
  if (tensor.extents == std::array<std::int64_t, 4>{}) return tensor;  // the case has none
  auto extents = tensor.extents;
  std::int64_t inner = 1;
  for (std::size_t n = axis + 1; n < extents.size(); ++n) inner *= extents[n];
  extents[axis] *= group;
  Tensor repeated(extents);
  auto to = repeated.values.begin();
  for (auto from = tensor.values.begin(); from != tensor.values.end() && inner > 0; from += inner)
    for (std::int64_t n = 0; n < group; ++n) to = std::copy_n(from, inner, to);
  return repeated;
}

// Whether batch entries share their scores' bias, so that what is done to its columns is done to all of them.
bool shares_bias(const Problem& p) { return p.bias == Bias::hqk || p.bias == Bias::qk; }

// Keys are exchanged only if exactly the same rows see them: within a class, the first goes where the last was, and so
// on. Returns where key j of batch entries [first, last) comes from.
std::vector<std::int64_t> reverse_within_classes(const Problem& p, std::int64_t first, std::int64_t last) {
  std::map<std::vector<bool>, std::vector<std::int64_t>> classes;
  for (std::int64_t j = 0; j < p.seqlen_k; ++j) {
    std::vector<bool> rows;
    bool exists = true;
    for (std::int64_t b = first; b < last; ++b) {
      exists &= j < keys_of(p, b);
      for (std::int64_t i = 0; i < queries_of(p, b); ++i) rows.push_back(attends(p, b, i, j));
    }
    rows.push_back(exists);  // a key past the end of one batch entry stays where it is
    if (!exists)
      for (std::int64_t n = j; n > 0; n /= 2) rows.push_back(n % 2 != 0);
    classes[rows].push_back(j);
  }
  std::vector<std::int64_t> from(static_cast<std::size_t>(p.seqlen_k));
  for (const auto& [rows, keys] : classes)
    for (std::size_t n = 0; n < keys.size(); ++n) from[static_cast<std::size_t>(keys[n])] = keys[keys.size() - 1 - n];
  return from;
}

void permute_rows(const Tensor& tensor, std::int64_t b, const std::vector<std::int64_t>& from, Tensor& into) {
  const std::int64_t row = tensor.extents[2] * tensor.extents[3];
  for (std::int64_t j = 0; j < tensor.extents[1]; ++j)
    std::copy_n(tensor.values.begin() + tensor.index(b, from[static_cast<std::size_t>(j)], 0, 0), row,
                into.values.begin() + into.index(b, j, 0, 0));
}

void permute_columns(const Tensor& bias, std::int64_t b, const std::vector<std::int64_t>& from, Tensor& into) {
  for (std::int64_t h = 0; h < bias.extents[1]; ++h)
    for (std::int64_t i = 0; i < bias.extents[2]; ++i)
      for (std::int64_t j = 0; j < bias.extents[3]; ++j)
        into.at(b, h, i, j) = bias.at(b, h, i, from[static_cast<std::size_t>(j)]);
}

}  // namespace

Verdict gqa(Trial& trial) {
  Variation repeated{trial.the_case(), trial.inputs()};
  const std::int64_t group = repeated.c.problem.nheads / repeated.c.problem.nheads_k;
  repeated.c.problem.nheads_k = repeated.c.problem.nheads;
  for (Tensor Inputs::*tensor : {&Inputs::k, &Inputs::v})
    repeated.inputs.*tensor = repeat_heads(repeated.inputs.*tensor, group, 2);
  for (Tensor Inputs::*tensor : {&Inputs::q_descale, &Inputs::k_descale, &Inputs::v_descale})
    repeated.inputs.*tensor = repeat_heads(repeated.inputs.*tensor, group, 1);
  Relation relation{"GQA = MHA with repeated heads"};
  relation.bitwise = trial.kernel().capability().bitwise_gqa;
  relation.gradients = Relation::Gradients::all;
  relation.group = group;
  return same_answer(trial, relation, repeated);
}

// The last member with queries, whose offset is the largest, and the first one.
Verdict batch(Trial& trial) {
  const Problem& p = trial.problem();
  std::int64_t last = p.batch - 1, first = 0;
  while (last > 0 && queries_of(p, last) == 0) --last;
  while (first < last && queries_of(p, first) == 0) ++first;
  Relation relation{"a batch = its members"};
  relation.bitwise = trial.kernel().capability().bitwise_batch;
  relation.gradients = Relation::Gradients::of_members;
  Verdict verdict;
  for (const std::int64_t b : {last, first}) {
    relation.place.first_member = b;
    Verdict one = same_answer(trial, relation, member_alone(trial.the_case(), trial.inputs(), b));
    if (one.status != Status::passed) return one;
    if (verdict.rule.empty() || one.error_over_budget > verdict.error_over_budget) verdict = one;
  }
  return verdict;
}

Verdict key_permutation(Trial& trial) {
  const Problem& p = trial.problem();
  const Inputs& own = trial.inputs();
  Variation permuted{trial.the_case(), own};
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const bool all = shares_bias(p);
    const std::vector<std::int64_t> from = reverse_within_classes(p, all ? 0 : b, all ? p.batch : b + 1);
    permute_rows(own.k, b, from, permuted.inputs.k);
    permute_rows(own.v, b, from, permuted.inputs.v);
    if (p.bias != Bias::none && (!all || b == 0)) permute_columns(own.bias, b, from, permuted.inputs.bias);
  }
  return same_answer(trial, {"keys and values permuted together"}, permuted);
}

Verdict layout(Trial& trial) {
  Variation variation{trial.the_case(), trial.inputs()};
  Layout& layout = variation.c.layout;
  if (layout == Layout{}) {
    layout.order = Layout::Order::bhsd;
    layout.row_gap = 8;
    layout.seq_gap = 3;
  } else {
    layout = Layout{};
  }
  Relation relation{"the same values in another layout"};
  relation.bitwise = trial.kernel().capability().bitwise_layout;
  relation.gradients = Relation::Gradients::all;
  return same_answer(trial, relation, variation);
}

// Keys in pages, packed, or padded with their numbers given; queries packed where all have the same length.
Verdict packing(Trial& trial) {
  const Case& c = trial.the_case();
  Variation variation{c, trial.inputs()};
  Problem& p = variation.c.problem;
  Layout& layout = variation.c.layout;
  const std::vector<std::int64_t> all_queries(static_cast<std::size_t>(p.batch), p.seqlen_q);
  if (p.varlen_q.empty())
    p.varlen_q = all_queries;
  else if (p.varlen_q == all_queries)
    p.varlen_q.clear();
  if (layout.page_size > 0) {  // contiguous
    layout.page_size = layout.num_pages = 0;
    layout.page_table.clear();
  } else {
    if (!p.varlen_k.empty() && p.seqused_k.empty()) p.seqused_k = p.varlen_k;
    p.varlen_k.clear();
    constexpr std::int64_t sizes[] = {0, 16, 5, 64};
    layout.page_size = sizes[c.seed % 4];
    layout.num_pages = 0;
  }
  Relation relation{"the same values packed, padded or in pages"};
  relation.bitwise = trial.kernel().capability().bitwise_layout;
  relation.gradients = Relation::Gradients::all;
  return same_answer(trial, relation, variation);
}

}  // namespace attest
