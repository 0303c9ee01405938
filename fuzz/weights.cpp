// Reads the last bit of P. Keys with scores 0 and P = 1 stand beside keys whose P is, nearly, a number of P's format
// that ends in binary 01; their V cancel it. A right kernel leaves O = 0, and so does one with more bits, nearly; one
// with a bit less leaves a spacing of P for every such key, all of one sign.
#include <algorithm>
#include <cmath>

#include "attest/fuzz/properties.h"
#include "attest/reference/attends.h"
#include "attest/reference/rounding.h"
#include "property_parts.h"

namespace attest {
namespace {

constexpr double tolerated = 0.125;  // of P's spacing: how far P itself is from the number that stands for it
// 4 keys: score 0, coded, score 0 with the V that cancels it, score 0. Whatever tile of two keys or more the coded one
// comes in, its maximum is 0, if the row sees both keys beside it.
constexpr std::int64_t group = 4;

struct Coded {
  double key, p;  // its only component, and the P it stands for
};

// Numbers k of the dtype with exp(score_per_unit * k) within `tolerated` of an m / 2^bits in (1/2, 1), m = 1 mod 4.
std::vector<Coded> coded_keys(Dtype dtype, double score_per_unit, double spacing) {
  std::vector<Coded> coded;
  const double largest = -std::log(0.5) / std::abs(score_per_unit);
  for (std::uint32_t bits = encode(dtype, largest / 32), last = encode(dtype, largest); bits < last; ++bits) {
    const double key = std::copysign(decode(dtype, bits), -score_per_unit);
    const double p = std::exp(score_per_unit * key) / spacing, whole = std::round(p);
    if (p < 1 / spacing && p > 0.5 / spacing + 1 && std::abs(p - whole) <= tolerated && std::fmod(whole, 4) == 1)
      coded.push_back({key, whole * spacing});
  }
  return coded;
}

}  // namespace

bool has_weights(const Case& c) {
  const Problem& p = c.problem;
  const double scale = std::abs(effective_softmax_scale(p));
  return has_plain_scores(p) && p.dtype != Dtype::fp32 && p.seqlen_q > 0 && p.seqlen_k >= 3 && scale >= 0x1p-10 &&
         scale <= 16;
}

Verdict weights(Trial& trial) {
  const Case& c = trial.the_case();
  const Problem& p = c.problem;
  const Numerics n = trial.kernel().numerics(c);
  Worst worst("V cancels P", n);
  const double spacing = n.u_P;  // of P in [1/2, 1)
  // A coded score is one exact product; what is off is its scale, the fused multiply-add, and the exponential.
  const double tau = 4 * u32 + n.eps_exp + n.u_S;
  // V could not hold P, or P is no nearer; divided by its sum it is no longer a number of few bits.
  if (n.u_P != n.u_out || tau > tolerated * spacing || n.normalises_first) return worst.verdict();

  const double scale = static_cast<float>(effective_softmax_scale(p));  // as kernels take it
  const double query = std::exp2(std::round(-std::log2(std::abs(scale))));
  const std::vector<Coded> coded = coded_keys(p.dtype, scale * query, spacing);
  if (coded.empty()) return worst.verdict();
  const auto code_of = [&](std::int64_t j) { return coded[static_cast<std::size_t>(j / group) % coded.size()]; };
  constexpr double large = 0x1p12;  // above the outputs' subnormals, and no sum is beyond fp16

  Inputs inputs = make_inputs(c);
  for (Tensor* tensor : {&inputs.q, &inputs.k, &inputs.v}) std::fill(tensor->values.begin(), tensor->values.end(), 0.0);
  for (std::size_t at = 0; at < inputs.q.values.size(); at += static_cast<std::size_t>(p.headdim))
    inputs.q.values[at] = query;
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t j = 1; j + 1 < p.seqlen_k; j += group)
      for (std::int64_t h = 0; h < p.nheads_k; ++h) {
        const std::int64_t column = j / group % p.headdim_v;
        inputs.k.at(b, j, h, 0) = code_of(j).key;
        inputs.v.at(b, j, h, column) = large;
        inputs.v.at(b, j + 1, h, column) = -large * code_of(j).p;
      }
  const ForwardRun run = trial.run(c, inputs);
  if (auto flaw = memory_flaw(run.outputs)) return *flaw;

  std::vector<double> pairs(static_cast<std::size_t>(p.headdim_v));
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t i = 0; i < queries_of(p, b); ++i) {
      std::fill(pairs.begin(), pairs.end(), 0.0);
      double l = 0;
      for (std::int64_t j = 0; j < p.seqlen_k; ++j)
        if (attends(p, b, i, j)) l += j % group == 1 && j + 1 < p.seqlen_k ? code_of(j).p : 1;
      bool alone = false;  // a coded key may be all that a row sees of a tile
      for (std::int64_t j = 1; j + 1 < p.seqlen_k; j += group) {
        alone |= attends(p, b, i, j) && !(attends(p, b, i, j - 1) && attends(p, b, i, j + 1));
        const int seen = attends(p, b, i, j - 1) + attends(p, b, i, j) + attends(p, b, i, j + 1);
        double& count = pairs[static_cast<std::size_t>(j / group % p.headdim_v)];
        count = seen == 3 ? count + 1 : seen == 0 ? count : std::nan("");  // cut by the mask: nothing cancels
      }
      // A rescale that waits then leaves later tiles relative to a maximum below 0, and P between its numbers.
      if (alone && n.max_P > 1) continue;
      for (std::int64_t d = 0; d < p.headdim_v; ++d) {
        const double count = pairs[static_cast<std::size_t>(d)];
        if (!(count > 0)) continue;
        // 2^-16: a pair that a split of the keys parts is put together again in fp32.
        const double before = large / l * (count * (tolerated * spacing + tau) + 0x1p-16);
        const double bound = before * (1 + 8 * u32) * (1 + n.u_out) + n.floor_out;
        for (std::int64_t h = 0; h < p.nheads; ++h)
          worst.see("o", {b, i, h, d}, run.outputs.o.at(b, i, h, d), 0, bound);
      }
    }
  return worst.verdict();
}

}  // namespace attest
