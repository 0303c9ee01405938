#include "attest/simulator/case_counts.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "grid.h"

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
  KeyRuns runs;
};

std::map<CtaShape, Alike> shapes_of_head(const Grid& grid, const LengthClass& lengths, const Behaviour& kernel) {
  const KernelPlan& plan = grid.plan;
  Work work = lengths.work;
  std::map<CtaShape, Alike> shapes;
  for (int t = 0; t < grid.q_tiles; ++t) {
    const int q_rows = std::min(plan.tile_m, lengths.seqlen_q - t * plan.tile_m);
    if (q_rows <= 0) break;
    for (int split = 0; split < grid.splits; ++split) {
      work.q_tile = t, work.split = split;
      const KeyWalk walk = kernel.walk(work);
      const TileRange& range = walk.range;
      // the tile of the last keys, which may lack some, is the first in descending order
      const int top = walk.order == KeyOrder::descending ? 0 : range.size() - 1;
      const bool has_top = walk.first <= top && top < walk.last;
      const int missing = has_top ? std::max(0, range.end * plan.tile_n - lengths.seqlen_k) : 0;
      Alike& alike = shapes[{std::max(0, walk.last - walk.first), missing, q_rows}];
      ++alike.ctas;
      for (int n = 0; n < std::ssize(alike.runs.longer); ++n)
        if (walk.last - walk.first > n) ++alike.runs.longer[static_cast<std::size_t>(n)];
      for (int run = 0, begin = walk.first; run < 6 && begin < walk.last; ++run) {
        const int end = std::max(begin, walk.run_end(run));
        const bool full = run == 1 || run == 4;
        alike.masked_key_tiles += full ? 0 : end - begin;
        ++alike.runs.all;
        if (full && begin < end) ++alike.runs.whole;
        if (begin == walk.first && begin < end) ++(full ? alike.runs.whole_first : alike.runs.masked_first);
        begin = end;
      }
    }
  }
  return shapes;
}

/// An unmasked CTA of that shape: the operations do not depend on the mask, only on how many tiles it leaves.
Work unmasked(const KernelPlan& plan, const CtaShape& s, int key_tiles) {
  Work work;
  work.seqlen_q = s.q_rows;
  // of all splits' tiles alike, the split that has the last keys
  work.split = plan.key_order == KeyOrder::descending ? 0 : plan.num_splits - 1;
  work.seqlen_k = key_tiles == 0 ? 0 : key_tiles * plan.num_splits * plan.tile_n - s.missing_keys;
  work.diagonal = work.seqlen_k - work.seqlen_q;
  return work;
}

/// Counts CTAs of heads that start at the same bytes of a line. Shapes that differ in whole periods of key tiles share
/// their programs, whichever length they come from.
class ShapeCounter {
 public:
  ShapeCounter(const Behaviour& kernel, const GlobalLayout& layout)
      : kernel_(kernel), plan_(kernel.plan()), counter_(plan_, layout) {}

  Counts count(const CtaShape& s) {
    const int direct = 2 * plan_.stages + 2;  // the pipeline's start and end, and a period between them
    if (s.key_tiles <= direct + plan_.stages) return recorded(s);
    CtaShape base = s;
    base.key_tiles = direct + (s.key_tiles - direct) % plan_.stages;
    Counts total = recorded(base);
    CtaShape longer = base;
    longer.key_tiles += plan_.stages;
    Counts period = recorded(longer);
    period += total * -1;
    total += period * ((s.key_tiles - base.key_tiles) / plan_.stages);
    return total;
  }

 private:
  const Counts& recorded(const CtaShape& s) {
    const auto [at, is_new] = seen_.try_emplace(s);
    if (is_new) at->second = counter_.count(kernel_.program(unmasked(plan_, s, s.key_tiles)));
    return at->second;
  }

  const Behaviour& kernel_;
  const KernelPlan& plan_;
  Counter counter_;
  std::map<CtaShape, Counts> seen_;
};

/// Where the rows of a head start within a line, by operand, and how many heads of a class of lengths start there.
using Bases = std::map<std::array<std::int64_t, 4>, std::int64_t>;

std::vector<Bases> bases(const Grid& grid) {
  const Problem& p = grid.p;
  std::vector<Bases> result(grid.classes.size());
  const TensorAddress* tensors[] = {&grid.q, &grid.k, &grid.v, &grid.o};
  const auto in_line = [](std::int64_t bytes) { return bytes % LineSampler::line_bytes == 0; };
  if (std::all_of(std::begin(tensors), std::end(tensors), [&](const TensorAddress* t) {
        const std::int64_t step = t->first_row != nullptr ? t->row_stride : t->batch_stride;
        return in_line(t->base) && in_line(t->head_stride) && in_line(step);
      })) {
    for (std::size_t i = 0; i < result.size(); ++i) result[i][{0, 0, 0, 0}] = grid.classes[i].entries * grid.nheads;
    return result;
  }
  // entries without lengths of their own start alike this far apart
  const std::int64_t period = grid.class_of.empty() ? LineSampler::line_bytes / grid.plan.element_bytes : p.batch;
  for (std::int64_t b = 0; b < std::min(p.batch, period); ++b) {
    const std::int64_t alike = (p.batch - b + period - 1) / period;
    const std::size_t which =
        grid.class_of.empty() ? 0 : static_cast<std::size_t>(grid.class_of[static_cast<std::size_t>(b)]);
    for (std::int64_t h = 0; h < grid.nheads; ++h) {
      const auto at = [&](const TensorAddress& t, std::int64_t head) {
        return t.row(b, head, 0) % LineSampler::line_bytes;
      };
      const std::int64_t key_head = grid.key_head(h);
      result[which][{at(grid.q, h), at(grid.k, key_head), at(grid.v, key_head), at(grid.o, h)}] += alike;
    }
  }
  return result;
}

/// Of LSE, beyond one for eight rows: these leave at once, and lie in two sectors where a head begins within one. Rows
/// of packed heads lie apart, but not in the workspace of splits.
std::int64_t straddled_sectors(const Grid& grid) {
  constexpr std::int64_t rows_of_sector = 8;
  const bool whole = grid.splits == 1;
  if (whole && grid.plan.packed_heads > 1) return 0;
  const auto of_head = [&](std::int64_t batch, std::int64_t head, int split) -> std::int64_t {
    const std::int64_t first = whole ? grid.lse_row(batch, head) : grid.partial_row(batch, head, split);
    const std::int64_t rows = grid.entry(batch).seqlen_q, before = first % rows_of_sector;
    return before == 0 ? 0 : rows / rows_of_sector + (rows % rows_of_sector + before > rows_of_sector ? 1 : 0);
  };
  std::int64_t sectors = 0;
  // of entries that are alike so many together fill whole sectors
  const std::int64_t different = grid.class_of.empty() ? std::min(grid.p.batch, rows_of_sector) : grid.p.batch;
  for (std::int64_t batch = 0; batch < different; ++batch) {
    const std::int64_t alike = (grid.p.batch - batch + different - 1) / different;
    for (std::int64_t head = 0; head < grid.nheads; ++head)
      for (int split = 0; split < grid.splits; ++split) sectors += of_head(batch, head, split) * alike;
  }
  return sectors;
}

/// Of CTAs with so many key tiles and more.
Counts count(const Case& c, const Behaviour& kernel, int least_key_tiles) {
  const KernelPlan& plan = kernel.plan();
  const Grid grid(c, plan);
  GlobalLayout layout;
  layout.row_stride_bytes = {grid.q.row_stride, grid.k.row_stride, grid.v.row_stride, grid.o.row_stride};
  layout.packed_heads = plan.packed_heads;
  layout.head_stride_bytes = {grid.q.head_stride, 0, 0, grid.o.head_stride};
  const std::vector<Bases> starts = bases(grid);
  Counts total;
  std::map<Bases::key_type, ShapeCounter> counters;
  for (std::size_t i = 0; i < grid.classes.size(); ++i) {
    const auto shapes = shapes_of_head(grid, grid.classes[i], kernel);
    for (const auto& [base, heads] : starts[i]) {
      layout.base = base;
      ShapeCounter& counter = counters.try_emplace(base, kernel, layout).first->second;
      for (const auto& [shape, alike] : shapes) {
        if (shape.key_tiles < least_key_tiles) continue;
        Counts counts = counter.count(shape) * (alike.ctas * heads);
        counts.masked_key_tiles = alike.masked_key_tiles * heads;  // an unmasked CTA stood for these
        total += counts;
      }
    }
  }
  if (plan.stores_lse) total.lse_bytes += LineSampler::sector_bytes * straddled_sectors(grid);
  return total;
}

}  // namespace

Counts count_case(const Case& c, const Behaviour& kernel) { return count(c, kernel, 0); }

Counts count_case(const Case& c, const KernelPlan& plan) { return count_case(c, BehaviourOf<KernelPlan>(plan)); }

Counts count_with_keys(const Case& c, const KernelPlan& plan) { return count(c, BehaviourOf<KernelPlan>(plan), 1); }

KeyRuns count_key_runs(const Case& c, const KernelPlan& plan) {
  const Grid grid(c, plan);
  KeyRuns total;
  for (const LengthClass& lengths : grid.classes) {
    const std::int64_t heads = lengths.entries * grid.nheads;
    for (const auto& [shape, alike] : shapes_of_head(grid, lengths, BehaviourOf<KernelPlan>(plan))) {
      total.all += alike.runs.all * heads;
      total.whole += alike.runs.whole * heads;
      total.masked_first += alike.runs.masked_first * heads;
      total.whole_first += alike.runs.whole_first * heads;
      for (std::size_t n = 0; n < total.longer.size(); ++n) total.longer[n] += alike.runs.longer[n] * heads;
    }
  }
  return total;
}

}  // namespace attest
