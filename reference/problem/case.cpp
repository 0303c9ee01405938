#include "attest/problem/case.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "attest/problem/error.h"

namespace attest {
namespace {

void check_range(std::string_view field, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high)
    throw InvalidInput(field, fmt::format("{}", value), fmt::format("is outside {} to {}", low, high));
}

// With its gaps a tensor may reach further than its elements.
void check_span(std::string_view tensor, const Layout& layout, std::int64_t batch, std::int64_t seqlen,
                std::int64_t heads, std::int64_t dim) {
  constexpr auto limit = std::int64_t{1} << 40;
  const __int128 rows = static_cast<__int128>(batch) * heads * (seqlen + layout.seq_gap);  // at most 2^(20+16+27)
  if (rows * (dim + layout.row_gap) >= limit)
    throw InvalidInput("layout", fmt::format("'{}'", layout_spec(layout)),
                       fmt::format("spreads {} over 2^40 elements or more, the most a tensor may span", tensor));
}

std::int64_t pages_of(const Case& c, std::size_t b) {
  const std::int64_t keys = c.problem.seqused_k.empty() ? c.problem.seqlen_k : c.problem.seqused_k[b];
  return (keys + c.layout.page_size - 1) / c.layout.page_size;
}

std::int64_t num_pages_needed(const Case& c) {
  std::int64_t needed = 0;
  for (std::size_t b = 0; b < static_cast<std::size_t>(c.problem.batch); ++b) needed += pages_of(c, b);
  return needed;
}

// The rows of the page table hold the keys of their batch entries, in pages that exist, none of them twice.
void check_pages(const Case& c) {
  const Problem& p = c.problem;
  const Layout& layout = c.layout;
  check_range("page_size", layout.page_size, 0, 1 << 20);
  check_range("num_pages", layout.num_pages, 0, std::int64_t{1} << 31);
  if (layout.page_size == 0) {
    if (layout.num_pages != 0)
      throw InvalidInput("num_pages", fmt::format("{}", layout.num_pages), "goes with a page_size");
    if (!layout.page_table.empty())
      throw InvalidInput("page_table", fmt::format("of {} rows", layout.page_table.size()), "goes with a page_size");
    return;
  }
  if (!p.varlen_k.empty())
    throw InvalidInput("page_size", fmt::format("{}", layout.page_size),
                       "contradicts varlen_k, which packs the keys; give the lengths as seqused_k");
  if (const std::int64_t needed = num_pages_needed(c); layout.num_pages != 0 && layout.num_pages < needed)
    throw InvalidInput("num_pages", fmt::format("{}", layout.num_pages),
                       fmt::format("is below {}, the pages that hold the keys", needed));
  if (layout.page_table.empty()) return;
  if (std::ssize(layout.page_table) != p.batch)
    throw InvalidInput("page_table", fmt::format("of {} rows", layout.page_table.size()),
                       fmt::format("does not have one for each of batch = {}", p.batch));
  std::set<std::int64_t> used;
  for (std::size_t b = 0; b < layout.page_table.size(); ++b) {
    const auto& row = layout.page_table[b];
    const std::string field = fmt::format("page_table[{}]", b);
    if (std::ssize(row) < pages_of(c, b))
      throw InvalidInput(field, fmt::format("of {} pages", row.size()),
                         fmt::format("is short of the {} that its keys fill", pages_of(c, b)));
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string place = fmt::format("{}[{}]", field, i);
      check_range(place, row[i], 0, (layout.num_pages != 0 ? layout.num_pages : std::int64_t{1} << 31) - 1);
      if (!used.insert(row[i]).second)
        throw InvalidInput(place, fmt::format("{}", row[i]), "is a page that the table has already");
    }
  }
}

std::int64_t parse_integer(std::string_view field, std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw InvalidInput(field, fmt::format("'{}'", text), "is not an integer of 64 bits");
  return value;
}

}  // namespace

std::string layout_spec(const Layout& layout) {
  std::string spec = layout.order == Layout::Order::bshd ? "bshd" : "bhsd";
  if (layout.row_gap != 0) spec += fmt::format(",row_gap={}", layout.row_gap);
  if (layout.seq_gap != 0) spec += fmt::format(",seq_gap={}", layout.seq_gap);
  return spec;
}

Layout layout_from_spec(std::string_view spec) {
  Layout layout;
  bool row_gap = false, seq_gap = false;  // given already
  for (std::string_view rest = spec;; rest = rest.substr(rest.find(',') + 1)) {
    const std::string_view word = rest.substr(0, rest.find(','));
    const bool first = rest.data() == spec.data();
    if (first && word == "bshd")
      layout.order = Layout::Order::bshd;
    else if (first && word == "bhsd")
      layout.order = Layout::Order::bhsd;
    else if (!first && word.starts_with("row_gap=") && !std::exchange(row_gap, true))
      layout.row_gap = parse_integer("row_gap", word.substr(8));
    else if (!first && word.starts_with("seq_gap=") && !std::exchange(seq_gap, true))
      layout.seq_gap = parse_integer("seq_gap", word.substr(8));
    else
      throw InvalidInput("layout", fmt::format("'{}'", word), "is not of the form bshd|bhsd[,row_gap=N][,seq_gap=N]");
    if (word.size() == rest.size()) return layout;
  }
}

std::string page_table_spec(const std::vector<std::vector<std::int64_t>>& table) {
  std::string spec;
  for (const auto& row : table)
    spec += fmt::format("{}{}", spec.empty() && &row == table.data() ? "" : "/", fmt::join(row, ","));
  return spec;
}

std::string_view to_string(Distribution distribution) {
  switch (distribution) {
    case Distribution::normal:
      return "normal";
    case Distribution::large:
      return "large";
    case Distribution::shift:
      return "shift";
    case Distribution::zero_q:
      return "zero_q";
    case Distribution::one_v:
      return "one_v";
    case Distribution::one_hot_v:
      return "one_hot_v";
    case Distribution::non_finite:
      return "non_finite";
    case Distribution::orthogonal_dout:
      return "orthogonal_dout";
  }
  return "?";
}

Distribution distribution_from_string(std::string_view name) {
  for (const Distribution distribution : all_distributions)
    if (to_string(distribution) == name) return distribution;
  throw InvalidInput("inputs", fmt::format("'{}'", name),
                     "is none of normal, large, shift, zero_q, one_v, one_hot_v, non_finite, orthogonal_dout");
}

void validate(const Case& c) {
  validate(c.problem);
  constexpr std::int64_t largest_gap = 1 << 20;
  check_range("row_gap", c.layout.row_gap, 0, largest_gap);
  check_range("seq_gap", c.layout.seq_gap, 0, largest_gap);
  check_range("base_offset", c.layout.base_offset, 0, largest_gap);
  if (c.num_splits == 0)  // elsewhere: as the launch likes. A case's bits and budget would then depend on the device
    throw InvalidInput("num_splits", "0",
                       "is outside 1 to 256; how many suit a device says `attest predict --auto-splits`");
  check_range("num_splits", c.num_splits, 1, 256);
  check_pages(c);
  const Problem& p = c.problem;
  check_span("q", c.layout, p.batch, p.seqlen_q, p.nheads, p.headdim);
  const bool paged = c.layout.page_size > 0;
  const std::int64_t sequences = paged ? std::max(c.layout.num_pages, num_pages_needed(c)) : p.batch;
  check_span("k", c.layout, sequences, paged ? c.layout.page_size : p.seqlen_k, p.nheads_k, p.headdim);
  check_span("v", c.layout, sequences, paged ? c.layout.page_size : p.seqlen_k, p.nheads_k, p.headdim_v);
  check_span("o", c.layout, p.batch, p.seqlen_q, p.nheads, p.headdim_v);
}

std::string command_line(const Case& c) {
  const Problem& p = c.problem;
  std::string line = fmt::format("--batch {} --nheads {} --nheads-k {} --seqlen-q {} --seqlen-k {} --headdim {}",
                                 p.batch, p.nheads, p.nheads_k, p.seqlen_q, p.seqlen_k, p.headdim);
  if (p.headdim_v != p.headdim) line += fmt::format(" --headdim-v {}", p.headdim_v);
  line += fmt::format(" --dtype {}", to_string(p.dtype));
  if (p.softmax_scale) line += fmt::format(" --softmax-scale={}", *p.softmax_scale);
  if (p.causal == Causal::bottom_right) line += " --causal";
  if (p.causal == Causal::top_left) line += " --causal=top-left";
  if (p.window_left != -1 || p.window_right != -1)
    line += fmt::format(" --window={},{}", p.window_left, p.window_right);
  if (p.prefix != 0) line += fmt::format(" --prefix {}", p.prefix);
  if (!p.documents.empty()) line += fmt::format(" --documents {}", fmt::join(p.documents, ","));
  if (p.softcap != 0) line += fmt::format(" --softcap {}", p.softcap);
  if (p.alibi) line += " --alibi";
  if (p.sink) line += " --sink";
  if (p.bias != Bias::none) line += fmt::format(" --bias={}", to_string(p.bias));
  if (!p.varlen_q.empty()) line += fmt::format(" --varlen-q {}", fmt::join(p.varlen_q, ","));
  if (!p.varlen_k.empty()) line += fmt::format(" --varlen-k {}", fmt::join(p.varlen_k, ","));
  if (!p.seqused_k.empty()) line += fmt::format(" --seqused-k {}", fmt::join(p.seqused_k, ","));
  if (const std::string spec = layout_spec(c.layout); spec != "bshd") line += fmt::format(" --layout {}", spec);
  if (c.layout.base_offset != 0) line += fmt::format(" --base-offset {}", c.layout.base_offset);
  if (c.layout.page_size != 0) line += fmt::format(" --page-size {}", c.layout.page_size);
  if (c.layout.num_pages != 0) line += fmt::format(" --num-pages {}", c.layout.num_pages);
  if (!c.layout.page_table.empty()) line += fmt::format(" --page-table {}", page_table_spec(c.layout.page_table));
  if (c.num_splits != 1) line += fmt::format(" --num-splits {}", c.num_splits);
  if (c.backward) line += " --backward";
  if (c.deterministic) line += " --deterministic";
  if (c.inputs != Distribution::normal) line += fmt::format(" --inputs {}", to_string(c.inputs));
  line += fmt::format(" --seed {}", c.seed);
  return line;
}

}  // namespace attest
