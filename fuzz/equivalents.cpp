// The same question put in other words, other splits, other factors, and twice.
#include <algorithm>
#include <cmath>

#include "attest/fuzz/properties.h"
#include "attest/reference/attends.h"
#include "property_parts.h"
#include "variations.h"

namespace attest {
namespace {

bool has_window(const Problem& p) { return p.window_left >= 0 || p.window_right >= 0; }
bool is_masked(const Problem& p) { return p.causal != Causal::none || has_window(p); }
// Whether anything hangs on where the diagonal runs.
bool has_diagonal(const Problem& p) { return is_masked(p) || p.alibi; }

std::int64_t longest(const Problem& p) { return std::max(p.seqlen_q, p.seqlen_k); }

// Another way to say what a case says. `applies` to the case; `rewrite` what it is handed.
struct Rewriting {
  const char* rule;
  bool (*applies)(const Case&);
  void (*rewrite)(Variation&);
};

constexpr Rewriting rewritings[] = {
    {"causal = window_right 0", [](const Case& c) { return c.problem.causal == Causal::bottom_right; },
     [](Variation& v) {
       v.c.problem.causal = Causal::none;
       v.c.problem.window_right = 0;
     }},
    {"bottom-right = top-left where queries and keys are as many",
     [](const Case& c) {
       for (std::int64_t b = 0; b < c.problem.batch; ++b)
         if (queries_of(c.problem, b) != keys_of(c.problem, b)) return false;
       return c.problem.causal != Causal::none;
     },
     [](Variation& v) {
       Causal& causal = v.c.problem.causal;
       causal = causal == Causal::top_left ? Causal::bottom_right : Causal::top_left;
     }},
    {"a prefix of all keys = no mask",
     [](const Case& c) { return c.problem.prefix >= c.problem.seqlen_k && is_masked(c.problem) && !c.problem.alibi; },
     [](Variation& v) {
       Problem& p = v.c.problem;
       p.prefix = 0;
       p.causal = Causal::none;
       p.window_left = p.window_right = -1;
     }},
    {"a prefix where nothing is masked", [](const Case& c) { return !is_masked(c.problem) && c.problem.prefix == 0; },
     [](Variation& v) { v.c.problem.prefix = 1 + v.c.problem.seqlen_k / 2; }},
    {"a window as long as the sequences",
     [](const Case& c) { return c.problem.window_left < 0 && c.problem.causal != Causal::none; },
     [](Variation& v) { v.c.problem.window_left = 2 * longest(v.c.problem); }},
    {"one document", [](const Case& c) { return c.problem.documents.empty(); },
     [](Variation& v) { v.c.problem.documents = {longest(v.c.problem)}; }},
    {"empty documents between others", [](const Case& c) { return !c.problem.documents.empty(); },
     [](Variation& v) {
       auto& documents = v.c.problem.documents;
       documents.insert(documents.begin() + std::ssize(documents) / 2, 2, 0);
       documents.insert(documents.begin(), 0);
       documents.push_back(0);
     }},
    {"all keys used", [](const Case& c) { return c.problem.seqused_k.empty(); },
     [](Variation& v) {
       std::vector<std::int64_t> all;
       for (std::int64_t b = 0; b < v.c.problem.batch; ++b) all.push_back(keys_of(v.c.problem, b));
       v.c.problem.seqused_k = all;
     }},
};

// The bias of every shape as one of the largest.
void expand_bias(Variation& v) {
  Problem& p = v.c.problem;
  const Tensor shared = v.inputs.bias;
  p.bias = Bias::bhqk;
  Tensor& bias = v.inputs.bias = Tensor({p.batch, p.nheads, p.seqlen_q, p.seqlen_k});
  const std::int64_t scores = p.seqlen_q * p.seqlen_k;
  for (std::int64_t b = 0; b < p.batch && scores > 0; ++b)
    for (std::int64_t h = 0; h < p.nheads; ++h)
      std::copy_n(
          shared.values.begin() + shared.index(shared.extents[0] == 1 ? 0 : b, shared.extents[1] == 1 ? 0 : h, 0, 0),
          scores, bias.values.begin() + bias.index(b, h, 0, 0));
}

// Slopes that are powers of two, so that their products with distances are fp32 numbers.
Variation with_simple_slopes(Trial& trial) {
  Variation base{trial.the_case(), trial.inputs()};
  double slope = 1;
  for (double& value : base.inputs.alibi_slopes.values) value = slope = slope < 0x1p-6 ? 1 : slope / 2;
  return base;
}

void slopes_as_bias(Variation& v) {
  Problem& p = v.c.problem;
  p.alibi = false;
  p.bias = Bias::bhqk;
  Tensor& bias = v.inputs.bias = Tensor({p.batch, p.nheads, p.seqlen_q, p.seqlen_k});
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t off = p.causal == Causal::top_left ? 0 : keys_of(p, b) - queries_of(p, b);
    for (std::int64_t h = 0; h < p.nheads; ++h)
      for (std::int64_t i = 0; i < p.seqlen_q; ++i)
        for (std::int64_t j = 0; j < p.seqlen_k; ++j)
          bias.at(b, h, i, j) = -v.inputs.alibi_slopes.at(b, h, 0, 0) * static_cast<double>(std::abs(i + off - j));
  }
  v.inputs.alibi_slopes = {};
}

constexpr std::int64_t most_expanded = 1 << 20;  // elements of a bias

bool can_expand(const Problem& p) { return p.batch * p.nheads * p.seqlen_q * p.seqlen_k <= most_expanded; }
bool has_shared_bias(const Problem& p) { return p.bias != Bias::none && p.bias != Bias::bhqk && can_expand(p); }
bool has_slopes_for_a_bias(const Problem& p) { return p.alibi && p.bias == Bias::none && can_expand(p); }
// A bias may be so low that no sink is beyond it, and so is a score of -Inf.
bool has_droppable_sink(const Case& c) {
  const bool low = c.problem.bias != Bias::none && c.inputs == Distribution::large;
  return c.problem.sink && !low && c.inputs != Distribution::non_finite;
}

}  // namespace

bool can_rewrite(const Case& c) {
  if (c.problem.seqlen_q == 0) return false;
  return has_shared_bias(c.problem) || has_slopes_for_a_bias(c.problem) || has_droppable_sink(c) ||
         std::any_of(std::begin(rewritings), std::end(rewritings), [&](const Rewriting& r) { return r.applies(c); });
}

Verdict rewriting(Trial& trial) {
  const Case& c = trial.the_case();
  const Problem& p = c.problem;
  // What belongs to few cases comes first.
  if (has_slopes_for_a_bias(p) && c.seed % 2 == 0) {
    const Variation base = with_simple_slopes(trial);
    Variation other = base;
    slopes_as_bias(other);
    return same_answer(trial, {"ALiBi = a bias of its slopes times distances"}, base, other);
  }
  if (has_droppable_sink(c) && c.seed % 4 < 2) {
    Variation base{c, trial.inputs()}, other = base;
    std::fill(base.inputs.sink.values.begin(), base.inputs.sink.values.end(), -0x1p17);
    other.c.problem.sink = false;
    other.inputs.sink = {};
    Relation relation{"a sink far below every score = no sink"};
    relation.skip_empty = true;
    return same_answer(trial, relation, base, other);
  }
  if (has_shared_bias(p) && c.seed % 2 == 0) {
    Variation expanded{c, trial.inputs()};
    expand_bias(expanded);
    Relation relation{"a shared bias = copies of it"};
    relation.bitwise = trial.kernel().capability().bitwise_layout;
    return same_answer(trial, relation, expanded);
  }
  std::vector<const Rewriting*> applicable;
  for (const Rewriting& rewriting : rewritings)
    if (rewriting.applies(c)) applicable.push_back(&rewriting);
  if (applicable.empty()) return {};
  const Rewriting& chosen = *applicable[c.seed % applicable.size()];
  Variation other{c, trial.inputs()};
  chosen.rewrite(other);
  return same_answer(trial, {chosen.rule}, other);
}

bool has_documents(const Case& c) { return c.problem.seqlen_q > 0 && !c.problem.documents.empty(); }

// The document with the most scores, the last of such, of the first batch entry that has queries, and of the last,
// alone.
Verdict documents(Trial& trial) {
  const Problem& p = trial.problem();
  Verdict verdict;
  std::int64_t last = -1;
  for (std::int64_t b = 0; b < p.batch; ++b)
    if (queries_of(p, b) > 0) last = b;
  for (std::int64_t b = 0; b <= last; b = b < last ? last : last + 1) {
    std::int64_t begin = 0, at = 0, end = 0, most = 0;
    for (const std::int64_t length : p.documents) {
      const std::int64_t queries = std::min(at + length, queries_of(p, b)) - at;
      const std::int64_t keys = std::min(at + length, keys_of(p, b)) - at;
      const bool same_diagonal = p.causal == Causal::top_left || keys - queries == keys_of(p, b) - queries_of(p, b);
      if (queries > 0 && keys > 0 && queries * keys >= most && (same_diagonal || !has_diagonal(p)))
        begin = at, end = at + length, most = queries * keys;
      at += length;
    }
    if (most == 0) continue;
    Relation relation{"a document = its positions alone"};
    relation.place = {b, begin, 1};
    Verdict one = same_answer(trial, relation, positions_alone(trial.the_case(), trial.inputs(), b, begin, end));
    if (one.status != Status::passed) return one;
    if (verdict.rule.empty() || one.error_over_budget > verdict.error_over_budget) verdict = one;
  }
  return verdict;
}

Verdict splits(Trial& trial) {
  Variation other{trial.the_case(), trial.inputs()};
  other.c.num_splits = other.c.num_splits > 1 ? 1 : 3;
  return same_answer(trial, {"keys in splits = keys in one piece"}, other);
}

bool has_descale(const Case& c) { return is_fp8(c.problem.dtype) && c.problem.seqlen_q > 0; }

// Powers of two move between the factors without a rounding.
Verdict descale(Trial& trial) {
  Variation other{trial.the_case(), trial.inputs()};
  for (double& factor : other.inputs.q_descale.values) factor *= 4;
  for (double& factor : other.inputs.k_descale.values) factor *= 0.25;
  for (double& factor : other.inputs.v_descale.values) factor *= 0.5;
  Relation relation{"factors moved from k to q, half of v's"};
  relation.place.o_factor = 0.5;
  return same_answer(trial, relation, other);
}

// Calls A, B, A: what B leaves in a workspace, and what A remembers of itself, must not reach A's second answer.
Verdict repeat(Trial& trial) {
  const Case& c = trial.the_case();
  trial.run();
  Case other = c;
  const double scale = effective_softmax_scale(c.problem);
  other.problem.softmax_scale = scale == 0 ? 1 : std::abs(scale) > 1 ? scale / 3 : scale * 3;
  other.seed = c.seed + 1;
  if (!trial.kernel().unsupported(other)) trial.run(other, make_inputs(other), trial.has_gradients());
  Relation relation{"the same call again, another in between"};
  relation.bitwise = trial.kernel().capability().bitwise_repeat;
  relation.gradients = Relation::Gradients::all;
  return same_answer(trial, relation, Variation{c, trial.inputs()});
}

}  // namespace attest
