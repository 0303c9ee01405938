#include <algorithm>
#include <numeric>

#include "attest/fuzz/shrink.h"
#include "attest/reference/attends.h"

namespace attest {
namespace {

using List = std::vector<std::int64_t>;

// Below n, the boldest first: the simplest values, then what takes away less and less of it.
List below(std::int64_t n, std::int64_t simplest) {
  List values;
  for (const std::int64_t value :
       {simplest, simplest + 1, n / 8, n / 4, n / 2, n - n / 4, n - n / 8, n - 16, n - 4, n - 1})
    if (value >= simplest && value < n && std::find(values.begin(), values.end(), value) == values.end())
      values.push_back(value);
  return values;
}

// The same for one number of a list, of which there are many.
List below_in_list(std::int64_t n) {
  List values;
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{1}, n / 2, n - 1})
    if (value >= 0 && value < n && (values.empty() || value > values.back())) values.push_back(value);
  return values;
}

// A change to one field may leave others that must agree with it. They give way, and never grow.
void clip(List& lengths, std::int64_t limit) {
  for (std::int64_t& length : lengths) length = std::min(length, limit);
}

void fit_documents(Problem& p) {
  std::int64_t left = std::max(p.seqlen_q, p.seqlen_k);
  for (std::size_t d = 0; d < p.documents.size(); ++d) {
    if (p.documents[d] > left) {
      p.documents[d] = left;
      p.documents.resize(d + 1);
    }
    left -= p.documents[d];
  }
}

void fit_pages(Case& c) {
  const Problem& p = c.problem;
  Layout& layout = c.layout;
  if (layout.page_size == 0) {
    layout.page_table.clear();
    layout.num_pages = 0;
    return;
  }
  std::int64_t needed = 0;
  bool fits = true;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t pages = (keys_of(p, b) + layout.page_size - 1) / layout.page_size;
    needed += pages;
    if (!layout.page_table.empty()) fits &= std::ssize(layout.page_table[static_cast<std::size_t>(b)]) >= pages;
  }
  if (!fits) layout.page_table.clear();
  if (layout.num_pages < needed) layout.num_pages = 0;
}

void make_consistent(Case& c) {
  Problem& p = c.problem;
  clip(p.varlen_q, p.seqlen_q);
  clip(p.varlen_k, p.seqlen_k);
  if (!p.varlen_q.empty()) p.seqlen_q = *std::max_element(p.varlen_q.begin(), p.varlen_q.end());
  if (!p.varlen_k.empty()) p.seqlen_k = *std::max_element(p.varlen_k.begin(), p.varlen_k.end());
  for (std::size_t b = 0; b < p.seqused_k.size(); ++b)
    p.seqused_k[b] = std::min(p.seqused_k[b], p.varlen_k.empty() ? p.seqlen_k : p.varlen_k[b]);
  fit_documents(p);
  fit_pages(c);
}

template <class T>
void keep(std::vector<T>& list, std::int64_t first, std::int64_t last) {
  if (list.empty()) return;
  list.erase(list.begin() + last, list.end());
  list.erase(list.begin(), list.begin() + first);
}

// Batch entries [first, last) alone.
void keep_members(Case& c, std::int64_t first, std::int64_t last) {
  Problem& p = c.problem;
  p.batch = last - first;
  keep(p.varlen_q, first, last);
  keep(p.varlen_k, first, last);
  keep(p.seqused_k, first, last);
  keep(c.layout.page_table, first, last);
}

void drop_member(Case& c, std::int64_t b) {
  Problem& p = c.problem;
  --p.batch;
  for (List* list : {&p.varlen_q, &p.varlen_k, &p.seqused_k})
    if (!list->empty()) list->erase(list->begin() + b);
  if (!c.layout.page_table.empty()) c.layout.page_table.erase(c.layout.page_table.begin() + b);
}

class Candidates {
 public:
  explicit Candidates(const Case& c) : from_(c) {}

  /// Adds what `change` makes of the case, unless that is the case itself.
  template <class Change>
  void add(Change change) {
    Case simpler = from_;
    change(simpler, simpler.problem);
    make_consistent(simpler);
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

// Whole features and parts, each of which makes a case much simpler.
void drop_features(const Case& c, Candidates& candidates) {
  const Problem& p = c.problem;
  candidates.add([](Case& s, Problem&) { s.layout = {}; });
  candidates.add([](Case& s, Problem&) { s.inputs = Distribution::normal; });
  candidates.add([](Case& s, Problem&) { s.backward = s.deterministic = false; });
  candidates.add([](Case& s, Problem&) { s.deterministic = false; });
  candidates.add([](Case& s, Problem&) { s.num_splits = 1; });
  candidates.add([](Case& s, Problem&) { s.layout.page_size = 0; });
  candidates.add([](Case&, Problem& q) { q.softmax_scale.reset(); });
  candidates.add([](Case&, Problem& q) { q.softcap = 0; });
  candidates.add([](Case&, Problem& q) { q.alibi = false; });
  candidates.add([](Case&, Problem& q) { q.sink = false; });
  candidates.add([](Case&, Problem& q) { q.bias = Bias::none; });
  candidates.add([](Case&, Problem& q) { q.documents.clear(); });
  candidates.add([](Case&, Problem& q) { q.prefix = 0; });
  candidates.add([](Case&, Problem& q) { q.window_left = q.window_right = -1; });
  candidates.add([](Case&, Problem& q) { q.causal = Causal::none; });
  candidates.add([](Case&, Problem& q) {
    q.varlen_q.clear();
    q.varlen_k.clear();
  });
  candidates.add([](Case&, Problem& q) { q.varlen_q.clear(); });
  candidates.add([](Case&, Problem& q) { q.varlen_k.clear(); });
  candidates.add([](Case&, Problem& q) { q.seqused_k.clear(); });
  if (is_fp8(p.dtype)) candidates.add([](Case&, Problem& q) { q.dtype = Dtype::bf16; });
}

void drop_members(const Case& c, Candidates& candidates) {
  const std::int64_t batch = c.problem.batch;
  const auto add_members = [&](std::int64_t first, std::int64_t last) {
    if (last - first < batch && last > first) candidates.add([&](Case& s, Problem&) { keep_members(s, first, last); });
  };
  add_members(0, 1);
  add_members(batch - 1, batch);
  add_members(0, batch / 2);
  add_members(batch / 2, batch);
  for (std::int64_t b = 0; b < batch && batch > 1 && batch <= 64; ++b)
    candidates.add([&](Case& s, Problem&) { drop_member(s, b); });
}

void shrink_extents(const Case& c, Candidates& candidates) {
  const Problem& p = c.problem;
  const std::int64_t group = p.nheads / p.nheads_k;
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
  for (const std::int64_t batch : below(p.batch, 1))
    candidates.add([&](Case& s, Problem&) { keep_members(s, 0, batch); });
  for (const std::int64_t heads : below(p.nheads_k, 1))
    candidates.add([&](Case&, Problem& q) { q.nheads_k = heads, q.nheads = heads * group; });
  for (const std::int64_t fewer : below(group, 1))
    candidates.add([&](Case&, Problem& q) { q.nheads = q.nheads_k * fewer; });
  for (List Problem::*list : {&Problem::varlen_q, &Problem::varlen_k, &Problem::seqused_k})
    for (std::size_t b = 0; b < (p.*list).size() && b < 32; ++b)
      for (const std::int64_t value : below_in_list((p.*list)[b]))
        candidates.add([&](Case&, Problem& q) { (q.*list)[b] = value; });
}

void shrink_documents(const Problem& p, Candidates& candidates) {
  const List& documents = p.documents;
  const std::int64_t total = std::accumulate(documents.begin(), documents.end(), std::int64_t{0});
  candidates.add([](Case&, Problem& q) { std::erase(q.documents, 0); });
  // Two that remain: one boundary of those there are.
  std::int64_t end = 0;
  for (std::size_t d = 0; d + 1 < documents.size() && documents.size() > 2 && documents.size() <= 64; ++d) {
    end += documents[d];
    candidates.add([&](Case&, Problem& q) { q.documents = {end, total - end}; });
  }
  for (std::size_t d = 0; d + 1 < documents.size() && documents.size() <= 64; ++d) {
    candidates.add([&](Case&, Problem& q) {  // merged with the next
      q.documents[d + 1] += q.documents[d];
      q.documents.erase(q.documents.begin() + static_cast<std::ptrdiff_t>(d));
    });
    for (const std::int64_t value : below_in_list(documents[d]))
      candidates.add([&](Case&, Problem& q) {
        q.documents[d + 1] += q.documents[d] - value;
        q.documents[d] = value;
      });
  }
}

void shrink_mask(const Case& c, Candidates& candidates) {
  const Problem& p = c.problem;
  candidates.add_extents(&Problem::prefix, 1);
  shrink_documents(p, candidates);
  for (std::int64_t Problem::*window : {&Problem::window_left, &Problem::window_right}) {
    candidates.add([&](Case&, Problem& q) { q.*window = -1; });
    candidates.add_extents(window, 0);
  }
  if (p.causal == Causal::top_left) candidates.add([](Case&, Problem& q) { q.causal = Causal::bottom_right; });
  if (p.softcap != 0) candidates.add([](Case&, Problem& q) { q.softcap = 1; });
  if (p.bias != Bias::none) candidates.add([](Case&, Problem& q) { q.bias = Bias::qk; });
}

void shrink_layout(const Case& c, Candidates& candidates) {
  candidates.add([](Case& s, Problem&) { s.layout.page_table.clear(); });
  candidates.add([](Case& s, Problem&) {
    s.layout.page_table.clear();
    s.layout.num_pages = 0;
  });
  for (const std::int64_t size : below(c.layout.page_size, 1))
    candidates.add([&](Case& s, Problem&) { s.layout.page_size = size; });
  for (const std::int64_t splits : below(c.num_splits, 2))
    candidates.add([&](Case& s, Problem&) { s.num_splits = splits; });
  candidates.add([](Case& s, Problem&) { s.layout.order = Layout::Order::bshd; });
  for (std::int64_t Layout::*field : {&Layout::row_gap, &Layout::seq_gap, &Layout::base_offset}) {
    candidates.add([&](Case& s, Problem&) { s.layout.*field = 0; });
    for (const std::int64_t value : below(c.layout.*field, 1))
      candidates.add([&](Case& s, Problem&) { s.layout.*field = value; });
  }
  for (const std::int64_t seed : below(static_cast<std::int64_t>(c.seed), 0))
    if (seed < 2) candidates.add([&](Case& s, Problem&) { s.seed = static_cast<std::uint64_t>(seed); });
}

}  // namespace

std::vector<Case> simpler_cases(const Case& c) {
  Candidates candidates(c);
  drop_features(c, candidates);
  drop_members(c, candidates);
  shrink_extents(c, candidates);
  shrink_mask(c, candidates);
  shrink_layout(c, candidates);
  return candidates.cases;
}

}  // namespace attest
