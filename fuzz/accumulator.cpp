// Sees an accumulator of O that keeps fewer bits than its kernel declares, in outputs of any precision: large numbers
// cancel and leave the small ones that were added beside them. Q = 0, so every P is exactly 1, or the same number near
// 1 / (visible keys) where it is divided by its sum first.
#include <algorithm>
#include <cmath>

#include "attest/fuzz/properties.h"
#include "attest/reference/attends.h"
#include "attest/reference/sum_errors.h"
#include "property_parts.h"

namespace attest {
namespace {

// Every 16th key adds the unit to a column. A tile of 256 then adds 16 of them.
constexpr std::int64_t keys_per_unit = 16;

// What a column holds beside its units: +large at one key, -large at another.
struct Pair {
  std::int64_t plus, minus;
};

// Half of the columns cancel what the first key brought, at keys spread over the sequence: rows under a causal mask see
// some. The others have their pairs anywhere, 2, 4, 8, ... keys apart, for windows.
Pair pair_of(std::int64_t column, std::int64_t columns, std::int64_t keys) {
  if (column % 2 == 0) return {0, std::min(keys - 1, 1 + (column + 1) * (keys - 1) / columns)};
  std::int64_t distance = 2;
  for (std::int64_t n = column / 2; n > 0 && 4 * distance < keys; --n) distance *= 2;
  const std::int64_t first = (column * 2654435761) % std::max<std::int64_t>(1, keys - distance);
  return {first, std::min(keys - 1, first + distance)};
}

// Whether P's digits leave the accumulator none for sums of it: fp32's after a division.
bool sums_round(const Numerics& n) { return n.normalises_first && n.u_P == 0; }

// Large over unit: all sums of a column are whole units below half of what the declared accumulator counts exactly, in
// whatever order and however it rounds. A P that was divided by its sum takes its own digits of that; where they would
// take all, half of the accumulator's digits are left to its own errors.
double large_over_unit(const Numerics& n, std::int64_t keys) {
  const double digits = 0.5 / n.u_acc;
  const double exact = sums_round(n) ? std::sqrt(digits) : n.normalises_first ? digits * n.u_P : digits;
  const std::int64_t whole_units = keys / keys_per_unit + 1;
  const auto units = static_cast<double>(whole_units);
  double large = 0x1p20;
  while (large >= 2 && 2 * large + units > exact) large /= 2;
  return large;
}

constexpr double unit = 0x1p-6;

}  // namespace

bool has_accumulator(const Case& c) {
  return has_plain_scores(c.problem) && c.num_splits == 1 && c.problem.seqlen_q > 0 && c.problem.seqlen_k > 2;
}

Verdict accumulator(Trial& trial) {
  Case variation = trial.the_case();
  variation.inputs = Distribution::zero_q;
  const Problem& p = variation.problem;
  const Numerics n = trial.kernel().numerics(variation);
  const double large = large_over_unit(n, p.seqlen_k);
  Worst worst("O keeps what is added beside large numbers", n);
  if (large < 2) return worst.verdict();

  Inputs inputs = make_inputs(variation);
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t j = 0; j < p.seqlen_k; ++j)
      for (std::int64_t h = 0; h < p.nheads_k; ++h)
        for (std::int64_t d = 0; d < p.headdim_v; ++d) {
          const Pair pair = pair_of(d, p.headdim_v, p.seqlen_k);
          inputs.v.at(b, j, h, d) = j == pair.plus                           ? large * unit
                                    : j == pair.minus                        ? -large * unit
                                    : j % keys_per_unit == d % keys_per_unit ? unit
                                                                             : 0;
        }
  const ForwardRun run = trial.run(variation, inputs);
  if (auto flaw = memory_flaw(run.outputs)) return *flaw;

  std::vector<bool> sees(static_cast<std::size_t>(p.seqlen_k));
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t i = 0; i < queries_of(p, b); ++i) {
      std::array<std::int64_t, keys_per_unit> units{};
      std::int64_t keys = 0;
      for (std::int64_t j = 0; j < p.seqlen_k; ++j) {
        const bool visible = attends(p, b, i, j);
        sees[static_cast<std::size_t>(j)] = visible;
        if (visible) ++units[static_cast<std::size_t>(j % keys_per_unit)], ++keys;
      }
      for (std::int64_t d = 0; d < p.headdim_v; ++d) {
        const Pair pair = pair_of(d, p.headdim_v, p.seqlen_k);
        double sum = static_cast<double>(units[static_cast<std::size_t>(d % keys_per_unit)]), magnitude = sum;
        if (sees[static_cast<std::size_t>(pair.plus)]) {
          sum += large - (pair.plus % keys_per_unit == d % keys_per_unit ? 1 : 0);
          magnitude += large;
        }
        if (sees[static_cast<std::size_t>(pair.minus)] && pair.minus != pair.plus) {
          sum -= large + (pair.minus % keys_per_unit == d % keys_per_unit ? 1 : 0);
          magnitude += large;
        }
        const double expected = keys > 0 ? sum * unit / static_cast<double>(keys) : 0;
        // Sums are exact, as is the denominator; what rounds is the division, P after it, and O itself.
        double before = std::abs(expected) * (7 * u32 + equal_weight_error(n, keys));
        if (sums_round(n) && keys > 0)
          before += sum_errors(n, keys).g_pv * magnitude * unit / static_cast<double>(keys);
        const double bound = before == 0 ? 0 : before + n.u_out * (std::abs(expected) + before) + n.floor_out;
        for (std::int64_t h = 0; h < p.nheads; ++h)
          worst.see("o", {b, i, h, d}, run.outputs.o.at(b, i, h, d), expected, bound);
      }
    }
  return worst.verdict();
}

}  // namespace attest
