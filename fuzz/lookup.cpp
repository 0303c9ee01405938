// Every row looks up one of its visible keys: keys are code words of +-1, and a query is the word of one key, so large
// that the weights of all others underflow to 0. O is that key's V whatever the number of keys, and LSE its score: one
// wrong row, two exchanged V, a missing key, a scale off by 10^-6 cannot hide among thousands.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "attest/fuzz/properties.h"
#include "attest/problem/splitmix64.h"
#include "attest/reference/attends.h"
#include "property_parts.h"

namespace attest {
namespace {

// exp(-110) is below half of the smallest fp32 subnormal, 2^-150.
constexpr double underflow = 110;
constexpr double largest_score = 4096;
// The first component has 8 significant bits, so that a score does not fit in 11: 193 / 128.
constexpr double first_component = 1.5078125;
constexpr std::int64_t most_launches = 8;

// Up to 256 signs; those past headdim are 0.
struct Word {
  std::array<std::uint64_t, 4> bits{};

  double component(std::int64_t d) const {
    const double sign = bits[static_cast<std::size_t>(d / 64)] >> (d % 64) & 1 ? -1 : 1;
    return d == 0 ? sign * first_component : sign;
  }
};

Word word_of(std::uint64_t seed, std::int64_t key, std::int64_t headdim) {
  Word word;
  for (std::int64_t n = 0; n * 64 < headdim; ++n) {
    const std::int64_t left = headdim - n * 64;
    const std::uint64_t mask = left >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1;
    word.bits[static_cast<std::size_t>(n)] =
        mix(mix(seed + static_cast<std::uint64_t>(n)) ^ static_cast<std::uint64_t>(key)) & mask;
  }
  return word;
}

// By how much a key's product with its own word, headdim, exceeds that with another's: 2 a sign, more for the first.
double distance(const Word& a, const Word& b) {
  int signs = 0;
  for (std::size_t n = 0; n < a.bits.size(); ++n) signs += std::popcount(a.bits[n] ^ b.bits[n]);
  const bool first = (a.bits[0] ^ b.bits[0]) & 1;
  return 2.0 * signs + (first ? 2 * (first_component - 1) : 0);
}

struct Row {
  std::int64_t key = -1;  // which it looks up
  double gap = 0;         // to the next best of its visible keys
};

}  // namespace

bool can_look_up(const Case& c) {
  const Problem& p = c.problem;
  const double scale = std::abs(effective_softmax_scale(p));
  return has_plain_scores(p) && p.seqlen_q > 0 && p.seqlen_k > 0 && scale >= 0x1p-10 && scale <= 16;
}

Verdict lookup(Trial& trial) {
  const Case& c = trial.the_case();
  const Problem& p = c.problem;
  const Numerics n = trial.kernel().numerics(c);
  Worst worst("a row looks up one key", n);
  const double scale = static_cast<float>(effective_softmax_scale(p));  // as kernels take it
  std::vector<Word> words;
  for (std::int64_t j = 0; j < p.seqlen_k; ++j) words.push_back(word_of(c.seed, j, p.headdim));

  Case variation = c;
  variation.inputs = Distribution::normal;
  Inputs inputs = make_inputs(variation);
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t j = 0; j < p.seqlen_k; ++j)
      for (std::int64_t h = 0; h < p.nheads_k; ++h)
        for (std::int64_t d = 0; d < p.headdim; ++d)
          inputs.k.at(b, j, h, d) = words[static_cast<std::size_t>(j)].component(d);

  // Rows take keys spread over what they see; launches continue where the last one ended.
  const std::int64_t num_rows = p.batch * p.seqlen_q * p.nheads;
  const std::int64_t launches = std::clamp<std::int64_t>((p.seqlen_k + num_rows - 1) / num_rows, 1, most_launches);
  std::vector<Row> rows(static_cast<std::size_t>(num_rows));
  std::vector<std::int64_t> visible;
  for (std::int64_t launch = 0; launch < launches; ++launch) {
    std::size_t at = 0;
    double smallest_gap = std::numeric_limits<double>::infinity();
    for (std::int64_t b = 0; b < p.batch; ++b)
      for (std::int64_t i = 0; i < p.seqlen_q; ++i) {
        visible.clear();
        for (std::int64_t j = 0; j < p.seqlen_k; ++j)
          if (i < queries_of(p, b) && attends(p, b, i, j)) visible.push_back(j);
        for (std::int64_t h = 0; h < p.nheads; ++h, ++at) {
          Row& row = rows[at] = {};
          if (visible.empty()) continue;
          const auto turn = static_cast<double>(launch * num_rows + static_cast<std::int64_t>(at));
          const double place = std::fmod(turn * 0.6180339887498949, 1.0);  // the golden ratio spreads evenly
          row.key = visible[static_cast<std::size_t>(place * static_cast<double>(visible.size()))];
          row.gap = std::numeric_limits<double>::infinity();
          const Word& own = words[static_cast<std::size_t>(row.key)];
          for (const std::int64_t j : visible)
            if (j != row.key) row.gap = std::min(row.gap, distance(own, words[static_cast<std::size_t>(j)]));
          if (row.gap > 0) smallest_gap = std::min(smallest_gap, row.gap);
        }
      }
    // As large as the closest words ask for, and no score beyond what keeps P's error small; a power of two.
    const double wanted =
        (underflow + 5) / (std::abs(scale) * std::min(smallest_gap, 2.0 * static_cast<double>(p.headdim)));
    const double most = largest_score / (std::abs(scale) * static_cast<double>(p.headdim + 1));
    const double query = std::exp2(std::min({std::ceil(std::log2(wanted)), std::floor(std::log2(most)), 15.0}));

    at = 0;
    for (std::int64_t b = 0; b < p.batch; ++b)
      for (std::int64_t i = 0; i < p.seqlen_q; ++i)
        for (std::int64_t h = 0; h < p.nheads; ++h, ++at)
          for (std::int64_t d = 0; d < p.headdim; ++d) {
            const double sign =
                rows[at].key >= 0 && words[static_cast<std::size_t>(rows[at].key)].component(d) < 0 ? -1 : 1;
            inputs.q.at(b, i, h, d) = std::copysign(query, scale * sign);
          }
    const ForwardRun run = trial.run(variation, inputs);
    if (auto flaw = memory_flaw(run.outputs)) return *flaw;

    // All scores are sums of few bits, exact in any order. l is the weight of one key.
    const double score = std::abs(scale) * query * (static_cast<double>(p.headdim) - 1 + first_component);
    const double tau = n.u_S * score + 4 * u32 * score + n.eps_exp;
    // Splits without the key weigh nothing; that of the one with it hangs on two roundings of its LSE.
    const double division = 8 * u32 + (c.num_splits > 1 ? 4 * u32 * score : 0);
    const bool exact = n.max_P == 1 && n.u_P > 0 && tau + division < std::min(n.u_P, n.u_out) / 2;
    at = 0;
    for (std::int64_t b = 0; b < p.batch; ++b)
      for (std::int64_t i = 0; i < p.seqlen_q; ++i)
        for (std::int64_t h = 0; h < p.nheads; ++h, ++at) {
          const Row& row = rows[at];
          if (row.key < 0 || std::abs(scale) * query * row.gap < underflow + 2 * tau) continue;
          for (std::int64_t d = 0; d < p.headdim_v; ++d) {
            const double v = inputs.v.at(b, row.key, h / (p.nheads / p.nheads_k), d);
            const double bound =
                exact ? 0
                      : std::abs(v) * (n.u_P + 2 * tau + division + n.u_out) * 1.01 + n.floor_out + n.a_P * std::abs(v);
            worst.see("o", {b, i, h, d}, run.outputs.o.at(b, i, h, d), v, bound);
          }
          if (run.outputs.lse)
            worst.see("lse", {b, h, i, 0}, run.outputs.lse->at(b, h, i, 0), score,
                      tau + 0x1.82p-22 + division + u32 * (n.lse_max_roundings + 2) * (score + std::log(n.max_P)));
        }
  }
  return worst.verdict();
}

}  // namespace attest
