#include "attest/fuzz/generators.h"

#include "attest/reference/attends.h"
#include "generator_parts.h"

namespace attest {
namespace {

Dtype draw_dtype(Draw& draw) {
  const std::int64_t kind = draw.in_range(0, 99);
  if (kind < 28) return Dtype::fp16;
  if (kind < 56) return Dtype::bf16;
  if (kind < 80) return Dtype::fp32;
  return kind < 90 ? Dtype::fp8_e4m3 : Dtype::fp8_e5m2;
}

Distribution draw_distribution(Draw& draw, bool backward) {
  const std::int64_t kind = draw.in_range(0, 99);
  if (backward && draw.chance(15)) return Distribution::orthogonal_dout;
  if (kind < 46) return Distribution::normal;
  if (kind < 50) return Distribution::non_finite;
  if (kind < 66) return Distribution::large;
  if (kind < 76) return Distribution::shift;
  if (kind < 84) return Distribution::zero_q;
  return kind < 91 ? Distribution::one_v : Distribution::one_hot_v;
}

std::int64_t draw_splits(Draw& draw) {
  constexpr std::int64_t splits[] = {2, 2, 3, 3, 4, 5, 8, 17};
  return draw.one_of(splits);
}

}  // namespace

Wanted draw_wanted(Draw& draw) {
  Wanted wanted;
  const std::int64_t kind = draw.in_range(0, 99);
  int left = kind < 40 ? 0 : kind < 65 ? 1 : kind < 84 ? 2 : kind < 94 ? 3 : static_cast<int>(draw.in_range(4, 6));
  while (left > 0) {
    bool& has = wanted.has[draw.in_range(0, Wanted::count - 1)];
    left -= !has;
    has = true;
  }
  return wanted;
}

std::int64_t work_of(const Problem& p) {
  std::int64_t scores = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) scores += queries_of(p, b) * keys_of(p, b);
  return p.nheads * scores * (p.headdim + p.headdim_v);
}

Case generate_case(std::uint64_t seed, std::uint64_t k, const Budget& budget) {
  // The key is the whole triple, so no two cases of a campaign share a stream.
  Draw draw(rc::Random(rc::Random::Key{seed, generator_version, k, 0}));
  Case c;
  Problem& p = c.problem;
  const std::int64_t work = draw.log_uniform(budget.min_work, budget.max_work);
  const Wanted wanted = draw_wanted(draw);
  c.backward = draw.chance(20);
  c.deterministic = c.backward && draw.chance(50);
  p.dtype = draw_dtype(draw);
  draw_extents(draw, wanted, c.backward ? std::max(budget.min_work, work / 4) : work, budget, p);
  draw_mask(draw, wanted, p);
  draw_scores(draw, wanted, p);
  c.layout = draw_layout(draw, wanted, p);
  if (wanted[Wanted::splits]) c.num_splits = draw_splits(draw);
  c.inputs = draw_distribution(draw, c.backward);
  c.seed = static_cast<std::uint64_t>(draw.in_range(0, 999'999));
  validate(c);
  return c;
}

}  // namespace attest
