#include "attest/simulator/case_counts.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "attest/plan/catalog.h"
#include "attest/plan/launch.h"

namespace attest {
namespace {

/// What a CTA's counts depend on, besides where its head lies.
struct CtaShape {
  int key_tiles, missing_keys;  // rows that its last key tile lacks
  int q_rows;
  friend bool operator<(const CtaShape& a, const CtaShape& b) {
    return std::tie(a.key_tiles, a.missing_keys, a.q_rows) < std::tie(b.key_tiles, b.missing_keys, b.q_rows);
  }
};

/// Of CTAs that differ in nothing that counts: how many there are, and of their key tiles how many are masked.
struct Alike {
  std::int64_t ctas = 0, masked_key_tiles = 0;
};

std::map<CtaShape, Alike> shapes_of_head(const Problem& p, const KernelPlan& plan) {
  std::map<CtaShape, Alike> shapes;
  for (int t = 0; t < num_q_tiles(plan, p); ++t) {
    const Work work = make_work(p, t);
    const TileRange range = plan.range(work);
    const int missing = range.end > range.begin ? std::max(0, range.end * plan.tile_n - work.seqlen_k) : 0;
    Alike& alike = shapes[{range.end - range.begin, missing, std::min(plan.tile_m, work.seqlen_q - t * plan.tile_m)}];
    ++alike.ctas;
    // the first tile is masked in any case
    const int full = range.full_end - range.full_begin;
    alike.masked_key_tiles += range.size() - full + (full > 0 && range.full_end == range.end);
  }
  return shapes;
}

/// An unmasked CTA of that shape: the operations do not depend on the mask, only on how many tiles it leaves.
Work unmasked(const KernelPlan& plan, const CtaShape& s, int key_tiles) {
  Work work;
  work.seqlen_q = s.q_rows;
  work.seqlen_k = key_tiles == 0 ? 0 : key_tiles * plan.tile_n - s.missing_keys;
  work.diagonal = work.seqlen_k - work.seqlen_q;
  return work;
}

Counts count_shape(Counter& counter, const KernelPlan& plan, const CtaShape& s) {
  const int direct = 2 * plan.stages + 2;  // the pipeline's start and end, and a period between them
  if (s.key_tiles <= direct + plan.stages) return counter.count(unmasked(plan, s, s.key_tiles));
  const int base = direct + (s.key_tiles - direct) % plan.stages;
  const Counts shorter = counter.count(unmasked(plan, s, base));
  Counts period = counter.count(unmasked(plan, s, base + plan.stages));
  period += shorter * -1;
  Counts total = shorter;
  total += period * ((s.key_tiles - base) / plan.stages);
  return total;
}

/// Where heads start within a line, and how many heads start there.
std::map<std::array<std::int64_t, 4>, std::int64_t> bases(const Case& c, const KernelPlan& plan,
                                                          const std::array<TensorRef, 4>& t) {
  const Problem& p = c.problem;
  std::map<std::array<std::int64_t, 4>, std::int64_t> result;
  const std::int64_t e = plan.element_bytes;
  const bool aligned = c.layout.base_offset * e % 128 == 0 && std::all_of(t.begin(), t.end(), [&](const TensorRef& x) {
                         return x.head_stride * e % 128 == 0 && x.batch_stride * e % 128 == 0;
                       });
  if (aligned) return {{{0, 0, 0, 0}, p.batch * p.nheads}};
  const std::int64_t period = 128 / e;  // batches this far apart start alike
  for (std::int64_t b = 0; b < std::min(p.batch, period); ++b) {
    const std::int64_t alike = (p.batch - b + period - 1) / period;
    for (std::int64_t h = 0; h < p.nheads; ++h) {
      std::array<std::int64_t, 4> at{};
      for (std::size_t x = 0; x < 4; ++x) {
        const bool key = x == static_cast<std::size_t>(Operand::k) || x == static_cast<std::size_t>(Operand::v);
        const std::int64_t head = key ? h / (p.nheads / p.nheads_k) : h;
        at[x] = (c.layout.base_offset + b * t[x].batch_stride + head * t[x].head_stride) * e % 128;
      }
      result[at] += alike;
    }
  }
  return result;
}

}  // namespace

Counts count_case(const Case& c, const KernelPlan& plan) {
  const Problem& p = c.problem;
  const std::array<TensorRef, 4> tensors{strides_of(c.layout, p.seqlen_q, p.nheads, p.headdim),
                                         strides_of(c.layout, p.seqlen_k, p.nheads_k, p.headdim),
                                         strides_of(c.layout, p.seqlen_k, p.nheads_k, p.headdim_v),
                                         strides_of(c.layout, p.seqlen_q, p.nheads, p.headdim_v)};
  GlobalLayout layout;
  for (std::size_t x = 0; x < 4; ++x) layout.row_stride_bytes[x] = tensors[x].row_stride * plan.element_bytes;
  const auto shapes = shapes_of_head(p, plan);
  Counts total;
  for (const auto& [base, heads] : bases(c, plan, tensors)) {
    layout.base = base;
    Counter counter(plan, layout);
    for (const auto& [shape, alike] : shapes) {
      Counts counts = count_shape(counter, plan, shape) * (alike.ctas * heads);
      counts.masked_key_tiles = alike.masked_key_tiles * heads;  // an unmasked CTA stood for these
      total += counts;
    }
  }
  return total;
}

}  // namespace attest
