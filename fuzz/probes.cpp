// Inputs whose answer follows from attends() alone. Notation as in docs/numerics.md: N keys seen by a row in T tiles,
// u32 = 2^-24.
#include <algorithm>
#include <cmath>
#include <limits>

#include "attest/fuzz/properties.h"
#include "attest/reference/attends.h"
#include "attest/reference/sum_errors.h"
#include "property_parts.h"

namespace attest {
namespace {

Case with_inputs(const Case& c, Distribution inputs) {
  Case variation = c;
  variation.inputs = inputs;
  return variation;
}

// The factor on V, and so on O.
double v_factor(const Problem& p, const Inputs& inputs, std::int64_t b, std::int64_t h) {
  return inputs.v_descale.values.empty() ? 1 : inputs.v_descale.at(b, h / (p.nheads / p.nheads_k), 0, 0);
}

}  // namespace

double split_error(const Numerics& n, const Case& c, std::int64_t keys, double lse) {
  if (c.num_splits == 1) return 0;
  const double logarithm = std::exp2(-21.41) + 9 * u32 * std::log(static_cast<double>(std::max<std::int64_t>(1, keys)));
  return logarithm + 8 * u32 * (std::abs(lse) + 1) + n.eps_exp + static_cast<double>(c.num_splits) * u32;
}

// Every score is 0, so that every exponential is exp2(0), which is 1 exactly (ex2.approx too, by its table of special
// values), and the denominator is an integer below 2^24 whatever the order of summation. What is left is the logarithm:
// __logf's 2^-21.41 absolute on [0.5, 2] and 3 ulp elsewhere, one rounding for the base and one for the result. Splits
// have a logarithm each, and one of the sum of their weights, which is between 1 and their number.
Verdict zero_q(Trial& trial) {
  const Case variation = with_inputs(trial.the_case(), Distribution::zero_q);
  const ForwardRun run = trial.run(variation, make_inputs(variation));
  if (auto flaw = memory_flaw(run.outputs)) return *flaw;
  Worst worst("LSE = ln(visible keys)", trial.kernel().numerics(variation));
  if (!run.outputs.lse) return worst.verdict();
  const Problem& p = variation.problem;
  const std::vector<std::int64_t> visible = visible_keys(p);
  const Numerics n = trial.kernel().numerics(variation);
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.nheads; ++h)
      for (std::int64_t i = 0; i < queries_of(p, b); ++i) {
        const std::int64_t keys = visible[static_cast<std::size_t>(b * p.seqlen_q + i)];
        const double expected = std::log(static_cast<double>(keys));
        const double logarithm = (keys <= 2 || variation.num_splits > 1 ? std::exp2(-21.41) : 0) + 9 * u32 * expected;
        const double bound = keys > 0 ? logarithm + split_error(n, variation, keys, expected) : 0;
        worst.see("lse", {b, h, i, 0}, run.outputs.lse->at(b, h, i, 0), expected, bound);
      }
  return worst.verdict();
}

// O = sum fl(p) / sum p. With V = 1 the error of the scores cancels (the term with |v - O|); left are the rounding of
// P, its subnormals, and both sums; between splits, their weights.
Verdict one_v(Trial& trial) {
  const Case variation = with_inputs(trial.the_case(), Distribution::one_v);
  const Inputs inputs = make_inputs(variation);
  const ForwardRun run = trial.run(variation, inputs);
  if (auto flaw = memory_flaw(run.outputs)) return *flaw;
  const Numerics n = trial.kernel().numerics(variation);
  Worst worst("O = 1", n);
  const Problem& p = variation.problem;
  if (variation.num_splits > 1 && !run.outputs.lse) return worst.verdict();  // how large its weights' errors are
  const std::vector<std::int64_t> visible = visible_keys(p);
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t i = 0; i < queries_of(p, b); ++i) {
      const std::int64_t keys = visible[static_cast<std::size_t>(b * p.seqlen_q + i)];
      const auto count = static_cast<double>(keys);
      // A prefix beside a window is a second interval, and every split has a maximum of its own.
      const int breaks = (p.prefix > 0) + n.num_splits - 1;
      const auto [T, g_pv, g_l] = sum_errors(n, keys, breaks);
      for (std::int64_t h = 0; h < p.nheads; ++h) {
        const double weights =
            variation.num_splits > 1 ? 2 * split_error(n, variation, keys, run.outputs.lse->at(b, h, i, 0)) : 0;
        const double before = (n.u_P + g_pv) * (1 + 2 * g_l) + n.a_P * count + g_l + 7 * u32 + weights;
        const double factor = v_factor(p, inputs, b, h);
        const double bound = keys > 0 ? factor * (before + n.u_out * (1 + before)) + n.floor_out : 0;
        for (std::int64_t d = 0; d < p.headdim_v; ++d)
          worst.see("o", {b, i, h, d}, run.outputs.o.at(b, i, h, d), keys > 0 ? factor : 0, bound);
      }
    }
  return worst.verdict();
}

// With Q = 0 as well, O[c] = (visible keys j = c mod headdim_v) / (visible keys): integers below 2^24 up to the
// division (6 u32 where it is approximate), the factor on V and the rounding to the output's dtype. Where P is divided
// first, each is a rounded 1 / (visible keys), and their sum rounds too.
Verdict one_hot_v(Trial& trial) {
  const Case variation = with_inputs(trial.the_case(), Distribution::one_hot_v);
  Inputs inputs = make_inputs(variation);
  std::fill(inputs.q.values.begin(), inputs.q.values.end(), 0.0);
  const ForwardRun run = trial.run(variation, inputs);
  if (auto flaw = memory_flaw(run.outputs)) return *flaw;
  const Numerics n = trial.kernel().numerics(variation);
  Worst worst("O counts visible keys", n);
  const Problem& p = variation.problem;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(p.headdim_v));
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t i = 0; i < queries_of(p, b); ++i) {
      std::fill(counts.begin(), counts.end(), 0);
      std::int64_t keys = 0;
      for (std::int64_t j = 0; j < p.seqlen_k; ++j)
        if (attends(p, b, i, j)) ++counts[static_cast<std::size_t>(j % p.headdim_v)], ++keys;
      const double all = static_cast<double>(keys);
      const double weights = 2 * split_error(n, variation, keys, std::log(std::max(1.0, all))) +
                             (n.normalises_first ? equal_weight_error(n, keys) + sum_errors(n, keys).g_pv : 0);
      for (std::int64_t h = 0; h < p.nheads; ++h)
        for (std::int64_t d = 0; d < p.headdim_v; ++d) {
          const auto count = static_cast<double>(counts[static_cast<std::size_t>(d)]);
          const double expected = keys > 0 ? v_factor(p, inputs, b, h) * count / all : 0;
          const double bound = expected == 0 ? 0 : expected * (n.u_out + 8 * u32 + weights) + n.floor_out;
          worst.see("o", {b, i, h, d}, run.outputs.o.at(b, i, h, d), expected, bound);
        }
    }
  return worst.verdict();
}

// The last components are q = 1 with k = 0, and then with k = a power of two that every dtype has: every score moves by
// the same number, about 100 where the scale allows it, without a rounding of the inputs.
Verdict shift(Trial& trial) {
  const Case& c = trial.the_case();
  const Problem& p = c.problem;
  const double scale = static_cast<float>(effective_softmax_scale(p));  // as kernels take it
  const double largest = p.dtype == Dtype::fp8_e4m3 ? 8 : 15;
  const double power = std::exp2(std::min(largest, std::round(std::log2(100 / std::abs(scale)))));
  Inputs inputs = make_inputs(c);
  const auto set_last = [&](Tensor& tensor, double value) {
    const std::int64_t dim = tensor.extents[3];
    for (std::size_t i = static_cast<std::size_t>(dim) - 1; i < tensor.values.size();
         i += static_cast<std::size_t>(dim))
      tensor.values[i] = value;
  };
  set_last(inputs.q, 1);
  set_last(inputs.k, 0);
  const Truth truth = trial.truth_of(c, inputs);
  const ForwardRun before = trial.run(c, inputs);
  set_last(inputs.k, power);
  const Truth shifted_truth = trial.truth_of(c, inputs);
  const ForwardRun after = trial.run(c, inputs);
  for (const ForwardRun* run : {&before, &after})
    if (auto flaw = memory_flaw(run->outputs)) return *flaw;

  Worst worst("shift", truth.numerics);
  const Tensor& o = before.outputs.o;
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t i = 0; i < queries_of(p, b); ++i)
      for (std::int64_t h = 0; h < p.nheads; ++h) {
        const std::int64_t h_k = h / (p.nheads / p.nheads_k);
        const double descale =
            is_fp8(p.dtype) ? inputs.q_descale.at(b, h_k, 0, 0) * inputs.k_descale.at(b, h_k, 0, 0) : 1;
        for (std::int64_t d = 0; d < p.headdim_v; ++d)
          worst.see("o", {b, i, h, d}, after.outputs.o.at(b, i, h, d), o.at(b, i, h, d),
                    truth.o_bound.at(b, i, h, d) + shifted_truth.o_bound.at(b, i, h, d));
        if (after.outputs.lse)
          worst.see("lse", {b, h, i, 0}, after.outputs.lse->at(b, h, i, 0),
                    before.outputs.lse->at(b, h, i, 0) + scale * descale * power,
                    truth.lse_bound.at(b, h, i, 0) + shifted_truth.lse_bound.at(b, h, i, 0));
      }
  return worst.verdict();
}

}  // namespace attest
