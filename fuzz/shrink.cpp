#include "attest/fuzz/shrink.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "attest/problem/error.h"

namespace attest {
namespace {

// Below n, the boldest first: the simplest values, then what takes away less and less of it.
std::vector<std::int64_t> below(std::int64_t n, std::int64_t simplest) {
  std::vector<std::int64_t> values;
  for (const std::int64_t value :
       {simplest, simplest + 1, n / 8, n / 4, n / 2, n - n / 4, n - n / 8, n - 16, n - 4, n - 1})
    if (value >= simplest && value < n && std::find(values.begin(), values.end(), value) == values.end())
      values.push_back(value);
  return values;
}

class Candidates {
 public:
  explicit Candidates(const Case& c) : from_(c) {}

  /// Adds what `change` makes of the case, unless that is the case itself.
  template <class Change>
  void add(Change change) {
    Case simpler = from_;
    change(simpler, simpler.problem);
    if (!(simpler == from_)) cases.push_back(simpler);
  }

  void add_extents(std::int64_t Problem::*extent, std::int64_t simplest) {
    for (const std::int64_t value : below(from_.problem.*extent, simplest))
      add([&](Case&, Problem& p) { p.*extent = value; });
  }

  std::vector<Case> cases;

 private:
  Case from_;
};

}  // namespace

std::vector<Case> simpler_cases(const Case& c) {
  const Problem& p = c.problem;
  Candidates candidates(c);
  const std::int64_t group = p.nheads / p.nheads_k;

  candidates.add([](Case& s, Problem&) { s.layout = {}; });
  candidates.add([](Case& s, Problem&) { s.inputs = Distribution::normal; });
  candidates.add([](Case&, Problem& q) { q.softmax_scale.reset(); });
  candidates.add([](Case&, Problem& q) { q.window_left = q.window_right = -1; });
  candidates.add([](Case&, Problem& q) { q.causal = Causal::none; });
  candidates.add([](Case&, Problem& q) { q.batch = 1; });
  candidates.add([](Case&, Problem& q) { q.nheads = q.nheads_k = 1; });
  candidates.add([&](Case&, Problem& q) { q.nheads = group, q.nheads_k = 1; });
  candidates.add([](Case&, Problem& q) { q.nheads = q.nheads_k; });
  if (p.headdim_v > p.headdim) candidates.add([](Case&, Problem& q) { q.headdim_v = q.headdim; });
  if (p.headdim_v < p.headdim) candidates.add([](Case&, Problem& q) { q.headdim = q.headdim_v; });

  candidates.add_extents(&Problem::seqlen_k, 0);
  candidates.add_extents(&Problem::seqlen_q, 0);
  // Both together, since masks hang on their difference.
  for (const std::int64_t less : below(std::min(p.seqlen_q, p.seqlen_k), 0)) {
    const std::int64_t by = std::min(p.seqlen_q, p.seqlen_k) - less;
    candidates.add([&](Case&, Problem& q) { q.seqlen_q -= by, q.seqlen_k -= by; });
  }
  if (p.headdim == p.headdim_v)
    for (const std::int64_t value : below(p.headdim, 1))
      candidates.add([&](Case&, Problem& q) { q.headdim = q.headdim_v = value; });
  candidates.add_extents(&Problem::headdim, 1);
  candidates.add_extents(&Problem::headdim_v, 1);
  candidates.add_extents(&Problem::batch, 1);
  for (const std::int64_t heads : below(p.nheads_k, 1))
    candidates.add([&](Case&, Problem& q) { q.nheads_k = heads, q.nheads = heads * group; });
  for (const std::int64_t fewer : below(group, 1))
    candidates.add([&](Case&, Problem& q) { q.nheads = q.nheads_k * fewer; });

  for (std::int64_t Problem::*window : {&Problem::window_left, &Problem::window_right}) {
    candidates.add([&](Case&, Problem& q) { q.*window = -1; });
    candidates.add_extents(window, 0);
  }
  if (p.causal == Causal::top_left) candidates.add([](Case&, Problem& q) { q.causal = Causal::bottom_right; });
  candidates.add([](Case& s, Problem&) { s.layout.order = Layout::Order::bshd; });
  candidates.add([](Case& s, Problem&) { s.layout.row_gap = 0; });
  candidates.add([](Case& s, Problem&) { s.layout.seq_gap = 0; });
  candidates.add([](Case& s, Problem&) { s.layout.base_offset = 0; });
  for (std::int64_t Layout::*field : {&Layout::row_gap, &Layout::seq_gap, &Layout::base_offset})
    for (const std::int64_t value : below(c.layout.*field, 1))
      candidates.add([&](Case& s, Problem&) { s.layout.*field = value; });
  for (const std::int64_t seed : below(static_cast<std::int64_t>(c.seed), 0))
    if (seed < 2) candidates.add([&](Case& s, Problem&) { s.seed = static_cast<std::uint64_t>(seed); });
  return candidates.cases;
}

Shrunk shrink(Kernel& kernel, ForwardBuffers& buffers, const Property& property, const Case& c, const Verdict& failure,
              const ShrinkLimits& limits) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  Shrunk best{c, failure};
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const Case& candidate : simpler_cases(best.minimal)) {
      if (best.runs >= limits.max_runs || elapsed() >= limits.max_seconds) return best;
      if (!property.applies(candidate) || kernel.unsupported(candidate)) continue;
      ++best.runs;
      Trial trial(kernel, buffers, candidate);
      const Verdict verdict = judge(property, trial);
      if (verdict.status != failure.status) continue;
      best.minimal = candidate;
      best.verdict = verdict;
      smaller = true;
      break;
    }
  }
  best.finished = true;
  return best;
}

}  // namespace attest
